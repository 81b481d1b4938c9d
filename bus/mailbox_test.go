package bus_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
	"netsky/internal/testworld"
)

func TestDrainLeaves(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Owner)
	for _, text := range []string{"a", "b", "c", "d"} {
		mustSend(t, b, message(agent.Root, agent.Owner, text))
	}
	end := message(agent.Root, agent.Owner, "the end")
	end.Kind = envelope.KindShutdown
	mustSend(t, b, end)
	var got []string
	take := func(leave string, err error) func(envelope.Envelope) error {
		return func(e envelope.Envelope) error {
			if strings.Contains(leave, e.Text) {
				return err
			}
			got = append(got, e.Text)
			return nil
		}
	}
	if n, err := b.Drain(t.Context(), agent.Owner, 1, take("a", bus.ErrLeave)); n != 1 || err != nil {
		t.Fatalf("Drain = %d, %v", n, err)
	}
	broken := errors.New("broken pipe")
	if n, err := b.Drain(t.Context(), agent.Owner, 0, take("c", broken)); n != 1 || !errors.Is(err, broken) {
		t.Fatalf("Drain = %d, %v", n, err)
	}
	mustCount(t, b, agent.Owner, bus.Inbox, 3)
	mustCount(t, b, agent.Owner, bus.Claimed, 0)
	if n, err := b.Drain(t.Context(), agent.Owner, 0, take("", nil)); n != 2 || err != nil {
		t.Fatalf("Drain = %d, %v", n, err)
	}
	if want := []string{"b", "a", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("took %q, want %q", got, want)
	}
	mustCount(t, b, agent.Owner, bus.Inbox, 1) // the shutdown is nobody's here
	testworld.ErrorIs(t, testworld.Err(b.Drain(t.Context(), agent.Clone(9), 0, nil)), bus.ErrNoMailbox, "Drain of no mailbox")
}

func TestRetract(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1)
	e := message(agent.Owner, a1, "the end")
	e.Kind, e.Start = envelope.KindShutdown, "s"
	asked := mustSend(t, b, e)
	plain := mustSend(t, b, message(agent.Owner, a1, "no control mail"))
	for i, id := range []string{asked.ID, plain.ID} {
		n, err := b.Retract(t.Context(), a1, func(e envelope.Envelope) bool { return e.ID == id })
		if err != nil || n != 1 {
			t.Fatalf("Retract = %d, %v, want 1", n, err)
		}
		mustCount(t, b, a1, bus.Inbox, 1-i)
		list, err := b.Locate(t.Context(), id)
		if err != nil || len(list) != 1 || list[0].Place != bus.Delivered || !strings.Contains(list[0].Why, "taken back") {
			t.Errorf("Locate = %+v, %v", list, err)
		}
	}
}

func TestPoisonRetryAndDrop(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	age(t, mustDrop(t, home, a1, bus.Inbox, "x.json", "bad"))
	age(t, mustDrop(t, home, a1, bus.Inbox, "y.json", "bad"))
	testworld.Got(b.Drain(t.Context(), a1, 0, nil))(t)
	mustCount(t, b, a1, bus.Poison, 2)
	testworld.Must(t, os.WriteFile(box(home, bus.Poison, "x.json"), []byte(handmade), 0o600)) // mended
	mustRetry(t, b, a1, "x.json", bus.Inbox)
	testworld.Must(t, b.PoisonDrop(a1, "y.json"))
	testworld.Len(t, testworld.Got(os.ReadDir(box(home, bus.Poison, "")))(t), 0, "left in poison")
	n, err := b.Drain(t.Context(), a1, 0, func(envelope.Envelope) error { return nil })
	if err != nil || n != 1 {
		t.Errorf("Drain = %d, %v, want the mended one", n, err)
	}
	testworld.ErrorIs(t, testworld.Err(b.PoisonRetry(a1, "x.json")), os.ErrNotExist, "PoisonRetry of nothing")
}

