package tmux_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"netsky/internal/testworld"
	"netsky/tmux"
)

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
