//go:build live

package courier_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// A desk is a home in which a demo agent is killed.
type desk struct {
	testing.TB
	home home.Dir
	bus  *bus.Bus
}

func mustDesk(tb testing.TB) *desk {
	tb.Helper()
	h := testworld.Home(tb)
	return &desk{TB: tb, home: h, bus: testworld.Bus(tb, h, me, agent.Root, agent.Clone(2), agent.Owner)}
}

// serve starts the agent, which kills itself at the step of that number, or at the
// test's end. The channel is closed when it has died.
func (d *desk) serve(kill int) (died <-chan struct{}) {
	d.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), stepHome+"="+d.home.Root(), stepKill+"="+strconv.Itoa(kill))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		cmd.Wait()
		close(over)
	}()
	d.Cleanup(func() {
		cmd.Process.Kill()
		<-over
	})
	return over
}

// questions are what the agent is sent: of all kinds, some of which want no answer.
var questions = []envelope.Envelope{
	{From: agent.Owner, Text: "one"},
	{From: agent.Root, Kind: envelope.KindBrief, Text: "two"},
	{From: agent.Clone(2), Kind: envelope.KindReply, Text: "three wants none", InReplyTo: "x"},
	{From: agent.Owner, Text: "/dance"}, // whose answer is an error
	{From: agent.Root, Text: "four", RequiresAck: true, Thread: "t"},
	{From: agent.Root, Kind: envelope.KindError, Text: "five wants none", InReplyTo: "x"},
}

// mustAsk puts all questions into the agent's inbox.
func (d *desk) mustAsk() {
	d.Helper()
	for i, q := range questions {
		q.ID, q.To = fmt.Sprintf("q-%d", i), me
		if _, err := d.bus.Send(context.Background(), q); err != nil {
			d.Fatal(err)
		}
	}
}

// settled reports whether nothing is left to be done.
func (d *desk) settled() bool {
	filed, err := d.bus.Count(me, bus.Delivered)
	if err != nil || filed != len(questions) {
		return false
	}
	l := courier.ReadLedger(d.home, me)
	return l.Err == nil && len(l.Messages) == 0
}

// mustSettle waits until nothing is left to be done, or the process has died.
func (d *desk) mustSettle(died <-chan struct{}) (dead bool) {
	d.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(testworld.Patience); ; {
		select {
		case <-died:
			return true
		case <-tick.C:
		}
		if d.settled() {
			return false
		}
		if time.Now().After(until) {
			d.Fatalf("not settled: %+v; steps %v", courier.ReadLedger(d.home, me), d.steps())
		}
	}
}

func (d *desk) steps() []string {
	data, err := os.ReadFile(d.home.Path(stepFile))
	if err != nil {
		d.Fatal(err)
	}
	return strings.Fields(string(data))
}

// mustAnswerOnce checks what everybody gets: one answer to each question that
// wants one, and nothing else.
func (d *desk) mustAnswerOnce() {
	d.Helper()
	got := make(map[string]int)
	for _, id := range []agent.ID{agent.Owner, agent.Root, agent.Clone(2)} {
		_, err := d.bus.Drain(context.Background(), id, 0, func(e envelope.Envelope) error {
			got[e.InReplyTo]++
			for i, q := range questions {
				if e.InReplyTo == fmt.Sprintf("q-%d", i) && (q.From != id || e.From != me || e.Thread != q.Thread || !strings.Contains(e.Text, q.Text)) {
					d.Errorf("%s got %+v", id, e)
				}
			}
			return nil
		})
		if err != nil {
			d.Fatal(err)
		}
	}
	for i, q := range questions {
		want := 1
		if strings.Contains(q.Text, "wants none") {
			want = 0
		}
		if id := fmt.Sprintf("q-%d", i); got[id] != want {
			d.Errorf("%d answers to %s %q, want %d", got[id], id, q.Text, want)
		}
	}
	if len(got) != 4 {
		d.Errorf("answers to %v", got)
	}
}

// TestKilledAtEveryStep kills an agent between any two durable steps of its courier,
// and the next start at one of its own: each message has its one answer.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	d := mustDesk(t)
	d.mustAsk()
	d.mustSettle(d.serve(0))
	d.mustAnswerOnce()
	steps := d.steps()
	for _, name := range []string{"claimed", "owed", "offered", "filed", "answered", "settled"} {
		if !slices.Contains(steps, name) {
			t.Errorf("no step %q in %v", name, steps)
		}
	}
	t.Logf("%d steps", len(steps))
	var kills atomic.Int64
	t.Run("killed", func(t *testing.T) {
		for i := range steps {
			t.Run(fmt.Sprintf("%02d %s", i+1, steps[i]), func(t *testing.T) {
				t.Parallel()
				d := mustDesk(t)
				d.mustAsk()
				for _, kill := range []int{i + 1, i%7 + 1, 0} {
					dead := d.mustSettle(d.serve(kill))
					if !dead {
						break
					}
					kills.Add(1)
				}
				d.mustAnswerOnce()
			})
		}
	})
	if kills := kills.Load(); kills < int64(len(steps)) {
		t.Errorf("%d kills in %d runs", kills, len(steps))
	}
}
