package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/tmux"
)

func mustControl(tb testing.TB, s *tmux.Server, session string) *tmux.Client {
	tb.Helper()
	c, err := s.Control(tb.Context(), session)
	testworld.Must(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func mustDo(tb testing.TB, c *tmux.Client, line ...string) string {
	tb.Helper()
	out, err := c.Do(tb.Context(), line...)
	if err != nil {
		tb.Fatalf("Do(%q) = %v", line, err)
	}
	return out
}

func TestDo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent1"), idle("agent10"))
	c := mustControl(t, s, "agent1")
	for _, tt := range []struct {
		name    string
		lines   []string
		want    string
		failing string
	}{
		{"one", []string{"display-message -p x"}, "x", ""},
		{"none", nil, "", ""},
		{"several", []string{"display-message -p x", "display-message -p y ; display-message -p z"}, "x\ny\nz", ""},
		{"nested", []string{"if-shell -F 1 { display-message -p x }"}, "x", ""},
		{"blank and comment", []string{"   ", "# a comment"}, "", ""},
		{"quoted", []string{"display-message -p " + tmux.Quote("a;\n  ~ %")}, "a;\n  ~ %", ""},
		{"unknown", []string{"no-such-command", "display-message -p x"}, "x", "unknown command: no-such-command"},
		{"open quote", []string{`display-message -p "x`}, "x", ""},
		{"open brace", []string{`if-shell -F 1 { display-message -p x`}, "", "parse error"},
		{"continued", []string{`display-message -p x \`}, "", "parse error"},
		{"empty", []string{""}, "", "empty command line"},
		{"two lines", []string{"a\nb"}, "", "line feed"},
		{"no such session", []string{"list-panes -t =agent", "display-message -p x"}, "x", "no such pane or session"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.Do(t.Context(), tt.lines...)
			if got != tt.want {
				t.Errorf("Do(%q) = %q, want %q", tt.lines, got, tt.want)
			}
			if tt.failing == "" && err != nil || tt.failing != "" && (err == nil || !strings.Contains(err.Error(), tt.failing)) {
				t.Errorf("Do(%q) = %v, want %q", tt.lines, err, tt.failing)
			}
		})
	}
}

// A person's hooks print what nobody asked for, also between the lines of an
// answer; it never becomes part of one.
func TestHooks(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent1"))
	c := mustControl(t, s, "agent1")
	mustDo(t, c, "set-hook -g after-list-panes 'display-message -p hook'", "set-hook -g after-send-keys 'kill-window -t @99'",
		"set-hook -g after-new-session 'display-message -p hook'", "set-hook -g after-display-message list-sessions")
	for i := range 3 {
		for line, want := range map[string]string{
			"list-panes -F x": "x", "display-message -p " + itoa(i): itoa(i), "send-keys a": "",
			"if-shell -F 1 { display-message -p y } ; display-message -p z": "y\nz",
		} {
			if got := mustDo(t, c, line); got != want {
				t.Errorf("Do(%q) = %q, want %q", line, got, want)
			}
		}
	}
	if got := names(mustStart(t, s, idle("agent2"))); !slices.Equal(got, []string{"agent1", "agent2"}) {
		t.Errorf("Start() = %v", got)
	}
}

// Each caller gets the reply to its own line, also after others gave up.
func TestDoConcurrently(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent1"))
	c := mustControl(t, s, "agent1")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for j := range 20 {
				want := fmt.Sprintf("%d-%d", i, j)
				if j%3 == 0 {
					_, _ = c.Do(gone, "display-message -p given-up")
				}
				if got, err := c.Do(t.Context(), "display-message -p "+want); got != want || err != nil {
					t.Errorf("Do() = %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	all.Wait()
}

// More than a pipe holds, to a server that does not read: the call ends with its
// context, and so does every later one.
func TestDoBlocked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent1"))
	c := mustControl(t, s, "agent1")
	pid := serverPID(t, s)
	testworld.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	long := "set-option -g @x " + strings.Repeat("x", 1<<20)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := c.Do(ctx, long)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, tmux.ErrClosed) {
			t.Errorf("Do() = %v, want a deadline error or ErrClosed", err)
		}
	}
}

func TestControlRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	if _, err := s.Control(t.Context(), "agent1"); !errors.Is(err, tmux.ErrNoServer) {
		t.Errorf("Control() without a server = %v, want ErrNoServer", err)
	}
	mustStart(t, s, idle("agent10"))
	if _, err := s.Control(t.Context(), "agent1"); !errors.Is(err, tmux.ErrNotFound) {
		t.Errorf("Control(agent1) beside agent10 = %v, want ErrNotFound", err)
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent1"))
	c := mustControl(t, s, "agent1")
	for i := range 200 { // more than are kept
		mustDo(t, c, fmt.Sprintf("rename-window w%d", i))
	}
	mustStart(t, s, idle("agent2"))
	mustDo(t, c, "display-message -p x")
	testworld.Must(t, c.Close())
	var got []string
	for n := range c.Notices() {
		got = append(got, n.Name)
	}
	if !slices.Contains(got, "sessions-changed") || len(got) > 64 {
		t.Errorf("%d notices, %v, want the newest with sessions-changed", len(got), got)
	}
}

// A client whose server is gone says so, and closes.
func TestServerDies(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent1"))
	c := mustControl(t, s, "agent1")
	testworld.Must(t, syscall.Kill(serverPID(t, s), syscall.SIGKILL))
	if _, err := c.Do(t.Context(), "list-sessions"); !errors.Is(err, tmux.ErrClosed) {
		t.Errorf("Do() = %v, want ErrClosed", err)
	}
	for range c.Notices() {
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if panes, err := s.Panes(t.Context()); panes != nil || err != nil {
		t.Errorf("Panes() = %v, %v, want nothing", panes, err)
	}
}

// nasty is a program whose screen looks like the protocol.
const nasty = `printf 'a\\b \\\\044 $HOME ${x} \\$y ü%%\n%%end 1 2 1\n%%begin 1 2 1\n\033[1;31mred\033[0m\n\\'; exec sleep 1000`

func TestCapture(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	x := tmux.Session{Name: "agent1", Command: "seq 1 300; " + nasty}
	p := find(t, mustStart(t, s, x, idle("agent10")), "agent1")
	c := mustControl(t, s, "agent10")
	testworld.Wait(t, "the last line", func() bool {
		got, err := s.Capture(t.Context(), p.ID, tmux.Capture{})
		return err == nil && strings.HasSuffix(got, "red\n\\\n")
	})
	for _, o := range []tmux.Capture{{}, {Escapes: true}, {Lines: 2}, {Lines: 1000, Escapes: true}} {
		want, err := s.Capture(t.Context(), p.ID, o)
		testworld.Must(t, err)
		got, err := c.Capture(t.Context(), p.ID, o)
		if err != nil || got != want {
			t.Errorf("Client.Capture(%+v) = %q, %v, want %q", o, got, err, want)
		}
		if o.Escapes != strings.Contains(got, "\x1b[") || (o.Lines == 1000) != strings.HasPrefix(got, "1\n2\n") {
			t.Errorf("Client.Capture(%+v) = %q", o, got)
		}
		if n := strings.Count(got, "\n"); o.Lines < 1000 && n != 50+o.Lines {
			t.Errorf("Client.Capture(%+v) has %d lines", o, n)
		}
	}
	if _, err := c.Capture(t.Context(), "%99", tmux.Capture{}); !errors.Is(err, tmux.ErrNotFound) {
		t.Errorf("Client.Capture(%%99) = %v, want ErrNotFound", err)
	}
	if got := plain(t, s, "list-buffers"); got != "" {
		t.Errorf("buffers left: %s", got)
	}
}

func mustHub(tb testing.TB, s *tmux.Server) *tmux.Client {
	tb.Helper()
	c, err := s.OpenHub(tb.Context(), "hub")
	testworld.Must(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func TestHub(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := mustHub(t, s) // starts the server too
	mustStart(t, s, idle("agent1"), idle("agent10"), idle("agent2"))
	for _, name := range []string{"agent1", "agent10", "agent2"} {
		mustDo(t, c, "link-window -d -s ="+name+":0 -t =hub:")
	}
	panes := mustPanes(t, s)
	if got := names(panes); !slices.Equal(got, []string{"agent1", "agent10", "agent2"}) {
		t.Errorf("Panes() beside a hub = %v", got)
	}
	testworld.Must(t, s.Kill(t.Context(), find(t, panes, "agent1")))
	testworld.Wait(t, "end of agent1", func() bool { return syscall.Kill(find(t, panes, "agent1").PID, 0) != nil })
	// A person kills a session: its program lives on, only in the hub.
	orphan := find(t, panes, "agent2").PID
	plain(t, s, "kill-session", "-t", "=agent2")
	if err := syscall.Kill(orphan, 0); err != nil {
		t.Fatalf("the orphan: %v", err)
	}
	testworld.Must(t, c.Close())
	again := mustHub(t, s)
	testworld.Wait(t, "end of the orphan", func() bool { return syscall.Kill(orphan, 0) != nil })
	if err := syscall.Kill(find(t, panes, "agent10").PID, 0); err != nil {
		t.Errorf("agent10 did not outlive the stale hub: %v", err)
	}
	if got := mustDo(t, again, "list-windows -t =hub -F '#{window_name}'"); got != "hub" {
		t.Errorf("windows of the new hub: %q", got)
	}
	for range 2 {
		if err := s.CloseHub(t.Context(), "hub"); err != nil {
			t.Errorf("CloseHub() = %v", err)
		}
	}
	if got := plain(t, s, "list-sessions", "-F", "#{session_name}"); got != "agent10" {
		t.Errorf("sessions after CloseHub: %q", got)
	}
	if err := s.CloseHub(t.Context(), "agent10"); err != nil || !slices.Contains(names(mustPanes(t, s)), "agent10") {
		t.Errorf("CloseHub() of a session that is no hub = %v, want it to stay", err)
	}
	if _, err := s.OpenHub(t.Context(), "agent10"); err == nil || !slices.Contains(names(mustPanes(t, s)), "agent10") {
		t.Errorf("OpenHub() over a session that is no hub = %v", err)
	}
}

// A process that is killed takes its control client with it, harms no session
// and leaves a hub that the next one replaces, also if the server hangs meanwhile.
func TestHubOwnerKilled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent1"))
	owner := mustHelper(t, plain(t, s, "display-message", "-p", "#{socket_path}"))
	client := ""
	testworld.Wait(t, "hub client", func() bool {
		client = plain(t, s, "list-clients", "-F", "#{client_pid}")
		return client != ""
	})
	server := serverPID(t, s)
	testworld.Must(t, syscall.Kill(server, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(server, syscall.SIGCONT) })
	testworld.Must(t, owner.Process.Kill())
	_ = owner.Wait()
	testworld.Must(t, syscall.Kill(server, syscall.SIGCONT))
	testworld.Wait(t, "end of the client", func() bool {
		stat, err := os.ReadFile("/proc/" + client + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	mustHub(t, s)
	if got := names(mustPanes(t, s)); !slices.Equal(got, []string{"agent1"}) {
		t.Errorf("left are %v", got)
	}
}

func TestMain(m *testing.M) {
	if testworld.Testify() {
		return
	}
	if socket := os.Getenv("HUB_OWNER"); socket != "" {
		if _, err := (&tmux.Server{Socket: socket}).OpenHub(context.Background(), "hub"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	if path := os.Getenv("REFUSER"); path != "" {
		refuse(path)
	}
	os.Exit(m.Run())
}