func TestDeliveryPoison(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1)
	sent := mustSend(t, b, message(agent.Root, a1, "hi"))
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	d := mustNext(t, r)
	testworld.Must(t, d.Poison("the runtime refused it"))
	testworld.Must(t, d.Confirm()) // over is over
	e, ok, err := b.FindAnswer(t.Context(), "", agent.Root, sent.ID, time.Time{})
	if err != nil || !ok || e.Envelope.Kind != envelope.KindError || !strings.Contains(e.Envelope.Text, "the runtime refused it") {
		t.Errorf("FindAnswer = %+v, %v, %v", e, ok, err)
	}
	list, err := b.List(a1, bus.Poison, 1)
	if err != nil || len(list) != 1 || list[0].Envelope.ID != sent.ID || !strings.Contains(list[0].Why, "the runtime refused it") {
		t.Fatalf("List = %+v, %v", list, err)
	}
	mustRetry(t, b, a1, list[0].Name, bus.Inbox)
	d = mustNext(t, r) // offered again, for it was never delivered
	if d.Envelope().ID != sent.ID {
		t.Errorf("got %+v", d.Envelope())
	}
	mustConfirm(t, d)
}

func TestFindAnswer(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1, agent.Owner)
	began := time.Now()
	answer := func(kind envelope.Kind, text string) {
		e := message(a1, agent.Root, text)
		e.Kind, e.InReplyTo = kind, "q"
		mustSend(t, b, e)
	}
	answer(envelope.KindAck, "got it")
	answer(envelope.KindApproval, "may I")
	if _, ok, err := b.FindAnswer(t.Context(), "", agent.Root, "q", began); ok || err != nil {
		t.Errorf("an ack or a question counts as an answer: %v", err)
	}
	answer(envelope.KindReply, "first")
	answer(envelope.KindMessage, "second")
	if _, ok, err := b.FindAnswer(t.Context(), agent.Owner, agent.Root, "q", began); ok || err != nil {
		t.Errorf("the answer of another counts: %v", err)
	}
	for range 3 { // in the inbox, claimed, delivered
		e, ok, err := b.FindAnswer(t.Context(), "", agent.Root, "q", began)
		if err != nil || !ok || e.Envelope.Text != "second" {
			t.Errorf("FindAnswer = %+v, %v, %v", e, ok, err)
		}
		testworld.Got(b.Drain(t.Context(), agent.Root, 3, func(envelope.Envelope) error { return nil }))(t)
	}
	if _, ok, err := b.FindAnswer(t.Context(), "", agent.Root, "q", time.Now().Add(1500*time.Millisecond)); ok || err != nil {
		t.Errorf("found one older than wanted: %v", err)
	}
}

// A place that has certainly not changed since the question was sent is not listed.
func TestFindAnswerUnchanged(t *testing.T) {
	b, h := mustBus(t, bus.Options{}, agent.Root, a1)
	e := message(a1, agent.Root, "yes")
	e.Kind, e.InReplyTo = envelope.KindReply, "q"
	mustSend(t, b, e)
	sent := time.Now().Truncate(time.Second)
	for _, tt := range []struct {
		changed time.Duration
		listed  bool
	}{
		{0, true},
		{-time.Second, true}, // a file system may store even seconds only
		{-3 * time.Second, false},
		{-10*time.Millisecond + 1, true},
		{-100*time.Millisecond + 1, false},
	} {
		at := sent.Add(tt.changed)
		testworld.Must(t, os.Chtimes(h.Path(home.Mailbox(agent.Root), "inbox"), at, at))
		if _, ok, err := b.FindAnswer(t.Context(), "", agent.Root, "q", sent); ok != tt.listed || err != nil {
			t.Errorf("changed %v before: found %v, %v, want %v", tt.changed, ok, err, tt.listed)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Clone(10), agent.Owner, agent.Root, agent.Clone(9), agent.Infinity)
	got, err := b.Mailboxes()
	want := []agent.ID{agent.Root, agent.Clone(9), agent.Clone(10), agent.Infinity, agent.Owner}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Mailboxes = %v, %v, want %v", got, err, want)
	}
	testworld.Must(t, b.Make(agent.Root)) // again
	if b.Exists(a1) || !b.Exists(agent.Root) {
		t.Error("Exists is wrong")
	}
	for _, text := range []string{"a", "b", "c"} {
		mustSend(t, b, message(agent.Root, agent.Clone(9), text))
	}
	later := time.Now().Add(time.Second) // files' times lag a few ms behind the clock
	testworld.Must(t, os.Chtimes(mustDrop(t, home, agent.Clone(9), bus.Inbox, "zz.json", "bad"), later, later))
	list, err := b.List(agent.Clone(9), bus.Inbox, 3)
	if err != nil || len(list) != 3 || list[0].Envelope.Text != "b" || list[0].Err != nil || list[2].Err == nil || list[2].Name != "zz.json" {
		t.Errorf("List = %+v, %v", list, err)
	}
	names, err := b.Names(agent.Clone(9), bus.Inbox)
	if err != nil || len(names) != 4 {
		t.Errorf("Names = %v, %v", names, err)
	}
	if e, err := b.Read(agent.Clone(9), bus.Inbox, names[0]); err != nil || e.Envelope.Text != "a" || e.Size == 0 || time.Since(e.Time) > time.Minute {
		t.Errorf("Read = %+v, %v", e, err)
	}
	testworld.ErrorIs(t, testworld.Err(b.Names(a1, bus.Inbox)), bus.ErrNoMailbox, "Names of no mailbox")
}

