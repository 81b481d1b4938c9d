//go:build live

package daemon_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/internal/testworld"
)

// A daemon that can't see the agents, since it can start no tmux, says so: to the owner, in
// the log, and among what needs them, as long as it lasts.
func TestBlind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	real := testworld.Got(exec.LookPath("tmux"))(t)
	bin := t.TempDir()
	broken := filepath.Join(bin, "broken")
	script := "#!/bin/sh\n[ -e " + broken + " ] && { echo 'fork failed: Resource temporarily unavailable' >&2; exit 1; }\nexec " + real + ` "$@"` + "\n"
	testworld.Must(t, os.WriteFile(filepath.Join(bin, "tmux"), []byte(script), 0o700))
	w.env[0] = "PATH=" + bin + ":" + os.Getenv("PATH") // also that of w.l
	w.up(sh(ready+"read line"), agent.Clone(1))
	program := w.statuses().Find("agent1").PID
	testworld.Must(t, os.WriteFile(broken, nil, 0o600))
	w.start() // one that had its control client by now would need no other tmux to see them
	syscall.Kill(program, syscall.SIGKILL)
	blind := func() (list []attention.Need) {
		list = testworld.Got(attention.Collect(w.ctx, w.home, attention.NewMail(w.bus), attention.Sources{Now: time.Now(), Daemon: attention.DaemonRuns}))(t)
		return slices.DeleteFunc(list, func(n attention.Need) bool { return n.Kind != attention.Daemon })
	}
	testworld.WaitOr(t, func() bool { return len(blind()) == 1 }, w.log)
	if n := blind()[0]; !strings.Contains(n.Text, "fork failed") || n.Command != "netsky doctor" {
		t.Errorf("it is %+v", n)
	}
	w.event("can't look after the agents: tmux list-panes: fork failed")
	told := func(s string) bool { return strings.HasPrefix(s, "netsky can't look after the agents: ") }
	testworld.WaitOr(t, func() bool { return slices.ContainsFunc(w.owned(), told) }, w.log)
	testworld.Must(t, os.Remove(broken))
	testworld.WaitOr(t, func() bool { return len(blind()) == 0 }, w.log)
	w.event("sees the agents again")
	w.event("agent1 died: killed by SIGKILL")
}
