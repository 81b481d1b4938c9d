package keeper_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
	"netsky/internal/testworld"
)

func mustJSON(tb testing.TB, v any) []byte {
	tb.Helper()
	return testworld.Got(json.Marshal(v))(tb)
}

const meek = "echo up; exec sleep 1000"

// TestStrays: what left the program's group, session and parent is found below
// the keeper while that lives, and by its environment afterwards.
func TestStrays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		tell    unix.Signal
		subtree bool // found without the environment
	}{
		{"keeper lives", 0, true},
		{"keeper killed", unix.SIGKILL, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.open("agent0")
			stranger := testworld.Start(t, exec.Command("/bin/sh", "-c", meek))
			// A daemon by double fork, in a session of its own and deaf to HUP.
			script := `(setsid sh -c 'trap "" HUP; echo $$ > stray; while :; do sleep 1000; done' &) ; while [ ! -s stray ]; do :; done; echo up; exec sleep 1000`
			p, l := r.run("agent1", "/bin/sh", "-c", script)
			r.shows(p, "up")
			data := testworld.Got(os.ReadFile(r.home.Path("stray")))(t)
			pid := testworld.Got(strconv.Atoi(strings.TrimSpace(string(data))))(t)
			stray := testworld.Got(proc.Find(pid))(t)
			program := r.program(l).Process
			if tt.tell != 0 {
				testworld.Must(t, unix.Kill(p.keeper.PID, tt.tell))
				gone(t, "keeper", p.keeper)
				gone(t, "program", program)
			}
			below := testworld.Got(proc.Descendants(p.keeper.PID, ""))(t)
			testworld.Equal(t, has(below, stray), tt.subtree, "below the keeper: %v, stray %v", below, stray)
			list := mustDescendants(t, p.keeper.PID, l.Start)
			if !has(list, stray) || has(list, stranger) {
				t.Errorf("found %v, want with %v and without %v", list, stray, stranger)
			}
			testworld.EqualList(t, proc.End(t.Context(), list, time.Second), nil, "left")
			testworld.EqualList(t, mustDescendants(t, p.keeper.PID, l.Start), nil, "still there")
			if !stranger.Alive() {
				t.Error("the stranger was ended")
			}
		})
	}
}

// TestReaps: orphans below the keeper leave no zombies, before and after the
// program's end.
func TestReaps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	script := `for i in 1 2 3; do (sleep 0.0$i &); done; (sleep 0.3 &); exit 2`
	p, l := r.run("agent1", "/bin/sh", "-c", script)
	r.ended(l)
	testworld.WaitOr(t, func() bool {
		err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(p.keeper.PID)).Run()
		return err != nil // none
	}, func() string { return "the keeper has children" })
	r.shows(p, "[agent1 exited: 2]")
	r.afterEnd(p)
}

func has(list []proc.Process, p proc.Process) bool {
	return slices.Contains(list, p)
}
