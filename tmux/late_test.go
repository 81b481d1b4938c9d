package tmux_test

import (
	"errors"
	"fmt"
	"net"
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
// brought it: it is waited for, and asked for again.
func TestOutputHeldOpen(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent1"))
	const late = `[ -e $0.once ] || { : >$0.once; $REAL "$@"; sleep 5 & exit; }`
	testworld.EqualList(t, names(mustPanes(t, slowly(t, s, ":", late))), []string{"agent1"}, "sessions")
	panes, err := slowly(t, s, late, ":").Start(t.Context(), nil, []tmux.Session{idle("agent2")})
	testworld.Equal(t, err, nil, "Start()")
	testworld.EqualList(t, names(panes), []string{"agent1", "agent2"}, "sessions after it")
}

// An error about a thousand sessions names a few.
func TestNotStartedIsShort(t *testing.T) {
	t.Parallel()
	e := &tmux.NotStarted{Names: slices.Repeat([]string{"agent1"}, 1000), Cause: errors.New("no more processes")}
	if text := e.Error(); len(text) > 200 || !strings.Contains(text, "and 990 more") || !strings.Contains(text, "no more processes") {
		t.Errorf("error %q", text)
	}
}

// refuse is a process that takes connections at a socket and answers nothing, as
// a server does that hangs in its exit.
func refuse(path string) {
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		conn.Close()
	}
}

// Reap makes room for a new server where an old one refuses everything.
func TestReap(t *testing.T) {
	t.Parallel()
	dir := testworld.Got(os.MkdirTemp("", "n"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) }) // after the server has gone by its socket
	s := &tmux.Server{Socket: filepath.Join(dir, "s")}
	testworld.Equal(t, s.Reap(t.Context()), nil, "without a server")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "REFUSER="+s.Socket)
	testworld.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	testworld.Wait(t, "the socket", func() bool { _, err := os.Stat(s.Socket); return err == nil })
	testworld.ErrorIs(t, testworld.Err(s.Start(t.Context(), nil, []tmux.Session{idle("a")})), tmux.ErrNoServer, "Start()")
	testworld.Equal(t, s.Reap(t.Context()), nil, "Reap()")
	<-ended
	mustStart(t, s, idle("a"))
	t.Cleanup(func() { mustStop(t, s) })

	// One that answers is not Reap's business.
	testworld.Fails(t, s.Reap(t.Context()), "", "Reap() of a server that answers: no error")
	testworld.Len(t, names(mustPanes(t, s)), 1, "sessions")
	testworld.Fails(t, (&tmux.Server{}).Reap(t.Context()), "", "Reap() of a person's own server: no error")
}
