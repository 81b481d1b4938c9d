package codex_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/codex"
)

func TestRuntime(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	bin := filepath.Join(w.home.Dir(), "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	r := &codex.Runtime{Home: w.home, Binary: "/x/netsky"}
	l := agent.Launch{Agent: agent.Infinity, Dir: w.dir, Env: append(w.env, "PATH="+bin)}
	if err := r.Check(w.ctx, l); !errors.Is(err, codex.ErrMissing) {
		t.Errorf("Check without a program = %v", err)
	}
	if err := os.Symlink(w.program, filepath.Join(bin, "codex")); err != nil {
		t.Fatal(err)
	}
	r = &codex.Runtime{Home: w.home, Binary: "/x/netsky"}
	if err := r.Check(w.ctx, l); err != nil {
		t.Errorf("Check = %v", err)
	}
	if err := os.WriteFile(w.home.Dir()+".codex/config.toml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(w.ctx, l); err != nil {
		t.Errorf("Check once more = %v, want what it knew", err)
	}
	r = &codex.Runtime{Home: w.home, Binary: "/x/netsky"}
	if err := r.Check(w.ctx, l); !errors.Is(err, codex.ErrLogin) {
		t.Errorf("Check without a login = %v", err)
	}
	if err := r.Prepare(w.ctx, &l); err != nil {
		t.Error(err)
	}
	if got := strings.Join(l.Argv, " "); got != "/x/netsky codex agentinfinity --serve" {
		t.Errorf("Argv = %s", got)
	}
	if want := "CODEX_CHANNEL_DIR=" + w.home.Path("channels/agent/agentinfinity"); !slices.Contains(l.Env, want) {
		t.Errorf("Env lacks %s", want)
	}
}
