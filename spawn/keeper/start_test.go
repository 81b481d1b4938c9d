package keeper_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
)

// TestCannotStart: the reason is shown, the status is a shell's, and the keeper
// stays until told.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		edit  func(tb testing.TB, l *agent.Launch)
		shows string // DIR stands for the directory
		want  int
	}{
		{"missing", func(tb testing.TB, l *agent.Launch) { l.Argv = []string{l.Dir + "/nothing"} },
			"agent1: DIR/nothing: no such file or directory", 127},
		{"not executable", func(tb testing.TB, l *agent.Launch) { l.Argv[0] = mustWrite(tb, l.Dir+"/p", "#!/bin/sh\n", 0o600) },
			"agent1: DIR/p: permission denied", 126},
		{"a directory", func(tb testing.TB, l *agent.Launch) { l.Argv[0] = l.Dir },
			"agent1: DIR: permission denied", 126},
		{"no format", func(tb testing.TB, l *agent.Launch) { l.Argv[0] = testworld.Program(tb, l.Dir+"/p", "words") },
			"agent1: DIR/p: exec format error", 126},
		{"no interpreter", func(tb testing.TB, l *agent.Launch) { l.Argv[0] = testworld.Program(tb, l.Dir+"/p", "#!/nothing\n") },
			"agent1: DIR/p: its interpreter: no such file or directory", 126},
		{"directory gone", func(tb testing.TB, l *agent.Launch) { l.Dir += "/gone" },
			"agent1: directory DIR/gone: no such file or directory", 126},
		{"directory is a file", func(tb testing.TB, l *agent.Launch) { l.Dir = mustWrite(tb, l.Dir+"/p", "", 0o700) },
			"agent1: directory DIR/p: not a directory", 126},
		{"another agent's", func(tb testing.TB, l *agent.Launch) { l.Agent = "agent2" },
			`agent1: launch: belongs to "agent2"`, 126},
		{"empty", func(tb testing.TB, l *agent.Launch) { l.Argv = nil },
			"agent1: launch: no program", 126},
		{"relative", func(tb testing.TB, l *agent.Launch) { l.Argv[0] = "sh" },
			`agent1: launch: program "sh" is not an absolute path`, 126},
		{"relative directory", func(tb testing.TB, l *agent.Launch) { l.Dir = "x" },
			`agent1: launch: directory "x" is not an absolute path`, 126},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			l := r.launch("agent1", "/bin/true")
			dir := l.Dir
			tt.edit(t, &l)
			mustWrite(t, r.home.Path("state/launch/agent1.json"), string(mustJSON(t, l)), 0o600)
			p := r.open("agent1")[0]
			l.Agent = "agent1"
			k := r.ended(l)
			if k.Status == nil || *k.Status != tt.want || k.PID != 0 {
				t.Errorf("record is %+v, want status %d and no process", k, tt.want)
			}
			r.shows(p, "[agent1 exited: ")
			text := strings.ReplaceAll(r.tmux("capture-pane", "-J", "-p", "-t", p.id), dir, "DIR")
			if want := tt.shows + "\n\n" + (end{status: tt.want}).marker("agent1"); !strings.HasPrefix(text, want) {
				t.Errorf("pane shows\n%s\nwant\n%s", text, want)
			}
			r.afterEnd(p)
		})
	}
}

// TestEnvironment: the program has the launch's environment and no other, but
// the terminal's name is the pane's.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.launch("agent1", "/usr/bin/env")
	l.Env = []string{"TERM=wrong", "ONE=1", "TERMS=kept", "TERM_PROGRAM=wrong"}
	r.save(l)
	p := r.open("agent1")[0]
	r.shows(p, "ONE=1\nTERMS=kept\nTERM="+r.tmux("show", "-gv", "default-terminal")+"\nTERM_PROGRAM=tmux\nTERM_PROGRAM_VERSION=")
	if text := r.capture(p); strings.Contains(text, "wrong") || strings.Contains(text, role) {
		t.Errorf("environment is\n%s", text)
	}
}

// TestNoLaunch: who was to be started is not known, so the record has no start.
func TestNoLaunch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, data, shows string }{
		{"missing", "", "agent1.json: no such"},
		{"not JSON", "{", "agent1.json: unexpected end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if tt.data != "" {
				mustWrite(t, r.home.Path("state/launch/agent1.json"), tt.data, 0o600)
			}
			p := r.open("agent1")[0]
			k := r.ended(agent.Launch{Agent: "agent1"})
			testworld.Equal(t, ending(k), "126", "record says")
			r.shows(p, tt.shows)
			r.shows(p, "[agent1 exited: 126]")
			r.afterEnd(p)
		})
	}
}

// TestNoRecord: a home that can't be written is told and stops nothing.
func TestNoRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testworld.Must(t, os.RemoveAll(r.home.Path(home.KeeperDir)))
	mustWrite(t, r.home.Path(home.KeeperDir), "in the way", 0o600)
	p, _ := r.run("agent1", "/bin/sh", "-c", "echo up; read x; exit 4")
	r.shows(p, "up")
	r.shows(p, "agent1: no record: ")
	r.keys(p, "Enter")
	r.shows(p, "[agent1 exited: 4]")
	r.shows(p, "[agent1 exited: 4]\n\nagent1: no record: ")
	r.afterEnd(p)
}

// TestTold: a keeper that is told to go while its program runs passes it on.
func TestTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		program string
		tell    func(r *rig, p pane)
		want    string
	}{
		{"sigterm", "echo up; exec sleep 1000",
			func(r *rig, p pane) { unix.Kill(p.keeper.PID, unix.SIGTERM) }, "SIGTERM"},
		{"sighup", "echo up; exec sleep 1000",
			func(r *rig, p pane) { unix.Kill(p.keeper.PID, unix.SIGHUP) }, "SIGHUP"},
		{"session killed", "echo up; exec sleep 1000",
			func(r *rig, p pane) { r.tmux("kill-session", "-t", p.id) }, "SIGHUP"},
		{"own last word", "trap 'exit 3' TERM; echo up; while :; do sleep 1000 & wait; done",
			func(r *rig, p pane) { unix.Kill(p.keeper.PID, unix.SIGTERM) }, "3"},
		{"deaf", "trap '' TERM HUP; echo up; while :; do sleep 1000; done",
			func(r *rig, p pane) { unix.Kill(p.keeper.PID, unix.SIGTERM) }, "SIGKILL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.open("agent0") // keeps the server
			p, l := r.run("agent1", "/bin/sh", "-c", tt.program)
			r.shows(p, "up")
			began := time.Now()
			tt.tell(r, p)
			gone(t, "keeper", p.keeper)
			k := r.ended(l)
			testworld.Equal(t, ending(k), tt.want, "record says")
			if waited := time.Since(began); (waited >= 5*time.Second) != (tt.name == "deaf") {
				t.Errorf("it took %v", waited)
			}
		})
	}
}

func mustWrite(tb testing.TB, name, data string, mode os.FileMode) string {
	tb.Helper()
	testworld.Must(tb, os.WriteFile(name, []byte(data), mode))
	return name
}
