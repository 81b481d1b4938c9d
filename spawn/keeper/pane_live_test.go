//go:build live

package keeper_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"
)

// TestShell: a shell as the program has its own jobs, which are its business.
func TestShell(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.launch("agent1", "/bin/sh", "-i")
	l.Env = append(l.Env, "PS1=ready> ", "ENV=")
	r.save(l)
	p := r.open("agent1")[0]
	r.shows(p, "ready>")
	r.keys(p, "sleep 1000", "Enter")
	testworld.WaitOr(t, func() bool { return r.tmux("display", "-p", "-t", p.id, "#{pane_current_command}") == "sleep" },
		func() string { return "the job has not got the terminal" })
	r.keys(p, "C-z")
	r.shows(p, "Stopped")
	r.keys(p, "kill -9 %1; wait; echo TERM is $TERM", "Enter")
	r.shows(p, "TERM is "+r.tmux("show", "-gv", "default-terminal"))
	r.keys(p, "exit 7", "Enter", "exit 7", "Enter") // it may object once
	testworld.Equal(t, ending(r.ended(l)), "7", "record says")
}

func TestFullScreen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, l := r.run("agent1", os.Args[0])
	r.shows(p, "size 80x24 shown")
	r.keys(p, "C-c")
	r.shows(p, "key 3")
	r.tmux("resize-window", "-t", p.id, "-x", "70", "-y", "19")
	r.shows(p, "size 70x19 resized")
	r.keys(p, "C-z")
	r.shows(p, "size 70x19 back")
	r.keys(p, "j", "b") // reading in the background stops it
	r.shows(p, "size 70x19 ")
	r.keys(p, "a")
	r.shows(p, "key 97")
	r.keys(p, "q")
	testworld.Equal(t, ending(r.ended(l)), "0", "record says")
	r.shows(p, "before\nsuspended\nbye 1\nbye 2\n\n[agent1 exited: 0]")
	r.afterEnd(p)
}

// TestPagers: programs that people know.
func TestPagers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		program string
		where   string // the key that makes it say at which line of how many it is
		quit    []string
	}{
		{"less", "=", []string{"q"}},
		{"vi", "C-g", []string{":q!", "Enter"}},
	} {
		t.Run(tt.program, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(tt.program)
			if err != nil {
				t.Fatalf("%v: scripts/test installs it", err)
			}
			r := newRig(t)
			file := r.home.Path("text")
			testworld.Must(t, os.WriteFile(file, []byte(strings.Repeat("first\n", 30)+"needle\n"+strings.Repeat("last\n", 30)), 0o600))
			p, l := r.run("agent1", path, file)
			r.shows(p, "first\nfirst")
			r.keys(p, "C-z")
			r.press(p, func() bool { return strings.Contains(r.capture(p), "lines") }, tt.where)
			r.keys(p, "/needle", "Enter")
			r.shows(p, "needle\nlast")
			r.tmux("resize-window", "-t", p.id, "-x", "60", "-y", "12")
			testworld.WaitOr(t, func() bool { return strings.Count(r.capture(p), "\n") <= 12 }, func() string { return r.capture(p) })
			r.press(p, func() bool {
				k, err := r.home.LoadKeeper(l.Agent)
				return err == nil && k.EndedMS != 0
			}, tt.quit...)
			testworld.Equal(t, ending(r.ended(l)), "0", "%s: record says", tt.program)
			r.shows(p, "["+string(l.Agent)+" exited: 0]")
			r.afterEnd(p)
		})
	}
}

// press presses keys until what they are for has come about, again after a
// second: a program that is being stopped, continued or resized may drop them,
// as it does below a shell.
func (r *rig) press(p pane, done func() bool, keys ...string) {
	r.tb.Helper()
	var pressed time.Time
	testworld.WaitOr(r.tb, func() bool {
		if done() {
			return true
		}
		if time.Since(pressed) > time.Second {
			pressed = time.Now()
			r.keys(p, keys...)
		}
		return false
	}, func() string { return r.capture(p) })
}
