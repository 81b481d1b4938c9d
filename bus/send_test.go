package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

func TestWhoMayWrite(t *testing.T) {
	t.Parallel()
	clone, other := agent.Clone(1), agent.Clone(2)
	b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Infinity, clone, other, agent.Owner)
	for _, tt := range []struct {
		from, to agent.ID
		kind     envelope.Kind
		answers  string
		want     error
	}{
		{agent.Root, clone, "", "", nil},
		{agent.Root, agent.Owner, "", "", nil},
		{agent.Infinity, agent.Root, "", "", nil},
		{agent.Infinity, agent.Owner, "", "", nil},
		{agent.Owner, agent.Infinity, "", "", nil},
		{clone, agent.Root, "", "", nil},
		{clone, other, "brief", "", nil},
		{clone, clone, "", "", bus.ErrNotAllowed},
		{clone, agent.Infinity, "", "", bus.ErrNotAllowed},
		{clone, agent.Infinity, "", "q", bus.ErrNotAllowed},
		{clone, agent.Infinity, "approval", "", bus.ErrNotAllowed},
		{clone, agent.Infinity, "reply", "", bus.ErrNotAllowed},
		{clone, agent.Infinity, "reply", "q", nil},
		{clone, agent.Infinity, "error", "q", nil},
		{clone, agent.Owner, "", "", bus.ErrNotAllowed},
		{clone, agent.Owner, "", "q", bus.ErrNotAllowed},
		{clone, agent.Owner, "cron", "q", bus.ErrNotAllowed},
		{clone, agent.Owner, "reply", "", bus.ErrNotAllowed},
		{clone, agent.Owner, "reply", "q", nil},
		{clone, agent.Owner, "error", "q", nil},
		{clone, agent.Owner, "approval", "", nil},
		{clone, other, "shutdown", "", bus.ErrNotAllowed},
		{agent.Root, other, "shutdown", "", nil},
		{agent.Root, agent.Clone(9), "", "", bus.ErrNoMailbox},
		{agent.Root, "agent", "", "", envelope.ErrInvalid},
		{agent.Root, "", "", "", envelope.ErrInvalid},
		{agent.Root, clone, "No", "", envelope.ErrInvalid},
		{agent.Root, clone, "unheard_of", "", nil},
	} {
		e := message(tt.from, tt.to, "hi")
		e.Kind, e.InReplyTo = tt.kind, tt.answers
		testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), e)), tt.want, "Send(%s to %s, kind %q, in reply to %q)", tt.from, tt.to, tt.kind, tt.answers)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := b.Send(ctx, message(agent.Owner, clone, "hi")); !errors.Is(err, context.Canceled) || r.ID == "" {
		t.Errorf("Send with a dead context = %+v, %v", r, err)
	}
}

// mustNotices checks how often the owner was told of a brake.
func mustNotices(t *testing.T, b *bus.Bus, want int) {
	t.Helper()
	list, err := b.List(agent.Owner, bus.Inbox, 0)
	if err != nil || len(list) != want {
		t.Fatalf("%d notices to the owner, want %d, %v", len(list), want, err)
	}
	for _, e := range list {
		if e.Envelope.Kind != envelope.KindError || e.Envelope.Via != "code" {
			t.Errorf("notice: %+v", e.Envelope)
		}
	}
}

// No agent takes the id of a notice about it, which would not count any more.
func TestNoticeIDs(t *testing.T) {
	t.Parallel()
	clone := agent.Clone(1)
	b, _ := mustBus(t, bus.Options{}, clone, agent.Root, agent.Owner)
	for _, id := range []string{"approval-abcde-s", "budget-0123", "crash-loop-agent1-1", "no-restart-s", "hang-s-1-0", "alone-agent1-5", "lost-agent1-s", "unready-s"} {
		e := message(clone, agent.Owner, "all is well")
		e.ID, e.Kind = id, envelope.KindNotice
		testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), e)), envelope.ErrInvalid, "%s", id)
		e.Via, e.Text = "code", "it is dead"
		testworld.Equal(t, testworld.Err(b.Send(t.Context(), e)), nil, "netsky's own %s", id)
		e.To, e.Kind, e.Via = agent.Root, "", "cli"
		testworld.Equal(t, testworld.Err(b.Send(t.Context(), e)), nil, "%s to another agent", id)
	}
}

