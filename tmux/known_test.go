package tmux_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"netsky/internal/proc"
	"netsky/internal/testworld"
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
	dir := testworld.Got(os.MkdirTemp("", "n"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &tmux.Server{Socket: filepath.Join(dir, "d", "s"), Known: new(memory)}
}

// A server whose socket was removed, even with its directory, is the server: whatever is
// asked of it, and no second one is started.
func TestSocketRemoved(t *testing.T) {
	t.Parallel()
	s := knownServer(t)
	dir := filepath.Dir(s.Socket)
	testworld.Must(t, os.Mkdir(dir, 0o700))
	mustStart(t, s, idle("a"))
	t.Cleanup(func() { mustStop(t, s) })
	pid := serverPID(t, s)
	for _, remove := range []func(string) error{os.Remove, func(string) error { return os.RemoveAll(dir) }} {
		testworld.Must(t, remove(s.Socket))
		testworld.EqualList(t, names(mustPanes(t, s)), []string{"a"}, "without its socket: sessions")
	}
	testworld.Must(t, os.Remove(s.Socket))
	testworld.EqualList(t, names(mustStart(t, s, idle("b"))), []string{"a", "b"}, "Start()")
	if now := serverPID(t, s); now != pid {
		t.Errorf("server %d, before %d", now, pid)
	}
	testworld.Must(t, os.Remove(s.Socket))
	if c, err := s.OpenHub(t.Context(), "hub"); err != nil {
		t.Errorf("OpenHub() = %v", err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
}
