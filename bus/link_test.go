package bus_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

const far = agent.ID("agent3@build1")

// Mail for another host waits in a mailbox of that address, once there is a link to the host.
func TestLinkedMail(t *testing.T) {
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1)
	_, err := b.Send(t.Context(), message(a1, far, "too early"))
	testworld.ErrorIs(t, err, bus.ErrNoLink, "without a link")
	testworld.ErrorIs(t, err, bus.ErrNoMailbox, "without a link")
	testworld.Must(t, b.Link("build1"))
	mustSend(t, b, message(a1, far, "one"))
	cancel := message(agent.Root, far, "never mind")
	cancel.Kind, cancel.InReplyTo = envelope.KindCancel, "m-1"
	testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), cancel)), bus.ErrNotAllowed, "an agent's cancel")
	cancel = message(agent.Owner, far, "")
	cancel.Kind, cancel.InReplyTo, cancel.Text = envelope.KindCancel, "m-1", "never mind"
	mustSend(t, b, cancel)
	shut := message(agent.Root, far, "go")
	shut.Kind = envelope.KindShutdown
	testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), shut)), bus.ErrNotAllowed, "a shutdown of another host's agent")
	testworld.Equal(t, fmt.Sprint(testworld.Got(b.All())(t)), "[agent0 agent1 agent3@build1]", "All")
	testworld.Equal(t, fmt.Sprint(testworld.Got(b.Mailboxes())(t)), "[agent0 agent1]", "Mailboxes")
	testworld.Equal(t, fmt.Sprint(testworld.Got(b.Linked())(t)), "[build1]", "Linked")
	r := mustReceive(t, b, far, bus.ReceiveOptions{Carry: true})
	for _, want := range []string{"never mind", "one"} { // the owner's first
		d := mustNext(t, r)
		testworld.Equal(t, d.Envelope().Text, want, "in order, control mail too")
		testworld.Equal(t, d.Envelope().To, far, "To")
		mustConfirm(t, d)
	}
	mustNone(t, r)
	mustCount(t, b, far, bus.Delivered, 2)
}

// What a host's agents may send is what such agents here may, and they can't pass for
// agents of this home.
func TestMailFromAHost(t *testing.T) {
	b, _ := mustBus(t, bus.Options{}, agent.Owner, agent.Root, a1)
	testworld.Must(t, b.Link("build1"))
	for _, to := range []agent.ID{agent.Root, a1} {
		mustSend(t, b, message(far, to, "hello"))
	}
	testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), message(far, agent.Owner, "hello"))), bus.ErrNotAllowed, "a clone's message to the owner")
	mustSend(t, b, message("agent0@build1", agent.Owner, "hello"))
	notice := message(far, agent.Owner, "it hangs")
	notice.Kind, notice.Via, notice.ID = envelope.KindNotice, bus.ViaLink, "hang-agent3-1"
	mustSend(t, b, notice)
	shut := message("agent0@build1", a1, "go")
	shut.Kind = envelope.KindShutdown
	testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), shut)), bus.ErrNotAllowed, "a shutdown by another host's agent")
	cancel := message("agent0@build1", a1, "never mind")
	cancel.Kind, cancel.InReplyTo = envelope.KindCancel, "m-1"
	testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), cancel)), bus.ErrNotAllowed, "a cancel by another host's agent")
	// The owner's mail comes first, wherever the owner is.
	mustSend(t, b, message("owner@laptop", a1, "first"))
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	testworld.Equal(t, mustNext(t, r).Envelope().Text, "first", "the first message")
	q := mustNext(t, r)
	testworld.Equal(t, q.Envelope().From, far, "From")
	reply := message(a1, far, "hello to you")
	reply.Kind, reply.InReplyTo = envelope.KindReply, q.Envelope().ID
	mustSend(t, b, reply)
	_, found, err := b.AnswerTo(t.Context(), a1, q.Envelope())
	if !found || err != nil {
		t.Errorf("AnswerTo = %v, %v", found, err)
	}
}

