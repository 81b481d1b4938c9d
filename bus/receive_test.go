package bus_test

import (
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

func TestOrder(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	first := mustSend(t, b, message(agent.Root, a1, "2"))
	hand := mustDrop(t, home, a1, bus.Inbox, "zz.json", newEnvelope(`"text":"1"`))
	age(t, hand)
	mustSend(t, b, message(agent.Root, a1, "3"))
	mustDrop(t, home, a1, bus.Inbox, "owner.json", `{"from":"owner","text":"0b","ts":"2026-11-20T12:00:00Z"}`)
	mustSend(t, b, message(agent.Owner, a1, "0c"))
	age(t, mustDrop(t, home, a1, bus.Inbox, "older.json", `{"from":"owner","text":"0a","ts":"2026-11-20T12:00:00Z"}`))
	for _, name := range []string{"x.json~", ".x.json.swp", "4913", "#x.json#", "x.JSON", ".hidden.json"} {
		mustDrop(t, home, a1, bus.Inbox, name, "no envelope")
	}
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	for _, want := range []string{"0a", "0b", "0c", "1", "2", "3"} {
		d := mustNext(t, r)
		if got := d.Envelope(); got.Text != want {
			t.Fatalf("got %q, want %q", got.Text, want)
		} else if want == "2" && got.ID != first.ID {
			t.Errorf("ID %s, want %s", got.ID, first.ID)
		}
		mustConfirm(t, d)
	}
	mustNone(t, r)
	mustCount(t, b, a1, bus.Poison, 0)
}

func TestTheSameNameTwice(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	ids := make(map[string]bool)
	for range 3 {
		mustDrop(t, home, a1, bus.Inbox, "x.json", handmade)
		d := mustNext(t, r)
		if id := d.Envelope().ID; ids[id] || !strings.HasPrefix(id, "f-") || len(id) != 34 {
			t.Errorf("ID %s, had: %v", id, ids)
		}
		ids[d.Envelope().ID] = true
		mustConfirm(t, d)
	}
	names, err := b.Names(a1, bus.Delivered)
	if err != nil || fmt.Sprint(names) != "[x.json x~2.json x~3.json]" {
		t.Errorf("delivered: %v, %v", names, err)
	}
	for id := range ids {
		if list, err := b.Locate(t.Context(), id); err != nil || len(list) != 1 {
			t.Errorf("Locate(%s) = %d entries, %v", id, len(list), err)
		}
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Root, agent.Clone(2), a1)
	send := func(from agent.ID, id, key string) {
		e := message(from, a1, "hi")
		e.ID, e.IdempotencyKey = id, key
		mustSend(t, b, e)
	}
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	send(agent.Root, "one", "")
	send(agent.Root, "one", "") // while the first is in hand
	d := mustNext(t, r)
	mustNone(t, r)
	mustConfirm(t, d)
	send(agent.Root, "two", "key")
	mustConfirm(t, mustNext(t, r))
	send(agent.Root, "three", "key")
	send(agent.Root, "one", "")
	mustNone(t, r)
	send(agent.Clone(2), "one", "key") // another sender's one is another one
	mustConfirm(t, mustNext(t, r))
	testworld.Must(t, r.Close())
	// The next holder remembers.
	send(agent.Root, "two", "")
	r = mustReceive(t, bus.New(home, bus.Options{}), a1, bus.ReceiveOptions{})
	mustNone(t, r)
	mustCount(t, b, a1, bus.Delivered, 7)
	list := testworld.Got(b.List(a1, bus.Delivered, 0))(t)
	unread := 0
	for _, e := range list {
		if strings.Contains(e.Why, "already delivered") {
			unread++
		}
	}
	testworld.Equal(t, unread, 4, "filed unread with the reason")
}

func TestForgetting(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	b, h := mustBus(t, bus.Options{Keep: time.Hour, Now: func() time.Time { return time.Unix(0, now.Load()) }}, agent.Root, a1)
	e := message(agent.Owner, a1, "hi")
	e.ID = "once"
	for _, want := range []int{1, 0} {
		mustSend(t, b, e)
		n, err := b.Drain(t.Context(), a1, 0, func(envelope.Envelope) error { return nil })
		if err != nil || n != want {
			t.Fatalf("Drain = %d, %v, want %d", n, err, want)
		}
	}
	fresh := message(agent.Owner, a1, "fresh")
	now.Add(int64(2 * time.Hour))
	n, err := b.Prune(t.Context(), func(id string) bool { return id != "once" })
	if err != nil || n != 0 {
		t.Errorf("Prune of what is not on record = %d, %v", n, err)
	}
	mustSend(t, b, fresh)
	if n, err := b.Drain(t.Context(), a1, 0, func(envelope.Envelope) error { return nil }); err != nil || n != 1 {
		t.Fatalf("Drain = %d, %v", n, err)
	}
	if n, err := b.Prune(t.Context(), func(string) bool { return true }); err != nil || n < 2 {
		t.Errorf("Prune = %d, %v, want the two old ones", n, err)
	}
	mustSend(t, b, e) // after keep an ID is new again
	testworld.Equal(t, testworld.Got(b.Drain(t.Context(), a1, 0, func(envelope.Envelope) error { return nil }))(t), 1, "Drain after keep")
	if whys, _ := os.ReadDir(h.Path(home.Mailbox(a1), "delivered")); len(whys) > 2 {
		t.Errorf("left in delivered: %v", whys)
	}
}

func TestExpiryAndLength(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Root, agent.Clone(2), a1, agent.Owner)
	late := message(agent.Owner, a1, "too late")
	late.ID, late.Expires = "late", time.Now().Add(-time.Second)
	mustSend(t, b, late)
	long := message(agent.Clone(2), a1, strings.Repeat("<", 300))
	long.ID = "long"
	mustSend(t, b, long)
	longReply := long
	longReply.ID, longReply.Kind = "long-reply", envelope.KindReply
	mustSend(t, b, longReply)
	longAnswer := longReply // to a question of the recipient's
	longAnswer.ID, longAnswer.InReplyTo = "long-answer", "question"
	mustSend(t, b, longAnswer)
	mustDrop(t, home, a1, bus.Inbox, "old.json", handmade)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{MaxText: 1000})
	d := mustNext(t, r)
	if !strings.Contains(d.Rendered(), ` waited="`) == d.Envelope().Time.Before(time.Now().Add(-time.Hour)) {
		t.Errorf("Rendered = %s", d.Rendered())
	}
	mustConfirm(t, d)
	told := mustNext(t, r)
	if e := told.Envelope(); e.From != agent.Clone(2) || e.Kind != envelope.KindError || e.InReplyTo != "question" ||
		!strings.HasPrefix(e.Text, "the reply of agent2 was not delivered to agent1: too long for agent1: ") || !strings.HasSuffix(e.Text, ". It begins: "+strings.Repeat("<", 62)) {
		t.Errorf("who waits for an answer that is too long is told %+v", e)
	}
	mustConfirm(t, told)
	mustNone(t, r)
	for _, tt := range []struct {
		to   agent.ID
		id   string
		want bool
	}{{agent.Owner, "late", true}, {agent.Clone(2), "long", true}, {agent.Clone(2), "long-reply", false}} {
		e, ok, err := b.FindAnswer(t.Context(), "", tt.to, tt.id, time.Time{})
		if err != nil || ok != tt.want || ok && (e.Envelope.Kind != envelope.KindError || e.Envelope.ID != envelope.AnswerID(a1, tt.id, envelope.KindError)) {
			t.Errorf("answer to %s: %+v, %v, %v", tt.id, e.Envelope, ok, err)
		}
	}
	mustCount(t, b, a1, bus.Poison, 3)
	mustCount(t, b, a1, bus.Delivered, 3)
}

