//go:build live

package daemon_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/tmux"
)

// A daemon that is killed at any moment, with mail under way and somebody
// looking at panes, harms no agent, loses no envelope and answers none twice.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const kills = 50
	ids := []agent.ID{"agent0", "agent1", "agent2", "agent3"}
	w.up(demo{}, ids...)
	before := identities(w.statuses())
	stop := w.lookAt("agent1")
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	questions := make(map[string]agent.ID)
	for i := range kills {
		p := w.start()
		// Fewer than the bus lets one agent send to one address in a minute.
		for _, to := range []agent.ID{ids[i%4], ids[(i+1)%4]} {
			questions[w.mail(to, fmt.Sprintf("question %d", i))] = to
		}
		if i%5 == 0 {
			questions[w.mail("agent0", fmt.Sprintf("/delegate agent%d job %d", 1+i/5%3, i))] = "agent0"
		}
		moment := time.NewTimer(time.Duration(random.Int64N(int64(150 * time.Millisecond))))
		<-moment.C
		w.kill(p)
		if now := identities(w.statuses()); !maps.Equal(now, before) {
			t.Fatalf("kill %d: agents are %v, were %v", i, now, before)
		}
	}
	stop()
	w.start()
	for id := range questions {
		w.answered(id)
	}
	// All is filed, and each question has one answer in one place.
	testworld.WaitOr(w, func() bool {
		n, err := w.bus.Count(agent.Owner, bus.Inbox)
		m, cerr := w.bus.Count(agent.Owner, bus.Claimed)
		return n+m == 0 && err == nil && cerr == nil
	}, func() string { return "the owner's mail is not filed\n" + w.log() })
	list := testworld.Got(w.bus.List(agent.Owner, bus.Delivered, 0))(t)
	answers := make(map[string][]string)
	for _, e := range list {
		answers[e.Envelope.InReplyTo] = append(answers[e.Envelope.InReplyTo], e.Name)
		testworld.Equal(t, e.Envelope.From, questions[e.Envelope.InReplyTo], "answers for")
	}
	for id, to := range questions {
		testworld.Equal(t, len(answers[id]), 1, "%s to %s: answers %v", id, to, answers[id])
	}
	for _, id := range ids {
		names, err := w.bus.Names(id, bus.Poison)
		if err != nil || len(names) != 0 {
			t.Errorf("%s: poison %v %v", id, names, err)
		}
	}
	// And all of it comes on record.
	db := w.db()
	testworld.WaitOr(w, func() bool {
		for id := range questions {
			if _, err := db.Message(w.ctx, id); err != nil {
				return false
			}
		}
		return true
	}, func() string { return "not all is on record\n" + w.log() })
	if now := identities(w.statuses()); !maps.Equal(now, before) {
		t.Errorf("agents are %v, were %v", now, before)
	}
	testworld.EqualList(t, w.deathLogs(db), nil, "deaths")
	testworld.Equal(t, testworld.Err(w.l.Down(w.ctx, spawn.DownOptions{All: true})), nil)
	if left, err := w.l.Remnants(w.ctx); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// identities are what must not change of agents: start, process, pane.
func identities(list spawn.Statuses) map[agent.ID]string {
	m := make(map[agent.ID]string)
	for _, st := range list {
		m[st.Agent] = fmt.Sprint(st.Start, " ", st.PID, " ", st.Pane())
	}
	return m
}

// lookAt has a control client look at a pane, as a browser's does, until stop.
func (w *world) lookAt(session string) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	c := testworld.Got(w.l.Tmux.Control(ctx, session))(w)
	var wg sync.WaitGroup
	pane := w.statuses().Find(agent.ID(session)).Pane()
	wg.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if _, err := c.Capture(ctx, pane, tmux.Capture{Lines: 50}); err != nil && ctx.Err() == nil {
				w.Errorf("looking at %s: %v", session, err)
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		c.Close()
	}
}
