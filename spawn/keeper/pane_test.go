package keeper_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

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
	testworld.Equal(r.tb, r.capture(p), before, "the pane after the keys")
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
	testworld.Must(t, unix.Kill(-k.PID, unix.SIGSTOP))
	r.keys(p, "two", "Enter")
	r.shows(p, "two\ntwo")
	r.keys(p, "C-d")
	testworld.Equal(t, ending(r.ended(l)), "0", "record says")
}

// TestScreenIsReset: a full-screen program that is killed can't tidy up.
func TestScreenIsReset(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, l := r.run("agent1", os.Args[0])
	r.shows(p, "shown")
	raw := r.home.Path("raw") // what the pane prints from here on
	r.tmux("pipe-pane", "-t", p.id, "cat > "+raw)
	testworld.Must(t, unix.Kill(r.program(l).PID, unix.SIGKILL))
	r.ended(l)
	r.shows(p, "before\n\n[agent1 killed: SIGKILL]")
	const modes = "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{keypad_cursor_flag} #{scroll_region_upper}-#{scroll_region_lower}"
	testworld.Equal(t, r.tmux("display", "-p", "-t", p.id, modes), "0 0 1 0 0-23", "modes are")
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