func TestWitness(t *testing.T) {
	t.Parallel()
	b, h := mustBus(t, bus.Options{}, agent.Root, a1)
	seen, unseen := mustSend(t, b, message(agent.Owner, a1, "seen")), mustSend(t, b, message(agent.Owner, a1, "unseen"))
	r := mustReceive(t, b, a1, bus.ReceiveOptions{Witness: true})
	d := mustNext(t, r)
	mustNext(t, r)
	testworld.Must(t, b.Witness(a1, "nothing-we-know"))
	testworld.Must(t, b.Witness(a1, seen.ID))
	select {
	case <-d.Witnessed():
	case <-time.After(patience):
		t.Fatal("not witnessed")
	}
	testworld.Must(t, r.Close()) // before it is confirmed
	testworld.ErrorIs(t, d.Confirm(), bus.ErrClosed, "Confirm after Close")
	// A hook's half line at a crash, and other programs' lines.
	f := testworld.Got(h.OpenAppend(home.EventsFile(a1)))(t)
	fmt.Fprintf(f, "not JSON\n{\"ms\":1,\"event\":\"stop\",\"id\":%q}\n{\"ms\":1,\"event\":\"seen\",\"id\":%q", unseen.ID, unseen.ID)
	testworld.Must(t, f.Close())
	mustSend(t, b, message(agent.Owner, a1, "new"))
	r = mustReceive(t, b, a1, bus.ReceiveOptions{})
	for _, want := range []string{"unseen", "new"} {
		d := mustNext(t, r)
		testworld.Equal(t, d.Envelope().Text, want)
		mustConfirm(t, d)
	}
	mustCount(t, b, a1, bus.Delivered, 3)
	testworld.Must(t, b.Witness(a1))
	testworld.ErrorIs(t, b.Witness(a1, "x", "../x"), envelope.ErrInvalid, "Witness of no ID")
}

