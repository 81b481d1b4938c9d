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
	c := testworld.Got(s.Control(tb.Context(), session))(tb)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func mustDo(tb testing.TB, c *tmux.Client, line ...string) string {
	tb.Helper()
	out, err := c.Do(tb.Context(), line...)
	testworld.Must(tb, err, "Do(%q)", line)
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
			testworld.Equal(t, got, tt.want, "Do(%q)", tt.lines)
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
			testworld.Equal(t, mustDo(t, c, line), want, "Do(%q)", line)
		}
	}
	testworld.EqualList(t, names(mustStart(t, s, idle("agent2"))), []string{"agent1", "agent2"}, "Start()")
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
	testworld.ErrorIs(t, testworld.Err(s.Control(t.Context(), "agent1")), tmux.ErrNoServer, "Control() without a server")
	mustStart(t, s, idle("agent10"))
	testworld.ErrorIs(t, testworld.Err(s.Control(t.Context(), "agent1")), tmux.ErrNotFound, "Control(agent1) beside agent10")
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
	testworld.ErrorIs(t, testworld.Err(c.Do(t.Context(), "list-sessions")), tmux.ErrClosed, "Do()")
	for range c.Notices() {
	}
	testworld.Equal(t, c.Close(), nil, "Close()")
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
	testworld.ErrorIs(t, testworld.Err(c.Capture(t.Context(), "%99", tmux.Capture{})), tmux.ErrNotFound, "Client.Capture(%%99)")
	testworld.Equal(t, plain(t, s, "list-buffers"), "", "buffers left")
}

func mustHub(tb testing.TB, s *tmux.Server) *tmux.Client {
	tb.Helper()
	c := testworld.Got(s.OpenHub(tb.Context(), "hub"))(tb)
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
	testworld.EqualList(t, names(panes), []string{"agent1", "agent10", "agent2"}, "Panes() beside a hub")
	testworld.Must(t, s.Kill(t.Context(), find(t, panes, "agent1")))
	testworld.Wait(t, "end of agent1", func() bool { return syscall.Kill(find(t, panes, "agent1").PID, 0) != nil })
	// A person kills a session: its program lives on, only in the hub.
	orphan := find(t, panes, "agent2").PID
	plain(t, s, "kill-session", "-t", "=agent2")
	testworld.Must(t, syscall.Kill(orphan, 0), "the orphan")
	testworld.Must(t, c.Close())
	again := mustHub(t, s)
	testworld.Wait(t, "end of the orphan", func() bool { return syscall.Kill(orphan, 0) != nil })
	testworld.Equal(t, syscall.Kill(find(t, panes, "agent10").PID, 0), nil, "agent10 did not outlive the stale hub")
	testworld.Equal(t, mustDo(t, again, "list-windows -t =hub -F '#{window_name}'"), "hub", "windows of the new hub")
	for range 2 {
		testworld.Equal(t, s.CloseHub(t.Context(), "hub"), nil, "CloseHub()")
	}
	testworld.Equal(t, plain(t, s, "list-sessions", "-F", "#{session_name}"), "agent10", "sessions after CloseHub")
	if err := s.CloseHub(t.Context(), "agent10"); err != nil || !slices.Contains(names(mustPanes(t, s)), "agent10") {
		t.Errorf("CloseHub() of a session that is no hub = %v, want it to stay", err)
	}
	if _, err := s.OpenHub(t.Context(), "agent10"); err == nil || !slices.Contains(names(mustPanes(t, s)), "agent10") {
		t.Errorf("OpenHub() over a session that is no hub = %v", err)
	}
}

// Panes that a client is asked for are those that a program lists; without the client one does.
func TestThrough(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := mustHub(t, s)
	mustStart(t, s, idle("agent1"), idle("agent2"))
	want := mustPanes(t, s)
	none := &tmux.Server{Socket: s.Socket, Conf: s.Conf, Tags: s.Tags, Env: append([]string{"PATH=" + t.TempDir()}, os.Environ()...)}
	none.Env = slices.DeleteFunc(none.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=/usr") })
	testworld.Fails(t, testworld.Err(none.Panes(t.Context())), "no such program", "without a client")
	none.Through(c)
	testworld.Equal(t, fmt.Sprint(names(mustPanes(t, none))), fmt.Sprint(names(want)), "by the client")
	testworld.Equal(t, find(t, mustPanes(t, none), "agent2").Server, find(t, want, "agent2").Server)
	testworld.Must(t, s.Kill(t.Context(), find(t, want, "agent1")))
	testworld.EqualList(t, names(mustPanes(t, none)), []string{"agent2"}, "by the client, one less")
	testworld.Must(t, c.Close())
	testworld.Fails(t, testworld.Err(none.Panes(t.Context())), "no such program", "with a client that has ended")
	none.Through(nil)
	testworld.Fails(t, testworld.Err(none.Panes(t.Context())), "no such program", "without a client again")
	s.Through(mustHub(t, s))
	testworld.EqualList(t, names(mustPanes(t, s)), []string{"agent2"}, "by a client")
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
	testworld.EqualList(t, names(mustPanes(t, s)), []string{"agent1"}, "left")
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