// What is not accepted is answered, as nobody there sees this home.
func TestArrive(t *testing.T) {
	b, _ := mustBus(t, bus.Options{}, agent.Owner, agent.Root, a1)
	testworld.Must(t, b.Link("build1"))
	e := message("agent3", "agent1@here", "hello")
	e.ID, e.RequiresAck, e.Time = "m-1", true, time.Now()
	for range 2 {
		testworld.Must(t, b.Arrive(t.Context(), "build1", e, true))
	}
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	d := mustNext(t, r)
	testworld.Equal(t, string(d.Envelope().From)+" "+d.Envelope().Via, "agent3@build1 link", "From and Via")
	mustConfirm(t, d)
	testworld.Must(t, b.Arrive(t.Context(), "build1", e, true))
	mustNone(t, r)
	n := message("agent3", "owner@here", "it hangs")
	n.Kind, n.Via, n.ID, n.Time = envelope.KindNotice, "code", "hang-1", time.Now()
	testworld.Must(t, b.Arrive(t.Context(), "build1", n, false))
	testworld.Equal(t, testworld.Got(b.List(agent.Owner, bus.Inbox, 0))(t)[0].Envelope.Via, bus.ViaLinkCode, "Via of what the netsky there says")
	e.ID, e.To = "m-2", "agent9@here"
	for range 2 {
		err := b.Arrive(t.Context(), "build1", e, true)
		if _, ok := errors.AsType[bus.RefusedError](err); !ok {
			t.Errorf("Arrive for nobody: %v, want a RefusedError", err)
		}
	}
	d = mustNext(t, mustReceive(t, b, far, bus.ReceiveOptions{Carry: true}))
	got := d.Envelope()
	testworld.Equal(t, fmt.Sprint(got.Kind, got.From, got.InReplyTo), "erroragent9m-2", "the answer")
	testworld.Contains(t, got.Text, "no mailbox")
}

// What is for the owner goes to the host where the owner is; answers stay where they asked.
func TestOwnersMail(t *testing.T) {
	b, h := mustBus(t, bus.Options{}, agent.Owner, a1)
	testworld.Must(t, b.Link("laptop"))
	testworld.Must(t, h.Save(home.LinkSelf, map[string]string{"name": "build1", "owner": "laptop"}, false))
	notice := message(a1, agent.Owner, "it hangs")
	notice.Kind, notice.Via, notice.ID, notice.Time = envelope.KindNotice, "code", "hang-1", time.Now()
	for range 2 {
		testworld.Must(t, testworld.Err(b.Send(t.Context(), notice)))
	}
	reply := message(a1, agent.Owner, "done")
	reply.Kind, reply.InReplyTo = envelope.KindReply, "m-1"
	mustSend(t, b, reply)
	mustCount(t, b, "owner@laptop", bus.Inbox, 2)
	mustCount(t, b, agent.Owner, bus.Inbox, 1)
	r := mustReceive(t, b, "owner@laptop", bus.ReceiveOptions{Carry: true})
	mustConfirm(t, mustNext(t, r))
	mustNone(t, r)
	_, again, err := b.SendOnce(t.Context(), notice)
	if !again || err != nil {
		t.Errorf("SendOnce = %v, %v; want that it was sent", again, err)
	}
}

// Mail for a host whose link has ended is refused; what waits stays.
func TestUnlinked(t *testing.T) {
	b, _ := mustBus(t, bus.Options{}, a1)
	testworld.Must(t, b.Link("build1"))
	mustSend(t, b, message(a1, far, "one"))
	testworld.Must(t, errors.Join(b.Unlink("build1"), b.Unlink("build1")))
	testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), message(a1, far, "two"))), bus.ErrNoLink, "to a mailbox")
	testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), message(a1, "agent4@build1", "two"))), bus.ErrNoLink, "to none yet")
	mustCount(t, b, far, bus.Inbox, 1)
	testworld.Must(t, b.Link("build1"))
	mustSend(t, b, message(a1, far, "three"))
}