func TestBrakes(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	o := bus.Options{Now: func() time.Time { return time.Unix(0, now.Load()) }}
	t.Run("rate", func(t *testing.T) {
		b, home := mustBus(t, o, agent.Root, a1, agent.Owner)
		for i := range 60 {
			mustSend(t, bus.New(home, o), message(agent.Root, a1, fmt.Sprint(i))) // a process each
		}
		for range 3 {
			if _, err := b.Send(t.Context(), message(agent.Root, a1, "61")); !errors.Is(err, bus.ErrBrake) || !strings.Contains(err.Error(), "60") {
				t.Fatalf("the 61st in a minute = %v, want ErrBrake with the figure", err)
			}
		}
		mustNotices(t, b, 1)
		mustSend(t, b, message(agent.Root, agent.Owner, "another mailbox"))
		mustSend(t, b, message(agent.Owner, a1, "the owner has no brake"))
		shutdown := message(agent.Root, a1, "the end")
		shutdown.Kind = envelope.KindShutdown
		mustSend(t, b, shutdown)
		now.Add(int64(time.Minute))
		mustSend(t, b, message(agent.Root, a1, "a minute later"))
	})
	t.Run("rate of another host", func(t *testing.T) {
		b, h := mustBus(t, o, a1, agent.Owner)
		testworld.Must(t, b.Link("build1"))
		n := 0
		arrive := func() error {
			e := message(a1, a1, "it has waited for a connection")
			e.ID, e.Time, n = fmt.Sprint("far-", n), o.Now(), n+1
			return b.Arrive(t.Context(), "build1", e, false)
		}
		for range 1000 {
			testworld.Must(t, arrive())
		}
		for _, name := range testworld.Got(b.Names(a1, bus.Inbox))(t) { // else they are too many that wait
			testworld.Must(t, os.Remove(h.Path(home.Mailbox(a1), string(bus.Inbox), name)))
		}
		now.Add(int64(500 * time.Millisecond))
		testworld.ErrorIs(t, arrive(), bus.ErrBrake, "the 1,001st at once")
		testworld.Fails(t, arrive(), "1000 messages more than 60 a minute")
		mustNotices(t, b, 1)
		now.Add(int64(30 * time.Second))
		for range 30 {
			testworld.Must(t, arrive())
		}
		testworld.ErrorIs(t, arrive(), bus.ErrBrake, "the 31st in 30 s")
		now.Add(-int64(time.Hour))
		testworld.Must(t, arrive()) // the clock was set back
		now.Add(int64(time.Hour))
	})
	t.Run("hops", func(t *testing.T) {
		b, home := mustBus(t, o, agent.Root, a1, agent.Owner)
		// Two agents whose every word is an answer: they stop by themselves.
		from, to := agent.Root, a1
		e := message(from, to, "ping")
		for n := 1; ; n++ {
			r, err := b.Send(t.Context(), e)
			if errors.Is(err, bus.ErrBrake) {
				if n != 18 || !strings.Contains(err.Error(), "17 hops") {
					t.Errorf("stopped at message %d: %v", n, err)
				}
				break
			}
			testworld.Must(t, err)
			if n%2 == 0 { // in claimed/ or remembered: both are looked at
				testworld.Got(b.Drain(t.Context(), to, 0, func(envelope.Envelope) error { return nil }))(t)
			} else {
				rc := mustReceive(t, bus.New(home, o), to, bus.ReceiveOptions{})
				for mustNext(t, rc).Envelope().ID != r.ID { // what is still in hand from before
				}
				testworld.Must(t, rc.Close())
			}
			from, to = to, from
			e = message(from, to, "pong")
			e.InReplyTo = r.ID
		}
		mustNotices(t, b, 1)
	})
	t.Run("waiting", func(t *testing.T) {
		b, home := mustBus(t, o, agent.Root, a1, agent.Owner)
		for i := range 1000 {
			mustDrop(t, home, a1, bus.Inbox, fmt.Sprintf("%d.json", i), handmade)
		}
		if _, err := b.Send(t.Context(), message(agent.Root, a1, "hi")); !errors.Is(err, bus.ErrBrake) || !strings.Contains(err.Error(), "1000") {
			t.Errorf("Send = %v, want ErrBrake with the figure", err)
		}
		mustSend(t, b, message(agent.Owner, a1, "hi"))
		mustNotices(t, b, 1)
	})
}

