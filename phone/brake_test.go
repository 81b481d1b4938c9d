package phone_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/phone/record"
)

// verdict waits for the verdict on a message.
func (w *world) verdict(guid string) (verdict string) {
	w.t.Helper()
	row := func() bool {
		return w.db.Pool().QueryRowContext(w.t.Context(), "SELECT verdict FROM phone_heard WHERE guid = ?", guid).Scan(&verdict) == nil
	}
	testworld.Wait(w.t, guid+" is heard", row)
	return verdict
}

// A chat rests also while more arrives than is looked at otherwise, and in a later run.
func TestBrakeInAFlood(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 1500 {
		w.wire.Put(chat.Message{GUID: fmt.Sprint("loop-", i), Text: "I am away"})
	}
	w.wire.Put(chat.Message{GUID: "still", Text: "still me"})
	testworld.Equal(t, w.verdict("still"), phone.VerdictBraked, "behind the flood")
	w.stop()
	w.start()
	w.wire.Put(chat.Message{GUID: "later", Text: "and later"})
	testworld.Equal(t, w.verdict("later"), phone.VerdictBraked, "in a later run")
	testworld.Equal(t, len(w.inbox(agent.Root)), 5, "were taken")
}

// What is taken counts, whatever else is on record between it: echoes, what another chat brings.
func TestBrakeCountsBehindOthers(t *testing.T) {
	w := newWorld(t, nil)
	put := func(from, to int, text string) {
		for i := range to - from {
			w.wire.Put(chat.Message{GUID: fmt.Sprint("m-", from+i), Text: text})
		}
	}
	put(0, 4, "I am away")
	w.verdict("m-3")
	put(10, 1200, "[netsky] ours")
	w.verdict("m-1199")
	put(4, 6, "I am away")
	testworld.Equal(t, w.verdict("m-4"), phone.VerdictOrder, "the fifth")
	testworld.Equal(t, w.verdict("m-5"), phone.VerdictBrake, "the sixth")
}

// A chat that is too full again soon after it has rested rests twice as long, without another word;
// after a calm time the first rest is short again.
func TestBrakeDoubles(t *testing.T) {
	begin := time.Now()
	var later atomic.Int64 // no time passes but this
	now := func() time.Time { return begin.Add(time.Duration(later.Load())) }
	w := newWorld(t, func(o *phone.Options) { o.Now = now })
	n := 0
	flood := func() {
		t.Helper()
		last := ""
		for range 6 {
			n++
			last = w.wire.Put(chat.Message{GUID: fmt.Sprint("flood-", n), Text: "I am away", At: now()})
		}
		if got := w.verdict(last); got != phone.VerdictBrake {
			t.Fatalf("the last of the flood: %s", got)
		}
	}
	at := func(minutes int, want string) {
		t.Helper()
		later.Add(int64(time.Duration(minutes) * time.Minute))
		n++
		guid := w.wire.Put(chat.Message{GUID: fmt.Sprint("one-", n), Text: fmt.Sprint("one ", n), At: now()})
		testworld.Equal(t, w.verdict(guid), want, "message %d", n)
	}
	flood()
	at(9, phone.VerdictBraked)
	at(2, phone.VerdictOrder)
	flood()
	at(19, phone.VerdictBraked)
	at(2, phone.VerdictOrder)
	flood()
	at(39, phone.VerdictBraked)
	testworld.Wait(t, "status says until when", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && s.Rests.Time().Sub(now()).Round(time.Minute) == time.Minute
	})
	at(30, phone.VerdictOrder)
	flood()
	at(79, phone.VerdictBraked)
	testworld.Len(t, w.wire.Texts(), 1, "one notice")
	at(90, phone.VerdictOrder)
	flood()
	at(11, phone.VerdictOrder)
	w.wire.Put(chat.Message{GUID: "last", Text: "the last", At: now()})
	w.arrives(agent.Root, "the last")
	testworld.Wait(t, "the second notice", func() bool { return len(w.wire.Texts()) == 2 })
	mails := w.inbox(agent.Owner)
	mails = slices.DeleteFunc(mails, func(e envelope.Envelope) bool { return !strings.HasPrefix(e.ID, "phone-brake-") }) // the clock's jumps look like a phone that can't be read
	testworld.Equal(t, len(mails), 2, "notices by mail")
}

// It stops at half a day.
func TestBrakeLongest(t *testing.T) {
	begin := time.Now()
	var later atomic.Int64
	now := func() time.Time { return begin.Add(time.Duration(later.Load())) }
	w := newWorld(t, func(o *phone.Options) { o.Now = now })
	for round := range 9 {
		for i := range 6 {
			w.wire.Put(chat.Message{GUID: fmt.Sprint(round, "-", i), Text: "I am away", At: now()})
		}
		w.verdict(fmt.Sprint(round, "-5"))
		h, ok, err := (record.Records{DB: w.db}).LastIn(t.Context(), "test", mine.Key, phone.VerdictBrake)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		rest, err := time.ParseDuration(h.Note)
		if want := min(10*time.Minute<<round, 12*time.Hour); err != nil || rest != want {
			t.Fatalf("round %d rests for %s, want %s", round, h.Note, want)
		}
		later.Add(int64(rest + time.Minute))
	}
}
