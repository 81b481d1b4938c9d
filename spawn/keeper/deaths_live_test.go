//go:build live

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
	"netsky/internal/testworld"
)

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
	testworld.Equal(t, n.deaths, len(list), "deaths told")
	t.Logf("%d at a time: %d deaths told right; the line stood in the first capture of %d, else at most %v later; %v in all",
		burst, n.deaths, n.first, n.late, time.Since(began).Round(time.Millisecond))
}
