package spawn_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/prompts"
	"netsky/spawn"
)

func layer(name, text string) prompts.Layer { return prompts.Layer{Name: name, Text: text} }

// A person's own session that has an agent's name is never touched.
func TestForeignSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.l.Shared = true
	w.tmux("new-session", "-d", "-s", "agent1", "exec sleep 1000")
	w.tmux("new-session", "-d", "-s", "netsky-ticker", "exec sleep 1000")
	pane := w.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_pid} #{@netsky-home}")
	untouched := func(after string) {
		t.Helper()
		for line := range strings.Lines(pane) {
			if now := w.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_pid} #{@netsky-home}"); !strings.Contains(now+"\n", line) {
				t.Errorf("after %s: %s\nwas there: %s", after, now, line)
			}
		}
	}
	for name, o := range map[string]spawn.UpOptions{
		"agent1":        {Plans: w.plans(demo{}, "agent0", "agent1")},
		"netsky-ticker": {Plans: w.plans(demo{}, "agent0"), Ticker: true},
	} {
		_, err := w.l.Up(w.ctx, o)
		if !errors.Is(err, spawn.ErrForeign) || !strings.Contains(err.Error(), name+": ") || !strings.Contains(err.Error(), w.socket) {
			t.Errorf("up %s: %v", name, err)
		}
		untouched("up")
	}
	testworld.ErrorIs(t, testworld.Err(w.l.Prepare(w.ctx, w.plans(demo{}, "agent1"))), spawn.ErrForeign, "check")
	if d, err := home.Desired(w.home).Load("agent0"); err == nil {
		t.Errorf("a refused up has written %+v", d)
	}
	w.upReady(demo{}, "agent0", "agent2")
	if list := w.statuses(); len(list) != 2 {
		t.Errorf("status lists %v", list)
	}
	if up, err := w.l.TickerUp(w.ctx); up || err != nil {
		t.Errorf("ticker up: %v %v", up, err)
	}
	if list, err := w.l.Remnants(w.ctx); err != nil || strings.Contains(remnants(list), "agent1") {
		t.Errorf("remnants %v %v", list, err)
	}
	log, err := w.l.Down(w.ctx, spawn.DownOptions{Agents: ids("agent1")})
	if !errors.Is(err, spawn.ErrForeign) || len(log) != 0 {
		t.Errorf("down agent1: %v %v", log, err)
	}
	untouched("down agent1")
	if got := w.down(spawn.DownOptions{All: true}); got["agent0"] != "asked acked ended" || got["agent1"] != "" || got["netsky-ticker"] != "" {
		t.Errorf("down --all: %v", got)
	}
	untouched("down --all")
	testworld.Equal(t, w.sessions(), "agent1 netsky-ticker", "sessions")
	// On a person's own server nothing is set but on our sessions.
	if out := w.tmux("show-environment", "-g"); strings.Contains(out, "NETSKY") {
		t.Errorf("global environment:\n%s", out)
	}
}

func remnants(list []spawn.Remnant) string {
	var names []string
	for _, r := range list {
		names = append(names, r.What)
	}
	return strings.Join(names, ", ")
}

// Two homes never see each other, on servers of their own or on one.
func TestTwoHomes(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		name := "own servers"
		if shared {
			name = "one server"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newWorld(t)
			socket := filepath.Join(a.dir, "s2")
			if shared {
				socket = a.socket
			}
			b := newWorldAt(t, testworld.FastHome(t), socket)
			a.l.Shared, b.l.Shared = shared, shared
			a.upReady(demo{}, "agent0", "agent1")
			b.upReady(demo{}, "agent2")
			if shared {
				if _, err := b.l.Up(b.ctx, spawn.UpOptions{Plans: b.plans(demo{}, "agent1")}); !errors.Is(err, spawn.ErrForeign) || !strings.Contains(err.Error(), " "+a.home.Root()+" ") {
					t.Errorf("up of the other home's agent1: %v; want it to name %s", err, a.home.Root())
				}
			} else {
				b.upReady(demo{}, "agent1")
				b.down(spawn.DownOptions{Agents: ids("agent1")})
			}
			starts := map[agent.ID]string{"agent0": a.status("agent0").Start, "agent1": a.status("agent1").Start}
			b.answers("agent2")
			a.answers("agent1")
			if len(a.statuses()) != 2 {
				t.Errorf("a lists %v", a.statuses())
			}
			if _, ok := b.statuses()["agent0"]; ok && b.status("agent0").State != agent.Down {
				t.Errorf("b has agent0: %+v", b.status("agent0"))
			}
			if got := b.down(spawn.DownOptions{All: true}); len(got) != 1 || !strings.HasSuffix(got["agent2"], "ended") {
				t.Errorf("down of b: %v", got)
			}
			for id, st := range a.statuses() {
				if st.State != agent.Idle || st.Start != starts[id] {
					t.Errorf("%s after the other home's down: %+v", id, st)
				}
			}
			if list, err := b.l.Remnants(b.ctx); err != nil || len(list) != 0 {
				t.Errorf("b has left %v %v", list, err)
			}
		})
	}
}