// TestWitnessesAndRotation: several are witnessed in one write, and a receiver
// that looks later misses none when the file is moved aside meanwhile.
func TestWitnessesAndRotation(t *testing.T) {
	t.Parallel()
	b, h := mustBus(t, bus.Options{}, agent.Root, a1)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{Witness: true})
	for round := range 3 {
		var ids []string
		for i := range 4 {
			e := message(agent.Owner, a1, "hi")
			e.ID = fmt.Sprintf("m-%d-%d", round, i)
			ids = append(ids, mustSend(t, b, e).ID)
		}
		var held []*bus.Delivery
		for range ids {
			held = append(held, mustNext(t, r))
		}
		testworld.Must(t, b.Witness(a1, ids[:3]...))
		f := testworld.Got(h.OpenAppend(home.EventsFile(a1)))(t)
		fmt.Fprintln(f, strings.Repeat("x", 5<<20))
		testworld.Must(t, f.Close())
		testworld.Must(t, home.Events(h).Rotate(a1))
		testworld.Must(t, b.Witness(a1, ids[3]))
		for _, d := range held {
			select {
			case <-d.Witnessed():
			case <-time.After(patience):
				t.Fatalf("%s not witnessed", d.Envelope().ID)
			}
		}
		if round == 1 { // the next holder reads what was moved aside, too
			testworld.Must(t, r.Close())
			r = mustReceive(t, b, a1, bus.ReceiveOptions{Witness: true})
			mustCount(t, b, a1, bus.Delivered, 8)
			continue
		}
		mustConfirmAll(t, held)
	}
	mustNone(t, r)
}

func TestShutdownWaitsForTheTurn(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	b, _ := mustBus(t, bus.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}, agent.Root, a1)
	acks := func() int { n, _ := b.Count(agent.Root, bus.Inbox); return n }
	ask := func(start string) {
		e := message(agent.Owner, a1, "the end")
		e.Kind, e.Start = envelope.KindShutdown, start
		mustSend(t, b, e)
	}
	for _, end := range []string{"turn ends", "45 s"} {
		before := acks()
		r := mustReceive(t, b, a1, bus.ReceiveOptions{Start: end})
		mustSend(t, b, message(agent.Owner, a1, "work"))
		d := mustNext(t, r)
		done := r.Turn()
		mustSend(t, b, message(agent.Owner, a1, "more work"))
		ask("another start")
		ask(end)
		ask(end) // down was called twice
		testworld.Wait(t, "claimed", func() bool { n, _ := b.Count(a1, bus.Claimed); return n == 3 })
		mustNone(t, r) // and no more work
		testworld.Equal(t, acks(), before, "%s: acked during the turn", end)
		if end == "45 s" {
			ahead.Add(int64(44 * time.Second))
			r.Prod()
			mustNone(t, r)
			ahead.Add(int64(2 * time.Second))
		} else {
			done()
			done() // twice does no harm
		}
		if _, err := r.Next(t.Context()); !errors.Is(err, bus.ErrShutdown) {
			t.Fatalf("%s: Next = %v, want ErrShutdown", end, err)
		}
		if n := acks(); n != before+2 {
			t.Errorf("%s: %d acks, want 2", end, n-before)
		}
		list, err := b.List(agent.Root, bus.Inbox, 0)
		for _, e := range list[before:] {
			if late := end == "45 s"; err != nil || e.Envelope.Unfinished() != late {
				t.Errorf("%s: the ack says unfinished: %v, %v", end, !late, err)
			}
		}
		mustConfirm(t, d) // what the turn was about can still be confirmed
		testworld.Must(t, r.Close())
		n, err := b.Drain(t.Context(), a1, 0, func(envelope.Envelope) error { return nil })
		if err != nil || n != 1 {
			t.Errorf("%s: Drain = %d, %v, want the work that was left", end, n, err)
		}
	}
}

