package observe_test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/daemon/observe"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

const far = agent.ID("agent3@build1")

// send sends a message under an id.
func (r *rig) send(id string, from, to agent.ID) {
	r.Helper()
	testworld.Must(r, testworld.Err(r.bus.Send(r.Context(), envelope.Envelope{ID: id, From: from, To: to, Text: "hi", Time: time.Now()})))
}

// carry files what waits for another host as sent, and passes it on.
func (r *rig) carry(id agent.ID, to ...*rig) {
	r.Helper()
	rec := testworld.Got(r.bus.Receive(r.Context(), id, bus.ReceiveOptions{Carry: true}))(r)
	defer rec.Close()
	for range testworld.Got(r.bus.Count(id, bus.Inbox))(r) {
		d := testworld.Got(rec.Next(r.Context()))(r)
		for _, other := range to {
			testworld.Must(r, other.bus.Arrive(r.Context(), "build1", d.Envelope(), false))
		}
		testworld.Must(r, d.Confirm())
	}
}

// reports returns the reports that wait for a host.
func (r *rig) reports() (list []string) {
	r.Helper()
	for _, e := range testworld.Got(r.bus.List("agent0@laptop", bus.Inbox, 0))(r) {
		if e.Envelope.Kind == envelope.KindAck {
			list = append(list, string(e.Envelope.Extra["reports"]))
		}
	}
	return list
}

// A message for another host is delivered when that host says so, and not before; what that host
// says is not lost when the records are.
func TestSentAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent0")
	testworld.Must(t, r.bus.Link("build1"))
	was := func(id, want string) {
		t.Helper()
		r.sync()
		d := r.state(id, far)
		testworld.Equal(t, strings.TrimSpace(fmt.Sprint(d.State, " ", d.Reason)), want, id)
	}
	report := func(id, state string, attempts int, reason string) {
		t.Helper()
		other := newRig(t)
		testworld.Must(t, other.bus.Link("laptop"))
		testworld.Must(t, other.bus.Report(t.Context(), "laptop", bus.DeliveryReport{
			ID: id, From: "agent0", To: "agent3", State: state, Attempts: attempts, Reason: reason, MS: time.Now().Add(-time.Hour).UnixMilli(),
		}))
		other.carry("agent0@laptop", r)
	}
	for _, id := range []string{"m-1", "m-2", "m-3"} {
		r.send(id, "agent0", far)
	}
	was("m-1", "queued")
	r.carry(far)
	was("m-1", "sent")
	report("m-1", "queued", 0, "")
	was("m-1", "arrived")
	report("m-1", "claimed", 0, "")
	was("m-1", "claimed")
	report("m-1", "some later netsky's", 0, "")
	was("m-1", "claimed")
	report("m-1", "delivered", 0, "")
	was("m-1", "delivered")
	d := r.state("m-1", far)
	testworld.Equal(t, d.Queued <= d.Claimed && d.Claimed <= d.Delivered, true, "in order, whatever the clock there says")
	report("m-2", "poisoned", 0, "too long for agent3")
	was("m-2", "poisoned too long for agent3")
	report("m-2", "delivered", 1, "")
	was("m-2", "delivered")
	report("m-3", "poisoned", 0, "too long for agent3")
	for range 3 { // no file of it is here
		was("m-3", "poisoned too long for agent3")
	}
	if l := testworld.Got(r.db.Messages(t.Context(), store.MessageFilter{}))(t); len(l.Items) != 3 {
		t.Errorf("%d messages are on record, want 3", len(l.Items))
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		testworld.Must(t, os.Remove(r.home.Path(home.DBFile+suffix)))
	}
	was("m-2", "delivered")
}

