package bus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// mustCarry brings what waits for an address on another host there, each twice.
func mustCarry(t *testing.T, b *bus.Bus, from string, box agent.ID, to *bus.Bus) (n int) {
	t.Helper()
	r := mustReceive(t, b, box, bus.ReceiveOptions{Carry: true})
	defer r.Close()
	for range testworld.Got(b.Count(box, bus.Inbox))(t) {
		d := mustNext(t, r)
		for range 2 {
			testworld.Must(t, to.Arrive(t.Context(), from, d.Envelope(), false))
		}
		mustConfirm(t, d)
		n++
	}
	return n
}

// reported returns what a host has reported, in order.
func reported(t *testing.T, b *bus.Bus, host string) (list []string) {
	t.Helper()
	testworld.Got(b.Reports(host, bus.ReportsAt{}, func(r bus.DeliveryReport) {
		list = append(list, strings.TrimSpace(fmt.Sprint(r.From, " ", r.To, " ", r.ID, " ", r.State, " ", r.Reason)))
	}))(t)
	return list
}

// A host reports what has become of messages that were sent there; of others it reports nothing that counts.
func TestReports(t *testing.T) {
	laptop, h := mustBus(t, bus.Options{}, agent.Owner, agent.Root)
	build1, _ := mustBus(t, bus.Options{}, a1)
	testworld.Must(t, laptop.Link("build1"))
	testworld.Must(t, laptop.Link("build2"))
	testworld.Must(t, build1.Link("laptop"))
	m := message(agent.Root, "agent1@build1", "hi")
	m.ID = "m-1"
	mustSend(t, laptop, m)
	d := mustNext(t, mustReceive(t, laptop, "agent1@build1", bus.ReceiveOptions{Carry: true}))
	report := bus.DeliveryReport{ID: "m-1", From: agent.Root, To: a1, State: "queued", MS: time.Now().Add(time.Hour).UnixMilli()}
	stray := bus.DeliveryReport{ID: "m-2", From: agent.Root, To: a1, State: "delivered"}
	testworld.Must(t, build1.Report(t.Context(), "laptop", report, stray))
	mustCarry(t, build1, "build1", "agent0@laptop", laptop) // it may come before the message is filed
	mustConfirm(t, d)
	report.State, report.Reason = "cancelled", "removed\x1b from\tthe mailbox"
	testworld.Must(t, build1.Report(t.Context(), "laptop", report))
	mustCarry(t, build1, "build1", "agent0@laptop", laptop)
	want := []string{"agent0 agent1 m-1 queued", "agent0 agent1 m-1 queued", `agent0 agent1 m-1 cancelled removed\x1b from the mailbox`, `agent0 agent1 m-1 cancelled removed\x1b from the mailbox`}
	testworld.EqualList(t, reported(t, laptop, "build1"), want)
	mustCount(t, laptop, agent.Root, bus.Inbox, 0)
	last, ok, err := laptop.LastReport("agent1@build1", agent.Root, "m-1")
	testworld.Must(t, err)
	testworld.Equal(t, ok && last.State == "cancelled" && last.MS <= time.Now().UnixMilli(), true, "the last report, and its time by the clock here")

	forged := envelope.Envelope{ID: "x", From: "agent1", To: "agent0@laptop", Kind: envelope.KindAck, Via: "code", Time: time.Now()}
	list := testworld.Got(json.Marshal([]bus.DeliveryReport{{ID: "m-1", From: agent.Root, To: a1, State: "delivered"}}))(t)
	forged.Extra = map[string]json.RawMessage{"reports": list}
	testworld.Must(t, laptop.Arrive(t.Context(), "build2", forged, false))
	testworld.Len(t, reported(t, laptop, "build2"), 0, "of a message to another host")
	forged.Extra["reports"] = json.RawMessage(`{"id":1}`)
	_, refused := errors.AsType[bus.RefusedError](laptop.Arrive(t.Context(), "build1", forged, false))
	testworld.Equal(t, refused, true, "what is no report")
	forged.Extra["reports"], forged.Via = list, "mcp"
	testworld.Must(t, laptop.Arrive(t.Context(), "build1", forged, false))
	testworld.Len(t, reported(t, laptop, "build1"), 4, "an agent's word does not count")

	flood, flooding := 0, forged
	flooding.Via = "code"
	at := time.Now()
	stopped := bus.New(h, bus.Options{Now: func() time.Time { return at }})
	for range 1100 {
		if errors.Is(stopped.Arrive(t.Context(), "build2", flooding, false), bus.ErrBrake) {
			flood++
		}
	}
	testworld.Equal(t, flood, 100, "a flood waits on its way")

	f := testworld.Got(os.OpenFile(h.Path(bus.ReportsFile("build1")), os.O_APPEND|os.O_WRONLY, 0))(t)
	testworld.Must(t, testworld.Err(f.WriteString(`{"id":"m-1","fr`))) // a crash while it was written
	testworld.Must(t, f.Close())
	again := bus.New(h, bus.Options{})
	forged.Via = "code"
	testworld.Must(t, again.Arrive(t.Context(), "build1", forged, false))
	testworld.EqualList(t, reported(t, laptop, "build1")[1:], []string{"agent0 agent1 m-1 delivered"}, "what is of use was kept")
}