func TestWatch(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Root)
	w := testworld.Got(b.Watch(t.Context(), bus.Spot{Place: bus.Inbox}, bus.Spot{Place: bus.Claimed}))(t)
	defer w.Close()
	testworld.Equal(t, w.Polling(), false, "polls where the system watches")
	hint := func(what string) {
		t.Helper()
		select {
		case <-w.C:
		case <-time.After(patience):
			t.Fatalf("no hint: %s", what)
		}
	}
	hint("the first")
	mustSend(t, b, message(agent.Owner, agent.Root, "hi"))
	hint("a message")
	testworld.Must(t, b.Make(a1))
	testworld.Wait(t, "the new mailbox to be watched", func() bool {
		for len(w.C) > 0 {
			<-w.C
		}
		mustDrop(t, home, a1, bus.Claimed, "x.json", handmade)
		return len(w.C) > 0
	})
	hint("a file in a new mailbox")
}

// Every file that is put aside says why in a word, below the text for people.
func TestReasons(t *testing.T) {
	t.Parallel()
	b, h := mustBus(t, bus.Options{}, agent.Root, a1)
	first := message(agent.Root, a1, "hi")
	first.ID = "m-first"
	late := message(agent.Root, a1, "late")
	late.Expires = time.Now().Add(-time.Hour)
	taken := message(agent.Root, a1, "end")
	taken.Kind, taken.Start = envelope.KindShutdown, "0000000000000001"
	want := map[string]mailbox.Reason{}
	want[mustSend(t, b, taken).File] = mailbox.Retracted
	if n, err := b.Retract(t.Context(), a1, func(envelope.Envelope) bool { return true }); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	want[mustSend(t, b, first).File] = ""
	want[mustSend(t, b, first).File] = mailbox.Duplicate
	want[mustSend(t, b, late).File] = mailbox.Expired
	mustDrop(t, h, a1, bus.Inbox, "bad.json", "[1]")
	want["bad.json"] = mailbox.Invalid
	refused := mustSend(t, b, message(agent.Root, a1, "no"))
	want[refused.File] = mailbox.Refused
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustConfirm(t, mustNext(t, r))
	testworld.Must(t, mustNext(t, r).Poison("a test refuses it"))
	for name, reason := range want {
		testworld.Wait(t, name+" is put aside", func() bool {
			e, err := b.Find(a1, name)
			return err == nil && (e.Place == bus.Delivered || e.Place == bus.Poison) && e.Reason == reason
		})
		if e, err := b.Find(a1, name); err != nil || reason != "" && strings.Contains(e.Why, "\nreason:") {
			t.Errorf("%s: %v, why %q", name, err, e.Why)
		}
	}
}

// Whoever drains a mailbox is not taken for its receiver.
func TestDrainPasses(t *testing.T) {
	t.Parallel()
	b, h := mustBus(t, bus.Options{}, a1, agent.Owner)
	mustSend(t, b, message(agent.Owner, a1, "hello"))
	testworld.Got(b.Drain(t.Context(), a1, 0, func(envelope.Envelope) error {
		if who, held := h.LockHolder(home.ReceiverLock(a1)); !held || !who.Passing() {
			t.Errorf("while it is drained: held %v by %+v", held, who)
		}
		return nil
	}))(t)
	mustReceive(t, b, a1, bus.ReceiveOptions{})
	if who, held := h.LockHolder(home.ReceiverLock(a1)); !held || who.Passing() {
		t.Errorf("held %v by %+v, want its receiver", held, who)
	}
}