// TestShutdownBeforeTheTurn: who may be in the middle of a turn when it takes the
// mailbox is not shut down before it has said so.
func TestShutdownBeforeTheTurn(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1)
	e := message(agent.Owner, a1, "the end")
	e.Kind, e.Start = envelope.KindShutdown, "s"
	mustSend(t, b, e)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{Start: "s", Running: true})
	testworld.Wait(t, "claimed", func() bool { n, _ := b.Count(a1, bus.Claimed); return n == 1 })
	mustNone(t, r)
	if n, _ := b.Count(agent.Root, bus.Inbox); n != 0 {
		t.Error("acked before a turn was told of")
	}
	r.Turn()()
	testworld.ErrorIs(t, testworld.Err(r.Next(t.Context())), bus.ErrShutdown, "Next")
}

func TestControlMail(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1)
	cancelled := make(chan string, 1)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{Cancel: func(e envelope.Envelope) { cancelled <- e.InReplyTo }})
	for _, kind := range []envelope.Kind{envelope.KindAck, envelope.KindShutdownAck, envelope.KindShutdown, envelope.KindCancel} {
		e := message(agent.Root, a1, "control")
		e.Kind, e.InReplyTo = kind, "it"
		mustSend(t, b, e)
	}
	testworld.Equal(t, <-cancelled, "it", "cancelled")
	testworld.Wait(t, "filed", func() bool { n, _ := b.Count(a1, bus.Delivered); return n == 4 })
	mustNone(t, r)
	mustCount(t, b, agent.Root, bus.Inbox, 0)
}

func TestShutdownTakenBack(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Clone(2), a1)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{Start: "s"})
	done := r.Turn()
	ask := message(agent.Owner, a1, "the end")
	ask.Kind, ask.Start = envelope.KindShutdown, "s"
	asked := mustSend(t, b, ask)
	testworld.Wait(t, "claimed", func() bool { n, _ := b.Count(a1, bus.Claimed); return n == 1 })
	for _, from := range []agent.ID{agent.Clone(2), agent.Owner} { // a clone has no say in it
		mustCount(t, b, a1, bus.Claimed, 1)
		back := message(from, a1, "go on")
		back.Kind, back.InReplyTo = envelope.KindCancel, asked.ID
		before, _ := b.Count(a1, bus.Delivered)
		mustSend(t, b, back)
		testworld.Wait(t, "filed", func() bool { n, _ := b.Count(a1, bus.Delivered); return n > before })
	}
	testworld.Wait(t, "taken back", func() bool { n, _ := b.Count(a1, bus.Claimed); return n == 0 })
	done()
	mustSend(t, b, message(agent.Owner, a1, "work"))
	mustConfirm(t, mustNext(t, r))
	mustCount(t, b, agent.Root, bus.Inbox, 0)
}

func TestSweep(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, a1)
	old := mustDrop(t, home, a1, bus.Inbox, ".old.json.tmp", "half")
	dead := time.Now().Add(-37 * time.Hour)
	testworld.Must(t, os.Chtimes(old, dead, dead))
	mustDrop(t, home, a1, bus.Inbox, ".new.json.tmp", "half")
	mustDrop(t, home, a1, bus.Inbox, ".keep", "not ours")
	mustReceive(t, b, a1, bus.ReceiveOptions{})
	testworld.Wait(t, "swept", func() bool { _, err := os.Stat(old); return os.IsNotExist(err) })
	testworld.Len(t, testworld.Got(os.ReadDir(box(home, bus.Inbox, "")))(t), 2, "left")
}

// What was confirmed while its mailbox was away is filed when that is back, and
// not offered again.
func TestConfirmWhileMailboxIsAway(t *testing.T) {
	t.Parallel()
	b, h := mustBus(t, bus.Options{}, agent.Root, a1)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustSend(t, b, message(agent.Owner, a1, "hi"))
	d := testworld.Got(r.Next(t.Context()))(t)
	box, away := h.Path(home.Mailbox(a1)), h.Path("away")
	testworld.Must(t, os.Rename(box, away))
	testworld.Wait(t, "the receiver makes it anew", func() bool { return b.Exists(a1) })
	mustConfirm(t, d)
	testworld.Wait(t, "it is back", func() bool { // unless the receiver makes it anew again in between
		return os.RemoveAll(box) == nil && os.Rename(away, box) == nil
	})
	testworld.Wait(t, "it is filed", func() bool {
		claimed, cerr := b.Count(a1, bus.Claimed)
		names, derr := b.Names(a1, bus.Delivered)
		return cerr == nil && derr == nil && claimed == 0 && len(names) == 1
	})
	if ok, err := b.SeenText(a1, d.Rendered()); err != nil || !ok {
		t.Errorf("SeenText = %v, %v", ok, err)
	}
}
