//go:build live

package daemon_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/watch"
)

// After everything has died, the daemon alone brings back what is wanted up, on its
// conversations: what was unanswered is answered once, what is wanted down stays down, and
// the manager is to be told who was down.
func TestReconcile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start()
	w.up(demo{}, "agent0", "agent1", "agent2", "agentinfinity")
	testworld.Got(w.l.Down(w.ctx, spawn.DownOptions{Agents: []agent.ID{"agent2"}, By: "owner", Force: true}))(t)
	before := w.statuses()
	var sent []string
	for _, id := range []agent.ID{"agent0", "agent1"} {
		sent = append(sent, w.mail(id, "/busy 10s"))
	}
	testworld.WaitOr(t, func() bool {
		list := w.statuses()
		return list.Find("agent0").State == agent.Busy && list.Find("agent1").State == agent.Busy
	}, func() string { return "not busy" })
	sent = append(sent, w.mail("agent1", "behind it"))
	w.kill(p)
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	if err := w.l.Tmux.Stop(ctx); err != nil {
		testworld.Must(t, w.l.Tmux.Reap(w.ctx))
	}
	testworld.EndAll(t, w.home)
	w.start()
	testworld.WaitOr(t, func() bool {
		for _, id := range []agent.ID{"agent0", "agent1", "agentinfinity"} {
			st := w.statuses().Find(id)
			if st.Start == before.Find(id).Start || !st.State.Ready() {
				return false
			}
		}
		return true
	}, func() string {
		data, _ := os.ReadFile(w.home.Path("logs", "netsky.jsonl"))
		return fmt.Sprintf("%+v\n%s", w.statuses(), data)
	})
	for _, id := range sent {
		w.answered(id)
	}
	for _, id := range sent {
		answers := make(map[string]bool)
		for _, place := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} {
			list := testworld.Got(w.bus.List(agent.Owner, place, 0))(t)
			for _, e := range list {
				if e.Envelope.InReplyTo == id {
					answers[e.Envelope.ID] = true
				}
			}
		}
		testworld.Equal(t, len(answers), 1, "answers to %s", id)
	}
	if st := w.statuses().Find("agent2"); st.Alive() {
		t.Errorf("%+v", st)
	}
	for _, id := range []agent.ID{"agent0", "agentinfinity"} {
		memory := watch.BriefingOf(w.l, id)
		got := memory.Facts(w.ctx, false, nil)
		if !memory.Due() || !strings.Contains(got, "All agents were down at once") || !strings.Contains(got, "- agent1, ") || strings.Contains(got, "agent2, ") {
			t.Errorf("%s is to be told\n%s", id, got)
		}
		memory.Told()
		if memory.Due() {
			t.Error("not forgotten")
		}
	}
	if got := watch.BriefingOf(w.l, "agent1").Facts(w.ctx, false, nil); strings.Contains(got, "All agents were down") {
		t.Errorf("a clone is told of the others:\n%s", got)
	}
}
