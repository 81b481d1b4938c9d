package tmux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
)

// Stop ends the server with all its sessions and removes its socket. Control
// clients are asked to leave first, and waited for: with one attached, tmux can
// hang forever. Without a server only the socket is removed. The default server
// is refused, because it is a person's.
func (s *Server) Stop(ctx context.Context) error {
	if s.label() == "default" {
		return errors.New("tmux kill-server: the default server is not ours to stop")
	}
	ctx, cancel, err := settled(ctx, "kill-server")
	if err != nil {
		return err
	}
	defer cancel()
	err = s.dismiss(ctx)
	if err == nil {
		_, err = s.run(ctx, nil, "kill-server")
	}
	if err != nil && !errors.Is(err, ErrNoServer) {
		return err
	}
	return s.socket().unlink(ctx)
}

// dismiss waits until no control client is attached.
func (s *Server) dismiss(ctx context.Context) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		out, err := s.run(ctx, nil, "list-clients", "-F", "#{client_control_mode} #{client_name}")
		if err != nil {
			return err
		}
		var names []string
		for line := range strings.Lines(out) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "1 "); ok {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if _, err := s.run(ctx, nil, "detach-client", "-t", name); err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
		}
		if err := proc.Sleep(ctx, pause); err != nil {
			return fmt.Errorf("tmux kill-server: control clients do not leave: %s: %w", strings.Join(names, ", "), err)
		}
	}
}

// Sweep removes the socket that a server has left: tmux does not when its last
// session ends, nor does one that was killed. A server that still exits, and may
// answer until it has, is waited for, for three seconds; one that has a session
// keeps its socket, and what is no socket of this user's stays, both without an
// error.
func (s *Server) Sweep(ctx context.Context) error {
	if s.label() == "default" {
		return errors.New("tmux: the default server's socket is not ours to remove")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		info, err := os.Lstat(s.path())
		if err != nil || info.Mode().Type() != fs.ModeSocket || !mine(info) {
			return nil
		}
		gone, err := s.socket().tryUnlink()
		if gone || err != nil {
			return err
		}
		if out, _ := s.run(ctx, nil, "list-sessions"); out != "" {
			return nil
		}
		if proc.Sleep(ctx, pause) != nil {
			return nil
		}
	}
}

// mine reports whether the file is this user's.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

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
	return s.socket().unlink(ctx)
}
