package tmux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
)

// Known remembers the processes of servers by the paths of their sockets. A server whose
// socket was removed, as cleaners of /tmp do, runs on with all its sessions, and only its
// process can tell.
type Known interface {
	TmuxServers(socket string) []proc.Process
	NoteTmuxServer(socket string, p proc.Process) error
}

// A socket is where a server listens, and the servers that are known to have listened there.
type socket struct {
	path, label string
	known       Known // may be nil
}

// noted are the servers, by their sockets, that Known has been told of.
var noted sync.Map

// note remembers the server that has just answered with these panes.
func (s socket) note(panes []listed) {
	if s.known == nil || len(panes) == 0 {
		return
	}
	id := panes[0].Server
	if was, ok := noted.Load(s.path); ok && was == id {
		return
	}
	number, _, _ := strings.Cut(id, "-")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	p, err := proc.Find(pid)
	if err != nil {
		return
	}
	// Not remembered, it is only not found again once its socket is removed.
	if s.known.NoteTmuxServer(s.path, p) == nil {
		noted.Store(s.path, id)
	}
}

// living returns the known servers of this socket that run.
func (s socket) living() (list []proc.Process) {
	if s.known == nil {
		return nil
	}
	for _, p := range s.known.TmuxServers(s.path) {
		if p.Alive() {
			list = append(list, p)
		}
	}
	return list
}

func (s socket) unreachable(ctx context.Context) (list []proc.Process) {
	ctx, cancel := context.WithTimeout(ctx, exiting)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		list = s.living()
		if len(list) == 0 {
			return nil
		}
		answers := 0
		if conn, err := net.Dial("unix", s.path); err == nil {
			answers, _ = proc.Peer(conn.(*net.UnixConn))
			conn.Close()
		}
		if list = without(list, answers); len(list) == 0 || proc.Sleep(ctx, pause) != nil {
			return list
		}
	}
}

func without(list []proc.Process, pid int) (rest []proc.Process) {
	for _, p := range list {
		if p.PID != pid {
			rest = append(rest, p)
		}
	}
	return rest
}

const (
	// exiting is how long a server may take to make its socket again, or to exit.
	exiting = 3 * time.Second
	// ending is how long one that may be exiting is left alone: it would leave the socket
	// that it makes.
	ending = 128 * time.Millisecond
)

// revive has a known server make its socket again, if nobody listens there: if it is
// missing, or, if stale is set, one that refuses connections. The error says that a known
// server runs but can't be reached. It holds the lock that tmux takes to start a server,
// so that none is started meanwhile.
func (s socket) revive(ctx context.Context, stale bool) error {
	if s.known == nil || s.listens(stale) {
		return nil
	}
	list := s.living()
	if len(list) == 0 {
		return nil
	}
	if err := s.socketDir(); err != nil {
		return s.lost(list[0], err)
	}
	lock, err := os.OpenFile(s.path+".lock", os.O_WRONLY|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return s.lost(list[0], err)
	}
	defer lock.Close()
	ctx, cancel := context.WithTimeout(ctx, exiting)
	defer cancel()
	for pause := time.Millisecond; syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil; pause = min(2*pause, 100*time.Millisecond) {
		if proc.Sleep(ctx, pause) != nil {
			return s.lost(list[0], errors.New("another process is starting a server"))
		}
	}
	for _, p := range list {
		for pause := time.Millisecond; pause < ending && p.Alive() && !s.listens(true); pause *= 2 {
			if proc.Sleep(ctx, pause) != nil {
				break
			}
		}
		if s.listens(true) {
			return nil
		}
		if err := p.Signal(unix.SIGUSR1); err != nil {
			continue // it has exited
		}
		for pause := time.Millisecond; p.Alive() && !s.listens(true); pause = min(2*pause, 100*time.Millisecond) {
			if proc.Sleep(ctx, pause) != nil {
				return s.lost(p, context.DeadlineExceeded)
			}
		}
	}
	return nil
}

// listens reports whether somebody may listen at the socket: it is there or, if sure is
// set, takes a connection.
func (s socket) listens(sure bool) bool {
	if !sure {
		_, err := os.Lstat(s.path)
		return !errors.Is(err, fs.ErrNotExist)
	}
	conn, err := net.Dial("unix", s.path)
	if err == nil {
		conn.Close()
	}
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED)
}

// socketDir makes the directory of sockets as tmux does, if that was removed too.
func (s socket) socketDir() error {
	err := os.Mkdir(filepath.Dir(s.path), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (s socket) lost(p proc.Process, why error) error {
	return fmt.Errorf("tmux: server %s runs as process %d, but its socket %s is gone and was not made again: %w",
		s.label, p.PID, s.path, why)
}

// unlink removes the socket once nobody listens on it, under the lock that tmux
// takes to start a server, so that it can't be a new server's.
func (s socket) unlink(ctx context.Context) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		gone, err := s.tryUnlink()
		if gone || err != nil {
			return err
		}
		if err := proc.Sleep(ctx, pause); err != nil {
			return fmt.Errorf("tmux kill-server: server %s is still there: %w", s.label, err)
		}
	}
}

func (s socket) tryUnlink() (bool, error) {
	if _, err := os.Lstat(s.path); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	lock, err := os.OpenFile(s.path+".lock", os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, nil // another process is starting a server right now
	}
	conn, err := net.Dial("unix", s.path)
	switch {
	case err == nil:
		return false, conn.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		_ = os.Remove(lock.Name())
		return true, os.Remove(s.path)
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	}
	return false, err
}
