//go:build live

package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
)

// An agent gives nobody more power: what agents of a runtime may do is the owner's
// to say, and an agent's --yes says nothing.
func TestConsentIsTheOwners(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	w.must(t, "netsky", "agent", "0", "--type", "demo")
	for _, n := range []string{"0", "infinity"} {
		status, out := w.within(t, []string{"AGENT_N=" + n}, "", "netsky", "agent", "1", "--type", "claude", "--yes")
		testworld.Equal(t, status, 2, "agent%s: exit status", n)
		mustContain(t, "the refusal", out, "no permission mode is set for", "only the owner can set one", "permission_mode")
	}
	if _, err := os.Stat(filepath.Join(w.home, home.ConfigFile)); err == nil {
		t.Error("netsky.toml has been written")
	}
	mustContain(t, "the owner's", w.must(t, "netsky", "agent", "1", "--type", "claude", "--yes"), "may do everything you can do")
}

// An up line says in Claude Code's words what netsky has none for.
func TestConsentInOtherWords(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	w.config(t, "[claude]\npermission_mode = \"dontAsk\"\n")
	mustContain(t, "agent", w.up1(t), "/src  permission mode dontAsk")
}
