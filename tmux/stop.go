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
	return s.unlink(ctx)
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

// unlink removes the socket once nobody listens on it, under the lock that tmux
// takes to start a server, so that it can't be a new server's.
func (s *Server) unlink(ctx context.Context) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		gone, err := s.tryUnlink()
		if gone || err != nil {
			return err
		}
		if err := proc.Sleep(ctx, pause); err != nil {
			return fmt.Errorf("tmux kill-server: server %s is still there: %w", s.label(), err)
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
		gone, err := s.tryUnlink()
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

func (s *Server) tryUnlink() (bool, error) {
	if _, err := os.Lstat(s.path()); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	lock, err := os.OpenFile(s.path()+".lock", os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, nil // another process is starting a server right now
	}
	conn, err := net.Dial("unix", s.path())
	switch {
	case err == nil:
		return false, conn.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		_ = os.Remove(lock.Name())
		return true, os.Remove(s.path())
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	}
	return false, err
}