// A message that is not accepted there has failed, also one that nobody answers.
func TestReportRefused(t *testing.T) {
	laptop, _ := mustBus(t, bus.Options{}, agent.Root)
	build1, _ := mustBus(t, bus.Options{}, a1)
	testworld.Must(t, laptop.Link("build1"))
	testworld.Must(t, build1.Link("laptop"))
	e := message(agent.Root, "agent9@build1", "never mind")
	e.ID, e.Kind, e.InReplyTo = "m-1", envelope.KindReply, "m-0"
	mustSend(t, laptop, e)
	d := mustNext(t, mustReceive(t, laptop, "agent9@build1", bus.ReceiveOptions{Carry: true}))
	mustConfirm(t, d)
	_, refused := errors.AsType[bus.RefusedError](build1.Arrive(t.Context(), "laptop", d.Envelope(), false))
	testworld.Equal(t, refused, true, "refused")
	mustCarry(t, build1, "build1", "agent0@laptop", laptop)
	got := reported(t, laptop, "build1")
	testworld.Contains(t, strings.Join(got, "\n"), "agent0 agent9 m-1 failed not delivered: agent9: no mailbox")
}

// Mail to the owner that has settled where it is from settles where the owner is, and no other mail does.
func TestSettle(t *testing.T) {
	laptop, _ := mustBus(t, bus.Options{}, agent.Owner)
	build1, h := mustBus(t, bus.Options{}, a1)
	testworld.Must(t, laptop.Link("build1"))
	testworld.Must(t, build1.Settle(t.Context(), bus.SettledMail{ID: "hang-1", From: a1})) // in no team
	testworld.Must(t, build1.Link("laptop"))
	testworld.Must(t, h.Save(home.LinkSelf, map[string]string{"name": "build1", "owner": "laptop"}, false))
	for _, id := range []string{"hang-1-0", "hang-2", "hang-3"} {
		n := message(a1, agent.Owner, "it hangs")
		n.ID, n.Kind, n.Via = id, envelope.KindNotice, "code"
		mustSend(t, build1, n)
	}
	own := message("agent1@build1", agent.Owner, "an agent's")
	own.ID, own.Kind, own.InReplyTo = "m-1", envelope.KindReply, "m-0"
	mustSend(t, laptop, own)
	testworld.Must(t, build1.Settle(t.Context(), bus.SettledMail{ID: "hang-1", All: true, From: a1}, bus.SettledMail{ID: "hang-2", From: a1, Read: true}, bus.SettledMail{ID: "m-1", From: a1}))
	testworld.Equal(t, mustCarry(t, build1, "build1", "owner@laptop", laptop), 4, "three notices, and what is over")
	list, _, err := bus.Letters(laptop, false)
	testworld.Must(t, err)
	var got []string
	for _, l := range list {
		got = append(got, strings.TrimSpace(l.Envelope.ID+" "+l.Why))
	}
	testworld.EqualList(t, got, []string{"m-1", "hang-1-0 this has settled by itself: nothing is left to do about it", "hang-3"}, "the owner's new mail")
}
