package tmux_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"netsky/internal/proc"
	"netsky/tmux"
)

// memory is a Known.
type memory struct {
	mu   sync.Mutex
	list []proc.Process
}

func (m *memory) TmuxServers(string) []proc.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

func (m *memory) NoteTmuxServer(_ string, p proc.Process) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append([]proc.Process{p}, m.list...)
	return nil
}

// knownServer is a server on a socket below a directory of its own.
func knownServer(t *testing.T) *tmux.Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &tmux.Server{Socket: filepath.Join(dir, "d", "s"), Known: new(memory)}
}

// A server whose socket was removed, even with its directory, is the server: whatever is
// asked of it, and no second one is started.
func TestSocketRemoved(t *testing.T) {
	t.Parallel()
	s := knownServer(t)
	dir := filepath.Dir(s.Socket)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mustStart(t, s, idle("a"))
	t.Cleanup(func() { mustStop(t, s) })
	pid := serverPID(t, s)
	for _, remove := range []func(string) error{os.Remove, func(string) error { return os.RemoveAll(dir) }} {
		if err := remove(s.Socket); err != nil {
			t.Fatal(err)
		}
		if got := names(mustPanes(t, s)); !slices.Equal(got, []string{"a"}) {
			t.Errorf("without its socket: sessions %v", got)
		}
	}
	if err := os.Remove(s.Socket); err != nil {
		t.Fatal(err)
	}
	if got := names(mustStart(t, s, idle("b"))); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("Start() = %v", got)
	}
	if now := serverPID(t, s); now != pid {
		t.Errorf("server %d, before %d", now, pid)
	}
	if err := os.Remove(s.Socket); err != nil {
		t.Fatal(err)
	}
	if c, err := s.OpenHub(t.Context(), "hub"); err != nil {
		t.Errorf("OpenHub() = %v", err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
}