// A host that is anything makes neither mail without end to itself, nor mailboxes, nor notices for the owner, nor files
// that nobody reads, whatever its agents are called.
func TestHostFloods(t *testing.T) {
	now := time.Now()
	b, _ := mustBus(t, bus.Options{Now: func() time.Time { return now }}, agent.Owner, agent.Root, a1)
	testworld.Must(t, b.Link("build1"))
	arrive := func(n int, to agent.ID, kind envelope.Kind, hops int) error {
		e := message(agent.Clone(1+n%9999), to, "x")
		e.ID, e.Time, e.Kind, e.Hops = fmt.Sprint("m-", n, kind), now, kind, hops
		return b.Arrive(t.Context(), "build1", e, false)
	}
	refused := 0
	for n := range 400 {
		err := arrive(n, "agent9", "", 0)
		if _, ok := errors.AsType[bus.RefusedError](err); ok {
			refused++
		} else {
			testworld.ErrorIs(t, err, bus.ErrBrake, "the %dth", n)
		}
	}
	testworld.Equal(t, refused, 200, "refusals that were told at once")
	for n := range 400 {
		now = now.Add(10 * time.Second)
		if _, ok := errors.AsType[bus.RefusedError](arrive(n, "agent9", "", 0)); !ok {
			t.Fatalf("the %dth was not refused later", n)
		}
	}
	testworld.Equal(t, len(testworld.Got(b.All())(t)), 3+256, "mailboxes")

	for n := range 100 {
		_ = arrive(n, a1, "", 17)
	}
	mustCount(t, b, agent.Owner, bus.Inbox, 1)
	for range 1100 {
		_ = arrive(1, agent.Root, envelope.KindAck, 0)
	}
	mustCount(t, b, agent.Root, bus.Inbox, 1000)
}

// What waits for a host is counted without what the netskys tell each other, and what is kept of
// a host beside its mailboxes is no address.
func TestUnsent(t *testing.T) {
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1)
	testworld.Must(t, errors.Join(b.Link("build1"), b.Link("build2")))
	named := message(agent.Infinity, "agent0@build1", "by hand")
	named.ID = "report-monday"
	mustSend(t, b, named)
	mustSend(t, b, message(a1, far, "one"))
	testworld.Must(t, b.Report(t.Context(), "build1", bus.DeliveryReport{ID: "m-1", From: agent.Root, To: a1, State: "queued"}))
	mustCount(t, b, "agent0@build1", bus.Inbox, 2)
	testworld.Equal(t, fmt.Sprint(testworld.Got(b.Unsent())(t)), "map[build1:2]", "Unsent")
	r := mustReceive(t, b, far, bus.ReceiveOptions{Carry: true})
	mustNext(t, r)
	testworld.Equal(t, fmt.Sprint(testworld.Got(b.Unsent())(t)), "map[build1:2]", "Unsent, one of them claimed")

	sent := message(a1, "agent4@build2", "x")
	sent.ID = "m-1"
	mustSend(t, b, sent)
	mustConfirm(t, mustNext(t, mustReceive(t, b, "agent4@build2", bus.ReceiveOptions{Carry: true})))
	for i := range 255 {
		mustSend(t, b, message(agent.Root, agent.Clone(100+i).At("build2"), "x"))
		if i == 100 {
			mustReport(t, b, "build2", bus.DeliveryReport{ID: "m-1", From: a1, To: "agent4", State: "queued"})
		}
	}
	testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), message(agent.Root, "agent99@build2", "x"))), bus.ErrNoMailbox, "to one more address")
}

// mustReport has a host report.
func mustReport(t *testing.T, b *bus.Bus, host string, r bus.DeliveryReport) {
	t.Helper()
	there, _ := mustBus(t, bus.Options{}, agent.Root)
	testworld.Must(t, there.Link("laptop"))
	testworld.Must(t, there.Report(t.Context(), "laptop", r))
	mustCarry(t, there, host, "agent0@laptop", b)
}
