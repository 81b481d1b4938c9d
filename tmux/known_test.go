package tmux_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
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

// One that can't be reached has not ended, and none is started in its place.
func TestServerUnreachable(t *testing.T) {
	t.Parallel()
	s := knownServer(t)
	if err := os.Mkdir(filepath.Dir(s.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	mustStart(t, s, idle("a"))
	t.Cleanup(func() { mustStop(t, s) })
	p, err := proc.Find(serverPID(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Unreachable(t.Context()); len(got) != 0 {
		t.Errorf("Unreachable() = %v of a server that answers", got)
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Signal(syscall.SIGCONT) })
	if err := os.Remove(s.Socket); err != nil {
		t.Fatal(err)
	}
	if panes, err := s.Panes(t.Context()); err == nil {
		t.Errorf("Panes() = %v without an error", names(panes))
	}
	if panes, err := s.Start(t.Context(), nil, []tmux.Session{idle("b")}); err == nil {
		t.Errorf("Start() = %v without an error", names(panes))
	}
	if got := s.Unreachable(t.Context()); !slices.Equal(got, []proc.Process{p}) {
		t.Errorf("Unreachable() = %v, want %v", got, p)
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testworld.Wait(t, "the server to answer again", func() bool {
		panes, err := s.Panes(t.Context())
		return err == nil && slices.Equal(names(panes), []string{"a"})
	})
}

// A second server that took the socket hides the first one, which is back once that has
// exited.
func TestServerReplaced(t *testing.T) {
	t.Parallel()
	s := knownServer(t)
	if err := os.Mkdir(filepath.Dir(s.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	mustStart(t, s, idle("a"))
	t.Cleanup(func() { mustStop(t, s) })
	first := serverPID(t, s)
	if err := os.Remove(s.Socket); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tmux", "-f", os.DevNull, "-S", s.Socket, "new-session", "-d", "-s", "b", "sleep 1000").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := names(mustPanes(t, s)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("the second server has %v", got)
	}
	if got := s.Unreachable(t.Context()); len(got) != 1 || got[0].PID != first {
		t.Errorf("Unreachable() = %v, want %d", got, first)
	}
	plain(t, s, "kill-session", "-t", "b")
	testworld.Wait(t, "the first server", func() bool {
		panes, err := s.Panes(t.Context())
		return err == nil && slices.Equal(names(panes), []string{"a"})
	})
	if got := plain(t, s, "display-message", "-p", "#{pid}"); got != strconv.Itoa(first) {
		t.Errorf("server %s answers, want %d", got, first)
	}
}
