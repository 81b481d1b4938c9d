package tmux_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/tmux"
)

// slowly makes s a server whose tmux program does something else with what changes
// something: told is a line of shell for that, asked is carried out before panes are
// listed. $REAL is tmux, $PID the server that runs.
func slowly(tb testing.TB, s *tmux.Server, told, asked string) *tmux.Server {
	tb.Helper()
	real := testworld.Got(exec.LookPath("tmux"))(tb)
	dir := tb.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nREAL=%s PID=%d\ncase $* in\n*source-file*) %s ;;\n*list-panes*) %s ;;\nesac\nexec $REAL \"$@\"\n",
		real, serverPID(tb, s), told, asked)
	testworld.Program(tb, filepath.Join(dir, "tmux"), script)
	return &tmux.Server{Socket: s.Socket, Tags: s.Tags, Env: append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))}
}

// An answer counts, however late the server closes the output of the program that
// brought it.
func TestOutputHeldOpen(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent1"))
	testworld.EqualList(t, names(mustPanes(t, slowly(t, s, ":", `$REAL "$@"; sleep 1 & exit`))), []string{"agent1"}, "sessions")
}

// An error about a thousand sessions names a few.
func TestNotStartedIsShort(t *testing.T) {
	t.Parallel()
	e := &tmux.NotStarted{Names: slices.Repeat([]string{"agent1"}, 1000), Cause: errors.New("no more processes")}
	if text := e.Error(); len(text) > 200 || !strings.Contains(text, "and 990 more") || !strings.Contains(text, "no more processes") {
		t.Errorf("error %q", text)
	}
}
