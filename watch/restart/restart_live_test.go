//go:build live

package restart_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/watch/restart"
)

// Killed at any step, a restart is completed by the next process: every agent is up under
// one new start, each has had the handoff once, and the owner's word is as it was.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "agent0", "agent1")
	killed := true
	for kill := 1; killed; kill++ {
		if kill > 40 {
			t.Fatal("it never ends")
		}
		before := w.statuses()
		r := w.submit(restart.Request{Handoff: fmt.Sprintf("go on %d", kill)})
		if killed = w.process(kill); killed && w.process(0) {
			t.Fatal("killed again")
		}
		r = w.load(r.ID)
		for _, a := range r.Agents {
			st := w.statuses().Find(a.Agent)
			if a.Step != restart.Ready || st.Start != a.Start || st.Start == before.Find(a.Agent).Start || !st.Alive() || !st.Wanted || st.By != "owner" {
				steps, _ := w.home.ReadFile(stepsFile, 1<<20)
				t.Fatalf("killed at step %d: %+v, %+v\n%s", kill, a, st, steps)
			}
			id := "handoff-" + r.ID + "-" + string(a.Agent)
			var answers []bus.Entry
			testworld.WaitOr(t, func() bool {
				answers = answers[:0]
				list, err := w.l.Bus.List(agent.Owner, bus.Inbox, 0)
				for _, e := range list {
					if e.Err == nil && e.Envelope.InReplyTo == id {
						answers = append(answers, e)
					}
				}
				return err == nil && len(answers) > 0
			}, func() string { return "no answer to " + id })
			if len(answers) != 1 || !strings.Contains(answers[0].Envelope.Text, fmt.Sprintf("go on %d", kill)) {
				t.Errorf("killed at step %d: %d answers", kill, len(answers))
			}
		}
		if kill > 1 {
			os.Remove(w.home.Path(stepsFile))
		}
	}
}

// A running turn is waited for, unless the restart is forced; then it is cut off.
func TestTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "agent1")
	busy := func(text string) string {
		t.Helper()
		sent := testworld.Got(w.l.Bus.Send(t.Context(), envelope.Envelope{From: agent.Owner, To: "agent1", Text: text}))(t)
		testworld.WaitOr(t, func() bool { return w.statuses().Find("agent1").State == agent.Busy }, func() string { return "not busy" })
		return sent.ID
	}
	id := busy("/busy 10s")
	r := w.submit(restart.Request{})
	w.process(0)
	a, ok, err := w.l.Bus.FindAnswer(t.Context(), "", agent.Owner, id, time.Time{})
	if got := w.load(r.ID).Agents[0]; got.How != "its turn is finished" || got.Step != restart.Ready || !ok || err != nil || a.Envelope.Kind != envelope.KindReply {
		t.Errorf("%+v; answered %v: %+v %v", got, ok, a.Envelope, err)
	}
	busy("/busy 1h")
	r = w.submit(restart.Request{Force: true})
	w.process(0)
	if got := w.load(r.ID).Agents[0]; got.How != "at once" || got.Step != restart.Ready {
		t.Errorf("%+v", got)
	}
}