// agent1 never means agent10.
func TestExactNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1", "agent10", "agent11")
	ten := w.status("agent10")
	if got := w.down(spawn.DownOptions{Agents: ids("agent1")}); len(got) != 1 || got["agent1"] != "asked acked ended" {
		t.Errorf("down agent1: %v", got)
	}
	if st := w.status("agent10"); st.Start != ten.Start || st.PID != ten.PID || st.State != agent.Idle {
		t.Errorf("agent10: %+v, was %+v", st, ten)
	}
	// And of an agent1 that is not there.
	if got := w.down(spawn.DownOptions{Agents: ids("agent1"), Force: true}); len(got) != 0 {
		t.Errorf("down agent1 again: %v", got)
	}
	testworld.Equal(t, w.sessions(), "agent10 agent11", "sessions")
}

// What a person has in ~/.tmux.conf does not reach our server.
func TestHostileConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conf := `
set -g destroy-unattached on
set -g base-index 1
setw -g pane-base-index 1
set -g default-command "sleep 0.01"
set -g default-shell /bin/false
set -g remain-on-exit on
set -g exit-empty on
set-hook -g session-created 'kill-session'
set-hook -g after-new-session 'kill-server'
`
	for _, path := range []string{".tmux.conf", ".config/tmux/tmux.conf"} {
		path = filepath.Join(w.dir, path)
		testworld.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testworld.Must(t, os.WriteFile(path, []byte(conf), 0o600))
	}
	w.upReady(demo{}, "agent0", "agent1")
	testworld.Equal(t, w.tmux("list-panes", "-a", "-F", "#{session_name}:#{window_index}.#{pane_index}"), "agent0:0.0\nagent1:0.0", "panes")
	// Nobody is attached, and a client that leaves takes nothing with it.
	w.attachAndLeave("agent1")
	w.answers("agent1")
	if got := w.down(spawn.DownOptions{}); got["agent0"] != "asked acked ended" || got["agent1"] != "asked acked ended" {
		t.Errorf("down: %v", got)
	}
	testworld.Equal(t, w.sessions(), "", "sessions")
}

// A tmux.conf that netsky wrote earlier and nobody has changed gives way to the
// present one; one that a person has changed stays.
func TestTmuxConfIsTheirs(t *testing.T) {
	t.Parallel()
	earlier := testworld.Got(os.ReadFile("testdata/tmux.conf.1"))(t)
	later := testworld.Got(os.ReadFile("testdata/tmux.conf.2"))(t)
	last := testworld.Got(os.ReadFile("testdata/tmux.conf.3"))(t)
	for name, tt := range map[string]struct {
		conf string
		kept bool
	}{
		"as it did last":     {string(last), false},
		"as netsky wrote it": {string(earlier), false},
		"as it did later":    {string(later), false},
		"changed":            {string(earlier) + "set -g mouse on\n", true},
		"empty":              {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			testworld.Must(t, w.home.WriteFile(home.TmuxConfFile, []byte(tt.conf), false))
			w.upReady(demo{}, "agent1")
			now, err := w.home.ReadFile(home.TmuxConfFile, 1<<20)
			if err != nil || (string(now) == tt.conf) != tt.kept || !tt.kept && !strings.Contains(string(now), "session_path") {
				t.Errorf("kept %v, want %v (%v):\n%s", string(now) == tt.conf, tt.kept, err, now)
			}
		})
	}
}

// attachAndLeave attaches a client in control mode and has it gone again.
func (w *world) attachAndLeave(name string) {
	w.Helper()
	cmd := w.tmuxCommand("-C", "attach-session", "-t", "="+name)
	in := testworld.Got(cmd.StdinPipe())(w)
	testworld.Must(w, cmd.Start())
	testworld.WaitOr(w, func() bool { return w.tmux("list-clients") != "" }, func() string { return "no client" })
	in.Close()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
}
