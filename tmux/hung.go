package tmux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
)

// Reap ends a server that was told to exit and hangs, as tmux 3.3a can if a control client
// was attached: it has no sessions any more, accepts connections, refuses every command,
// and keeps a new server from starting. A server that answers is left alone, which is an
// error; a missing one is not. The default server is refused, because it is a person's.
func (s *Server) Reap(ctx context.Context) error {
	if s.label() == "default" {
		return errors.New("tmux: the default server is not ours to end")
	}
	ctx, cancel := withPatience(ctx)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", s.path())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	pid, err := proc.Peer(conn.(*net.UnixConn))
	if err != nil {
		return fmt.Errorf("tmux: server %s: %w", s.label(), err)
	}
	server, err := proc.Find(pid)
	if err != nil {
		return fmt.Errorf("tmux: server %s, process %d: %w", s.label(), pid, err)
	}
	// The process that listens now has the same number, so its birth is the known one:
	// if the server had died before, nobody would have accepted the connection.
	again, err := (&net.Dialer{}).DialContext(ctx, "unix", s.path())
	if err != nil {
		return err
	}
	defer again.Close()
	if now, err := proc.Peer(again.(*net.UnixConn)); err != nil || now != pid {
		return errors.Join(fmt.Errorf("tmux: server %s: has been replaced by another one", s.label()), err)
	}
	if _, err := s.run(ctx, nil, "list-sessions"); !errors.Is(err, ErrNoServer) {
		return errors.Join(fmt.Errorf("tmux: server %s answers", s.label()), err)
	}
	if err := server.Signal(unix.SIGKILL); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("tmux: server %s: %w", s.label(), err)
	}
	_, _ = conn.Close(), again.Close()
	return s.unlink(ctx)
}
