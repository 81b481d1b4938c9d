package keeper_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// An end is one way for a program to end.
type end struct {
	status int
	signal unix.Signal
}

func (e end) String() string {
	if e.signal != 0 {
		return unix.SignalName(e.signal)
	}
	return fmt.Sprint(e.status)
}

func (e end) marker(id agent.ID) string {
	if e.signal != 0 {
		return fmt.Sprintf("[%s killed: %v]", id, e)
	}
	return fmt.Sprintf("[%s exited: %v]", id, e)
}

// program prints 32 lines and ends so.
func (e end) program() []string {
	how := fmt.Sprint("exit ", e.status)
	if e.signal != 0 {
		how = fmt.Sprintf("ulimit -c 0; kill -%d $$", int(e.signal))
	}
	return []string{"/bin/sh", "-c", `i=1; while [ $i -le 32 ]; do echo "line $i"; i=$((i+1)); done; ` + how}
}

// TestKeeperKilled: whoever watches the pane's process learns of it, and the
// program does not live on unseen.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.open("agent0")
	w := testworld.Got(proc.NewWatcher())(t)
	defer w.Close()
	var ids []agent.ID
	var launches []agent.Launch
	for i := range 20 {
		ids = append(ids, agent.Clone(i+1))
		// One that hears neither the hangup nor the terminal.
		launches = append(launches, r.launch(ids[i], "/bin/sh", "-c", "trap '' HUP TERM INT; echo up; while :; do sleep 1000; done"))
	}
	panes := r.open(ids...)
	for i, p := range panes {
		r.shows(p, "up")
		testworld.Must(t, w.Add(string(ids[i]), p.keeper))
	}
	for i, p := range panes {
		program := r.program(launches[i])
		testworld.Must(t, unix.Kill(p.keeper.PID, unix.SIGKILL))
		select {
		case d := <-w.Deaths():
			if d.Key != string(ids[i]) || d.Process != p.keeper {
				t.Errorf("told %+v, want %s %+v", d, ids[i], p.keeper)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: death of the keeper not told", ids[i])
		}
		gone(t, "program", program.Process)
		if k, _ := r.home.LoadKeeper(ids[i]); k.EndedMS != 0 || k.Start != launches[i].Start {
			t.Errorf("%s: record is %+v, want no end", ids[i], k)
		}
	}
	t.Logf("%d keepers killed, %d told, no program left", len(panes), len(panes))
}
