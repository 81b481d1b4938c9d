package cli_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/codex/appserver"
	"netsky/home"
	"netsky/internal/testworld"
)

// A daemon of another version is named by status, with what to do.
func TestStatusNamesOtherVersion(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "init")
	testworld.Must(t, os.MkdirAll(filepath.Join(w.home, home.RunDir), 0o700))
	l := testworld.Got(net.Listen("unix", filepath.Join(w.home, home.DaemonSocket)))(t)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"pid":%d,"start_ms":1,"version":"0.0.9","binary":%q}`, os.Getpid(), os.Args[0])
	})}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	out := w.must(t, "netsky", "status")
	if !strings.Contains(out, "! the daemon is version 0.0.9, this netsky ") || !strings.Contains(out, "netsky daemon restart") {
		t.Errorf("status says:\n%s", out)
	}
}

// Agents whose keepers run another netsky are named by status and by the up that
// leaves them as they are, with what to do, in one line; a new start ends that.
func TestNamesAgentsOfOtherVersion(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "up", "1", "--type", "demo", "--no-attach")
	testworld.Lacks(t, w.must(t, "netsky", "status", "-v"), "still run", "status -v of one version says")
	h := testworld.Got(home.At(w.home))(t)
	for _, id := range []agent.ID{"agent0", "agent1"} {
		k := testworld.Got(h.LoadKeeper(id))(t)
		k.Version = "0.0.9"
		testworld.Must(t, h.SaveKeeper(id, k))
	}
	const want = "agent0 and agent1 still run netsky 0.0.9, and this is "
	const how = "`netsky restart agent0 agent1` renews them"
	for _, args := range [][]string{{"status"}, {"status", "-v"}, {"up", "1", "--no-attach"}} {
		out, err := w.command(t.Context(), "netsky", args...).CombinedOutput()
		if err != nil || strings.Count(string(out), want) != 1 || strings.Count(string(out), how) != 1 {
			t.Errorf("%v says (%v):\n%s", args, err, out)
		}
		if n := strings.Count(string(out), ", netsky 0.0.9\n"); n != 0 != (len(args) == 2) {
			t.Errorf("%v names it with %d agents:\n%s", args, n, out)
		}
	}
	w.must(t, "netsky", "down", "agent0", "agent1")
	w.must(t, "netsky", "up", "agent0", "agent1")
	testworld.Lacks(t, w.must(t, "netsky", "status", "-v"), "0.0.9", "after a new start")
}

// The scripts install the releases that the programs are compared with.
func TestTestedReleases(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"claude/version.go": claude.Tested.String(), "codex/appserver/version.go": appserver.Tested.String()} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", ". scripts/tools; tested_release "+file)
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want+"\n" {
			t.Errorf("%s: %q %v, want %s", file, out, err, want)
		}
	}
}
