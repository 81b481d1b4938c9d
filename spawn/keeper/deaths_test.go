package keeper_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/internal/proc"
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

// ends is every status once, and signals up to n.
func ends(n int) []end {
	signals := []unix.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGKILL, unix.SIGSEGV,
		unix.SIGPIPE, unix.SIGALRM, unix.SIGTERM, unix.SIGUSR1, unix.SIGXCPU,
	}
	var list []end
	for i := range n {
		if i < 256 {
			list = append(list, end{status: i})
		} else {
			list = append(list, end{signal: signals[i%len(signals)]})
		}
	}
	rand.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// tally is what was seen of many deaths.
type tally struct {
	deaths, first int           // first: line found in the first capture
	late          time.Duration // longest from the record to the line
}

// told checks that a death is told right: record, marker and last lines.
func (r *rig) told(p pane, l agent.Launch, e end, n *tally) {
	r.tb.Helper()
	k := r.ended(l)
	seen := time.Now()
	if got := ending(k); got != e.String() {
		r.tb.Errorf("%s: record says %s, want %v", l.Agent, got, e)
	}
	if (k.Status != nil) == (k.Signal != "") {
		r.tb.Errorf("%s: record has status %v and signal %q", l.Agent, k.Status, k.Signal)
	}
	if k.EndedMS < k.StartedMS || k.PID == 0 || k.Program != l.Argv[0] {
		r.tb.Errorf("%s: record is %+v", l.Agent, k)
	}
	want := "line 31\nline 32\n\n" + e.marker(l.Agent)
	text := r.capture(p)
	if strings.Contains(text, want) {
		n.first++
	} else {
		r.shows(p, want)
		n.late = max(n.late, time.Since(seen))
	}
	n.deaths++
	if !p.keeper.Alive() {
		r.tb.Errorf("%s: the keeper did not stay", l.Agent)
	}
}

func TestDeaths(t *testing.T) {
	t.Parallel()
	list := ends(400)
	for i, burst := range []int{1, 1, 1, 20} { // at a time, on a server
		from, to := i*66, (i+1)*66
		if burst > 1 {
			to = len(list)
		}
		t.Run(fmt.Sprintf("%d to %d by %d", from, to, burst), func(t *testing.T) {
			t.Parallel()
			tellDeaths(t, burst, list[from:to])
		})
	}
}

func tellDeaths(t *testing.T, burst int, list []end) {
	t.Helper()
	r := newRig(t)
	r.open("agent0") // keeps the server, and says 126
	var n tally
	began := time.Now()
	for some := range slices.Chunk(list, burst) {
		var ids []agent.ID
		var launches []agent.Launch
		for i, e := range some {
			id := agent.Clone(i + 1)
			ids = append(ids, id)
			launches = append(launches, r.launch(id, e.program()...))
		}
		panes := r.open(ids...)
		for i, p := range panes {
			r.told(p, launches[i], some[i], &n)
		}
		for i, p := range panes {
			r.tmux("kill-session", "-t", "="+string(ids[i]))
			gone(t, "keeper", p.keeper)
		}
	}
	if n.deaths != len(list) {
		t.Errorf("%d deaths told, want %d", n.deaths, len(list))
	}
	t.Logf("%d at a time: %d deaths told right; the line stood in the first capture of %d, else at most %v later; %v in all",
		burst, n.deaths, n.first, n.late, time.Since(began).Round(time.Millisecond))
}

// TestKeeperKilled: whoever watches the pane's process learns of it, and the
// program does not live on unseen.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.open("agent0")
	w, err := proc.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
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
		if err := w.Add(string(ids[i]), p.keeper); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range panes {
		program := r.program(launches[i])
		if err := unix.Kill(p.keeper.PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
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
