package keeper_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"

	"golang.org/x/sys/unix"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		program string
		keys    []string
		shows   string // before each next key
		want    end
	}{
		{"ctrl-c", "echo up; exec cat", []string{"C-c"}, "up", end{signal: unix.SIGINT}},
		{"ctrl-backslash", "ulimit -c 0; echo up; exec cat", []string{`C-\`}, "up", end{signal: unix.SIGQUIT}},
		{"ctrl-d", "echo up; exec cat", []string{"C-d"}, "up", end{}},
		// A key that comes while a child is being made may miss it: the trap waits for its end.
		{"caught ctrl-c", "trap 'exit 9' INT; echo up; while :; do sleep 0.1; done", []string{"C-c"}, "up", end{status: 9}},
		{"ctrl-s holds the output", "echo up; read x; seq 9; exit 5", []string{"C-s", "x", "Enter", "C-q"}, "up", end{status: 5}},
		{"ended while ctrl-s holds", "echo up; sleep 0.1 </dev/null; exit 6", []string{"C-s"}, "up", end{status: 6}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p, l := r.run("agent1", "/bin/sh", "-c", tt.program)
			r.shows(p, tt.shows)
			for _, k := range tt.keys {
				r.keys(p, k)
			}
			if got := ending(r.ended(l)); got != tt.want.String() {
				t.Errorf("record says %s, want %v", got, tt.want)
			}
			r.shows(p, tt.want.marker("agent1"))
			r.afterEnd(p)
		})
	}
}

// afterEnd checks that keys do nothing to a keeper whose program has ended.
func (r *rig) afterEnd(p pane) {
	r.tb.Helper()
	before := r.capture(p)
	r.keys(p, "C-c", `C-\`, "C-z", "C-d", "C-s", "x", "Enter", "C-c")
	// An answer of the server after that: it has written the keys.
	r.tmux("resize-window", "-t", p.id, "-y", "26")
	if after := r.capture(p); after != before {
		r.tb.Errorf("keys changed the pane:\n%s\n--- to\n%s", before, after)
	}
	if !p.keeper.Alive() {
		r.tb.Error("keys ended the keeper")
	}
	front, err := exec.Command("ps", "-o", "tpgid=", "-p", strconv.Itoa(p.keeper.PID)).Output()
	if got := strings.TrimSpace(string(front)); err != nil || got != strconv.Itoa(p.keeper.PID) {
		r.tb.Errorf("in the foreground is %s (%v), want the keeper, %d", got, err, p.keeper.PID)
	}
	r.tmux("kill-session", "-t", p.id)
	gone(r.tb, "keeper", p.keeper)
}

// TestStop: what stops is continued, since nobody else would.
func TestStop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, l := r.run("agent1", "/bin/sh", "-c", "echo up; exec cat")
	r.shows(p, "up")
	r.keys(p, "C-z", "one", "Enter")
	r.shows(p, "one\none")
	k := r.program(l)
	if err := unix.Kill(-k.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.keys(p, "two", "Enter")
	r.shows(p, "two\ntwo")
	r.keys(p, "C-d")
	if got := ending(r.ended(l)); got != "0" {
		t.Errorf("record says %s, want 0", got)
	}
}

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
	if got := ending(r.ended(l)); got != "7" {
		t.Errorf("record says %s, want 7", got)
	}
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
	if got := ending(r.ended(l)); got != "0" {
		t.Errorf("record says %s, want 0", got)
	}
	r.shows(p, "before\nsuspended\nbye 1\nbye 2\n\n[agent1 exited: 0]")
	r.afterEnd(p)
}

// TestScreenIsReset: a full-screen program that is killed can't tidy up.
func TestScreenIsReset(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, l := r.run("agent1", os.Args[0])
	r.shows(p, "shown")
	raw := r.home.Path("raw") // what the pane prints from here on
	r.tmux("pipe-pane", "-t", p.id, "cat > "+raw)
	if err := unix.Kill(r.program(l).PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.ended(l)
	r.shows(p, "before\n\n[agent1 killed: SIGKILL]")
	const modes = "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{keypad_cursor_flag} #{scroll_region_upper}-#{scroll_region_lower}"
	if got := r.tmux("display", "-p", "-t", p.id, modes); got != "0 0 1 0 0-23" {
		t.Errorf("modes are %s, want 0 0 1 0 0-23", got)
	}
	if got := r.tmux("capture-pane", "-e", "-p", "-t", p.id); strings.Contains(got, "\x1b[31m") {
		t.Errorf("colour stays: %q", got)
	}
	// tmux 3.3a has no flag for the kitty keyboard protocol; a later one obeys it.
	testworld.WaitOr(t, func() bool {
		data, _ := os.ReadFile(raw)
		return strings.Contains(string(data), "\x1b[<u")
	}, func() string { return "the kitty keyboard protocol is not popped" })
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
			if err := os.WriteFile(file, []byte(strings.Repeat("first\n", 30)+"needle\n"+strings.Repeat("last\n", 30)), 0o600); err != nil {
				t.Fatal(err)
			}
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
			if got := ending(r.ended(l)); got != "0" {
				t.Errorf("%s: record says %s, want 0", tt.program, got)
			}
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
