package bus_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// mustBus makes a bus with mailboxes; a benchmark's is on a real disk.
func mustBus(tb testing.TB, o bus.Options, boxes ...agent.ID) (*bus.Bus, home.Dir) {
	tb.Helper()
	return mustBusIn(tb, testworld.FastHome(tb), o, boxes...)
}

func mustBusIn(tb testing.TB, home home.Dir, o bus.Options, boxes ...agent.ID) (*bus.Bus, home.Dir) {
	tb.Helper()
	b := bus.New(home, o)
	for _, id := range boxes {
		testworld.Must(tb, b.Make(id))
	}
	return b, home
}

func mustSend(tb testing.TB, b *bus.Bus, e envelope.Envelope) bus.Receipt {
	tb.Helper()
	r, err := b.Send(tb.Context(), e)
	testworld.Must(tb, err, "Send(%s to %s)", e.From, e.To)
	return r
}

func mustReceive(tb testing.TB, b *bus.Bus, id agent.ID, o bus.ReceiveOptions) *bus.Receiver {
	tb.Helper()
	r := testworld.Got(b.Receive(tb.Context(), id, o))(tb)
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// patience is how long a test waits for what must come; only a failing test
// waits that long.
const patience = time.Minute

func mustNext(tb testing.TB, r *bus.Receiver) *bus.Delivery {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	d, err := r.Next(ctx)
	testworld.Must(tb, err, "Next()")
	return d
}

func mustConfirm(tb testing.TB, d *bus.Delivery) {
	tb.Helper()
	testworld.Must(tb, d.Confirm())
}

// mustNone checks that nothing is handed over.
func mustNone(tb testing.TB, r *bus.Receiver) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 50*time.Millisecond)
	defer cancel()
	if d, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		tb.Fatalf("Next() = %v, %v, want nothing", d, err)
	}
}

func mustCount(tb testing.TB, b *bus.Bus, id agent.ID, p bus.Place, want int) {
	tb.Helper()
	n := testworld.Got(b.Count(id, p))(tb)
	if n != want {
		tb.Fatalf("%s: %d files in %s, want %d", id, n, p, want)
	}
}

// mustDrop writes a file into a mailbox as an editor would.
func mustDrop(tb testing.TB, h home.Dir, id agent.ID, p bus.Place, name, text string) string {
	tb.Helper()
	file := h.Path(home.Mailbox(id), string(p), name)
	testworld.Must(tb, os.WriteFile(file, []byte(text), 0o644))
	return file
}

const handmade = `{"from":"agent0","text":"hi","ts":"2026-11-20T12:00:00Z"}`

func message(from, to agent.ID, text string) envelope.Envelope {
	return envelope.Envelope{From: from, To: to, Text: text}
}

func TestSendReceiveConfirm(t *testing.T) {
	t.Parallel()
	b, h := mustBus(t, bus.Options{}, agent.Root, agent.Clone(1), agent.Owner)
	sent := mustSend(t, b, message(agent.Owner, agent.Clone(1), "hello <there>"))
	mustDrop(t, h, agent.Clone(1), bus.Inbox, "x.json", handmade)
	r := mustReceive(t, b, agent.Clone(1), bus.ReceiveOptions{})
	d := mustNext(t, r)
	if d.Envelope().ID != sent.ID || d.Envelope().Text != "hello <there>" || d.Envelope().To != agent.Clone(1) {
		t.Fatalf("got %+v, want what was sent as %s", d.Envelope(), sent.ID)
	}
	mustCount(t, b, agent.Clone(1), bus.Claimed, 1)
	mustConfirm(t, d)
	mustConfirm(t, mustNext(t, r))
	mustNone(t, r)
	mustCount(t, b, agent.Clone(1), bus.Delivered, 2)
	mustCount(t, b, agent.Clone(1), bus.Claimed, 0)
	if _, err := b.Receive(t.Context(), agent.Clone(1), bus.ReceiveOptions{}); !errors.Is(err, home.ErrLocked) {
		t.Fatalf("a second Receive = %v, want ErrLocked", err)
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Clone(1))
	r := mustReceive(t, b, agent.Clone(1), bus.ReceiveOptions{Start: "s1"})
	ask := message(agent.Owner, agent.Clone(1), "the owner shuts down")
	ask.Kind, ask.Start = envelope.KindShutdown, "another"
	mustSend(t, b, ask)
	testworld.Wait(t, "filed", func() bool { n, _ := b.Count(agent.Clone(1), bus.Delivered); return n == 1 })
	mustCount(t, b, agent.Root, bus.Inbox, 0)
	ask.Start = "s1"
	sent := mustSend(t, b, ask)
	if _, err := r.Next(t.Context()); !errors.Is(err, bus.ErrShutdown) {
		t.Fatalf("Next() = %v, want ErrShutdown", err)
	}
	e, ok, err := b.FindAnswer(t.Context(), "", agent.Root, sent.ID, time.Time{})
	if err != nil || !ok || e.Envelope.Kind != envelope.KindShutdownAck || e.Envelope.From != agent.Clone(1) {
		t.Fatalf("FindAnswer = %+v, %v, %v, want the ack", e, ok, err)
	}
	mustCount(t, b, agent.Clone(1), bus.Delivered, 2)
}

func TestDrainAndRoute(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Root, agent.Clone(1))
	mustDrop(t, home, agent.Clone(1), bus.Outbox, "a.json", `{"to":"agent0","text":"done"}`)
	mustDrop(t, home, agent.Clone(1), bus.Outbox, "b.json", `{"from":"agent1","to":"agent7","text":"who?"}`)
	testworld.Must(t, b.Route(t.Context()))
	mustCount(t, b, agent.Clone(1), bus.Outbox, 0)
	mustCount(t, b, agent.Clone(1), bus.Sent, 1)
	mustCount(t, b, agent.Clone(1), bus.Poison, 1)
	var got []envelope.Envelope
	n, err := b.Drain(t.Context(), agent.Root, 0, func(e envelope.Envelope) error {
		got = append(got, e)
		return nil
	})
	if err != nil || n != 1 || got[0].From != agent.Clone(1) || got[0].Text != "done" {
		t.Fatalf("Drain = %d, %v, %+v", n, err, got)
	}
}
