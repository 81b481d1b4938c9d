package access_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone/access"
	"netsky/phone/chat"
)

const pairing = "state/phone-pairing.json"

func ctx() context.Context { return context.Background() }

// from is a stranger's direct message.
func from(handle, text string) chat.Message {
	return chat.Message{
		Handle: handle, Text: text, Kind: chat.Text, Service: chat.ServiceIMessage,
		Chat: chat.Chat{Key: "-;" + handle, Identifier: handle, Direct: true},
	}
}

func mustBegin(t *testing.T, h home.Dir) access.Pairing {
	t.Helper()
	return testworld.Got(access.Begin(t.Context(), h, noon))(t)
}

// offer reports whether the message made a candidate.
func offer(t *testing.T, h home.Dir, m chat.Message, at time.Time) bool {
	t.Helper()
	taken, err := access.Offer(t.Context(), h, m, at)
	testworld.Must(t, err, "Offer")
	return taken
}

func TestPair(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	if offer(t, h, from("+15550100", "abcdef"), noon) {
		t.Fatal("taken without a pairing")
	}
	p := mustBegin(t, h)
	if len(p.Code) != 6 || strings.Trim(p.Code, "abcdefghijkmnopqrstuvwxyz") != "" || !p.Until.Equal(noon.Add(10*time.Minute)) {
		t.Fatalf("%+v", p)
	}
	data, err := os.ReadFile(h.Path(pairing))
	if err != nil || strings.Contains(string(data), p.Code) {
		t.Errorf("the file holds the code: %s %v", data, err)
	}
	if c, ok, err := p.Pending(h, noon); ok || err != nil {
		t.Errorf("at first: %+v, %v, %v", c, ok, err)
	}
	if !offer(t, h, from("+1 555 0100", " "+strings.ToUpper(p.Code[:1])+p.Code[1:]+"\n"), noon) {
		t.Fatal("the code is not taken")
	}
	testworld.Equal(t, offer(t, h, from("+15550111", p.Code), noon), false, "taken from a second one")
	if mustLoad(t, h).May("+15550100") {
		t.Fatal("allowed without the owner")
	}
	c, ok, err := p.Pending(h, noon)
	if want := (access.Candidate{Handle: "+15550100", Service: "iMessage", At: noon}); c != want || !ok || err != nil {
		t.Fatalf("%+v, %v, %v", c, ok, err)
	}
	testworld.ErrorIs(t, p.Confirm(t.Context(), h, access.Candidate{Handle: "+15550111"}, noon), access.ErrOver, "confirmed another one")
	testworld.Must(t, p.Confirm(t.Context(), h, c, noon))
	l := mustLoad(t, h)
	if e := l.Entries(); len(e) != 1 || e[0] != (access.Entry{Handle: "+15550100", By: "pairing", Added: noon}) || !l.May("+15550100") {
		t.Errorf("%+v", e)
	}
	testworld.ErrorIs(t, p.Confirm(t.Context(), h, c, noon), access.ErrOver, "confirmed twice")
	testworld.Equal(t, offer(t, h, from("+15550111", p.Code), noon), false, "the code counts twice")
}

func TestOfferRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		edit func(*chat.Message)
		at   time.Duration
	}{
		{"SMS", func(m *chat.Message) { m.Service = "SMS" }, 0},
		{"rcs", func(m *chat.Message) { m.Service = "rcs" }, 0},
		{"no service", func(m *chat.Message) { m.Service = "" }, 0},
		{"in a group", func(m *chat.Message) { m.Chat.Direct = false }, 0},
		{"our own", func(m *chat.Message) { m.FromMe = true }, 0},
		{"a press", func(m *chat.Message) { m.Kind = chat.Press }, 0},
		{"nobody", func(m *chat.Message) { m.Handle = "" }, 0},
		{"a group's handle", func(m *chat.Message) { m.Handle = "chat123" }, 0},
		{"in a sentence", func(m *chat.Message) { m.Text = "the code is " + m.Text }, 0},
		{"with a full stop", func(m *chat.Message) { m.Text += "." }, 0},
		{"twice", func(m *chat.Message) { m.Text += "\n" + m.Text }, 0},
		{"denied", func(m *chat.Message) { m.Handle = "+15550666" }, 0},
		{"too late", func(m *chat.Message) {}, 10 * time.Minute},
		{"before it began", func(m *chat.Message) {}, -2 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := testworld.Home(t)
			if _, _, err := access.Deny(t.Context(), h, "+15550666", noon); err != nil {
				t.Fatal(err)
			}
			p := mustBegin(t, h)
			m := from("+15550100", p.Code)
			tt.edit(&m)
			testworld.Equal(t, offer(t, h, m, noon.Add(tt.at)), false, "taken")
			if _, ok, _ := p.Pending(h, noon); ok {
				t.Error("a candidate is there")
			}
			testworld.Equal(t, offer(t, h, from("+15550100", p.Code), noon), true, "the true one is not taken any more")
		})
	}
	h := testworld.Home(t)
	p := mustBegin(t, h)
	m := from("123456789", p.Code)
	m.Service = "Telegram"
	testworld.Equal(t, offer(t, h, m, noon), true, "Telegram is not taken")
}