// A message of which nothing is heard is not on its way for ever; what is heard of it later counts.
func TestSentAndLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent0")
	testworld.Must(t, r.bus.Link("build1"))
	r.send("m-1", "agent0", far)
	r.send("m-2", "agent0", far)
	r.carry(far)
	r.sync()
	mustSQL(t, r.home, "UPDATE deliveries SET changed = changed - 8*24*3600*1000 - 1000 WHERE message = 'm-1'")
	r.obs = &observe.Observer{Bus: r.bus, DB: r.db}
	r.sync()
	testworld.Equal(t, r.state("m-1", far).State, store.Failed)
	testworld.Contains(t, r.state("m-1", far).Reason, "build1 has not said that it has this")
	testworld.Equal(t, r.state("m-2", far).State, store.SentOn)
	other := newRig(t)
	testworld.Must(t, other.bus.Link("laptop"))
	for _, state := range []store.DeliveryState{store.Queued, store.Delivered} {
		testworld.Must(t, other.bus.Report(t.Context(), "laptop", bus.DeliveryReport{ID: "m-1", From: "agent0", To: "agent3", State: string(state)}))
		other.carry("agent0@laptop", r)
		r.sync()
		want := map[store.DeliveryState]store.DeliveryState{store.Queued: store.Arrived}[state]
		testworld.Equal(t, r.state("m-1", far).State, cmp.Or(want, state))
	}
}

// A host is told what becomes of messages from there, before that is recorded, and once.
func TestTellsHosts(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1", "owner")
	testworld.Must(t, r.bus.Link("laptop"))
	told := func(want ...string) {
		t.Helper()
		r.sync()
		got := r.reports()
		testworld.Len(t, got, min(len(want), 1), "reports")
		for _, w := range want {
			testworld.Contains(t, strings.Join(got, ""), w)
		}
		r.carry("agent0@laptop")
	}
	for _, id := range []string{"m-1", "m-2", "m-3", "m-4"} {
		r.send(id, "agent0@laptop", "agent1")
	}
	r.send("m-own", "owner", "agent1")
	told(`"id":"m-1","from":"agent0","to":"agent1","state":"queued"`, `"id":"m-4","from":"agent0","to":"agent1","state":"queued"`)
	r.obs = &observe.Observer{Bus: r.bus, DB: r.db}
	r.sync() // another one does not say it again
	testworld.Len(t, r.reports(), 0, "reports")
	r.take("agent1", func(d *bus.Delivery) error { return d.Confirm() }) // the owner's
	told()
	r.take("agent1", func(d *bus.Delivery) error { return d.Confirm() })
	told(`"id":"m-1","from":"agent0","to":"agent1","state":"delivered"`)
	r.take("agent1", func(d *bus.Delivery) error { return d.Expire() })
	told(`"id":"m-2","from":"agent0","to":"agent1","state":"expired"`)
	r.take("agent1", func(d *bus.Delivery) error { return d.Poison("too long for agent1") })
	testworld.Wait(t, "what was poisoned is told", func() bool {
		r.sync()
		return len(r.reports()) > 0
	})
	told(`"id":"m-3","from":"agent0","to":"agent1","state":"poisoned","reason":"too long for agent1"`)
	testworld.Equal(t, testworld.Got(r.bus.Retract(t.Context(), "agent1", func(envelope.Envelope) bool { return true }))(t), 1)
	told(`"id":"m-4","from":"agent0","to":"agent1","state":"cancelled"`)
}

// While mail comes, a host is told what has become of it together, and all of it in the end.
func TestTellsHostsTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	testworld.Must(t, r.bus.Link("laptop"))
	testworld.Must(t, r.bus.Make("agent0@laptop"))
	r.run()
	const n = 300
	for i := range n {
		r.send(fmt.Sprint("m-", i), "owner@laptop", "agent1") // no brake is in its way
	}
	testworld.Wait(t, "all are told", func() bool {
		return strings.Count(strings.Join(r.reports(), ""), `"state":"queued"`) >= n
	})
	if got := len(r.reports()); got > n/4 {
		t.Errorf("%d reports of %d messages", got, n)
	}
}