func TestExtraFieldsAreKept(t *testing.T) {
	t.Parallel()
	const odd = `{"z":{"b" : [1.50, "<\u003c"]},"from":"agent0","to":null,"id":null,"hops":null,"text":"hi","ts":"2026-11-20T12:00:00Z","a":"\ud83d\ude00"}`
	e, err := envelope.Parse([]byte(odd))
	testworld.Must(t, err)
	got, err := e.MarshalJSON()
	want := `{"from":"agent0","text":"hi","ts":"2026-11-20T12:00:00Z","a":"\ud83d\ude00","z":{"b" : [1.50, "<\u003c"]}}`
	if err != nil || string(got) != want {
		t.Errorf("MarshalJSON = %s, %v, want %s", got, err, want)
	}
	// And they arrive.
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1)
	e.To = a1
	mustSend(t, b, e)
	d := mustNext(t, mustReceive(t, b, a1, bus.ReceiveOptions{}))
	testworld.Equal(t, string(d.Envelope().Extra["z"]), `{"b" : [1.50, "<\u003c"]}`, "z arrived as")
}

func TestRoute(t *testing.T) {
	t.Parallel()
	b, h := mustBus(t, bus.Options{}, agent.Root, a1, agent.Clone(2), agent.Owner)
	out := func(name, text string) { age(t, mustDrop(t, h, a1, bus.Outbox, name, text)) }
	out("forged.json", `{"from":"agent0","to":"agent2","text":"hi"}`)
	out("nobody.json", `{"to":"agent9","text":"hi"}`)
	out("none.json", `{"text":"hi"}`)
	out("owner.json", `{"to":"owner","text":"hi"}`)
	out("bad.json", `{"to":"agent2",`)
	out("good.json", `{"to":"agent2","text":"hi","via":"cli","id":"mine"}`)
	mustDrop(t, h, a1, bus.Outbox, "4913", "vim")
	mustDrop(t, h, a1, bus.Outbox, "half.json", `{"to":`) // still being written
	testworld.Must(t, b.Route(t.Context()))
	mustCount(t, b, a1, bus.Poison, 5)
	mustCount(t, b, a1, bus.Sent, 1)
	mustCount(t, b, a1, bus.Outbox, 1)
	list, err := b.List(agent.Clone(2), bus.Inbox, 0)
	if err != nil || len(list) != 1 || list[0].Envelope.From != a1 || list[0].Envelope.Via != "" || list[0].Envelope.ID != "mine" {
		t.Fatalf("routed: %+v, %v", list, err)
	}
	// A router that runs, for an agent that is made while it does.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.RunRouter(ctx, func(what string, err error) { t.Log(what, err) }) }()
	testworld.Must(t, b.Make(agent.Clone(3)))
	mustDrop(t, h, agent.Clone(3), bus.Outbox, "x.json", `{"to":"agent2","text":"new here"}`)
	testworld.Wait(t, "routed", func() bool { n, _ := b.Count(agent.Clone(2), bus.Inbox); return n == 2 })
	mustDrop(t, h, a1, bus.Outbox, "half.json", `{"to":"agent2","text":"whole"}`)
	testworld.Wait(t, "routed", func() bool { n, _ := b.Count(agent.Clone(2), bus.Inbox); return n == 3 })
	testworld.Wait(t, "locked", func() bool { return errors.Is(b.Route(t.Context()), home.ErrLocked) })
	cancel()
	testworld.ErrorIs(t, <-done, context.Canceled, "RunRouter")
}

func TestRouteWaitsForTheBrake(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	b, home := mustBus(t, bus.Options{Now: func() time.Time { return time.Unix(0, now.Load()) }}, agent.Root, a1)
	for i := range 62 {
		mustDrop(t, home, a1, bus.Outbox, fmt.Sprintf("%02d.json", i), fmt.Sprintf(`{"to":"agent0","text":"%d"}`, i))
	}
	testworld.Must(t, b.Route(t.Context()))
	mustCount(t, b, a1, bus.Outbox, 2)
	mustCount(t, b, agent.Root, bus.Inbox, 60)
	now.Add(int64(time.Minute))
	testworld.Must(t, b.Route(t.Context()))
	mustCount(t, b, a1, bus.Outbox, 0)
	mustCount(t, b, a1, bus.Sent, 62)
}