func TestPairingEnds(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	over := func(what string, p access.Pairing, at time.Time) {
		t.Helper()
		if _, _, err := p.Pending(h, at); !errors.Is(err, access.ErrOver) {
			t.Errorf("%s: Pending: %v", what, err)
		}
		testworld.Equal(t, offer(t, h, from("+15550100", p.Code), at), false, "%s: the code is taken", what)
		testworld.ErrorIs(t, p.Confirm(t.Context(), h, access.Candidate{Handle: "+15550100"}, at), access.ErrOver, "%s: Confirm", what)
	}
	p := mustBegin(t, h)
	for range 50 { // what strangers write is no try
		offer(t, h, from("+15550199", "hello there"), noon)
		offer(t, h, from("+15550199", "1234567"), noon)
	}
	if w, ok, err := access.Look(h, noon); !ok || err != nil || w.String() != "" || !w.Until.Equal(noon.Add(10*time.Minute)) {
		t.Errorf("no wrong code yet: %v, %v, %v", w, ok, err)
	}
	second := mustBegin(t, h)
	over("another one", p, noon)
	testworld.Must(t, p.End(t.Context(), h))
	testworld.Equal(t, offer(t, h, from("+15550100", second.Code), noon), true, "the end of one that is over ends another")
	if err := second.Confirm(t.Context(), h, access.Candidate{Handle: "+15550100"}, noon.Add(10*time.Minute)); !errors.Is(err, access.ErrOver) {
		t.Errorf("confirmed when its time was over: %v", err)
	}
	over("its time is over", second, noon.Add(10*time.Minute))
	if err := second.End(t.Context(), h); err != nil || h.Mark(pairing).Exists() {
		t.Errorf("End: %v", err)
	}
	over("ended", second, noon)
	testworld.Equal(t, mustLoad(t, h).May("+15550100"), false, "somebody was allowed")
}

// Of many who send the code at the same time, one is the candidate.
func TestOffersAtOnce(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	p := mustBegin(t, h)
	var taken atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if ok, err := access.Offer(ctx(), h, from("+1555010"+string(rune('0'+i)), p.Code), noon); err != nil {
				t.Error(err)
			} else if ok {
				taken.Add(1)
			}
		})
	}
	wg.Wait()
	testworld.Equal(t, taken.Load(), 1, "were taken")
}

// A damaged pairing, or one that others can write, takes nobody; a damaged list neither.
func TestPairingDamaged(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	p := mustBegin(t, h)
	testworld.Must(t, os.Chmod(h.Path(pairing), 0o666))
	if taken, err := access.Offer(t.Context(), h, from("+15550100", p.Code), noon); taken || err == nil {
		t.Errorf("writable: %v, %v", taken, err)
	}
	for _, text := range []string{"", "{", "[]", `{"began_ms":"x"}`} {
		testworld.Must(t, h.WriteFile(pairing, []byte(text), false))
		if taken, err := access.Offer(t.Context(), h, from("+15550100", p.Code), noon); taken || err == nil {
			t.Errorf("%q: %v, %v", text, taken, err)
		}
		if _, ok, err := p.Pending(h, noon); ok || err == nil {
			t.Errorf("%q: %v, %v", text, ok, err)
		}
	}
	p = mustBegin(t, h)
	mustWrite(t, h, `{"deny":[{}]}`)
	if taken, err := access.Offer(t.Context(), h, from("+15550100", p.Code), noon); taken || !errors.Is(err, access.ErrFile) {
		t.Errorf("%v, %v", taken, err)
	}
}

func BenchmarkLoad(b *testing.B) {
	h := testworld.Home(b)
	for _, handle := range []string{"+15550100", "+15550101", "me@example.org"} {
		if _, _, err := access.Allow(b.Context(), h, handle, noon); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if l, err := access.Load(h, []string{"+15550102"}); err != nil || !l.May("+15550100") {
			b.Fatal(err)
		}
	}
}

// A stranger's wrong codes end only the stranger's own tries; the owner is told of them, and why a
// pairing is over.
func TestWrongCodes(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	p := mustBegin(t, h)
	for range 30 {
		offer(t, h, from("+15550199", "wrongs"), noon)
	}
	if w, ok, err := access.Look(h, noon); !ok || err != nil || w.String() != "5 wrong codes came, the last from +15550199" {
		t.Errorf("%v, %v, %v", w, ok, err)
	}
	testworld.Equal(t, offer(t, h, from("+1 555 0199", p.Code), noon), false, "a guesser's sixth code counts")
	if _, _, err := p.Pending(h, noon.Add(10*time.Minute)); !errors.Is(err, access.ErrOver) || !strings.Contains(err.Error(), "nobody sent the code in time; 5 wrong codes came, the last from +15550199") {
		t.Errorf("its time is over: %v", err)
	}
	testworld.Equal(t, offer(t, h, from("+15550100", p.Code), noon), true, "a stranger has ended the pairing")

	p = mustBegin(t, h)
	for i := range 100 {
		for range 5 {
			offer(t, h, from(fmt.Sprintf("+1555%04d", i), "wrongs"), noon)
		}
	}
	if _, _, err := p.Pending(h, noon); !errors.Is(err, access.ErrOver) || !strings.Contains(err.Error(), "500 wrong codes came") {
		t.Errorf("after five hundred: %v", err)
	}
	if _, ok, err := access.Look(h, noon); ok || err != nil {
		t.Errorf("it waits: %v, %v", ok, err)
	}
	testworld.Equal(t, offer(t, h, from("+15550100", p.Code), noon), false, "a code counts after five hundred")
}

// Who waits at the terminal hears of a wrong code while they wait.
func TestWaitTellsWrongCodes(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	p, err := access.Begin(t.Context(), h, time.Now())
	testworld.Must(t, err)
	offer(t, h, from("+15550199", "wrongs"), time.Now())
	var told []string
	c, err := p.Wait(t.Context(), h, func(w access.Waiting) {
		told = append(told, w.String())
		offer(t, h, from("+15550100", p.Code), time.Now())
	})
	if err != nil || c.Handle != "+15550100" || len(told) != 1 || told[0] != "a wrong code came from +15550199" {
		t.Errorf("%+v, %v, told %q", c, err, told)
	}
}
