package courier_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/testworld"
)

// usage returns a used up quota that is reset after d.
func usage(d time.Duration) faultError {
	return faultError{agent.Fault{Reason: agent.UsageLimit, UntilMS: time.Now().Add(d).UnixMilli(), Text: "You've used it up"}}
}

// fails makes the program's next n turns fail, and counts all turns.
func (p *program) fails(n int32, fault func() error) (turns *atomic.Int32) {
	turns = new(atomic.Int32)
	p.turn = func(string) (time.Duration, string, error) {
		if turns.Add(1) <= n {
			return 0, "", fault()
		}
		return 0, "42", nil
	}
	return turns
}

// retry lets the account be tried now.
func (p *post) retry() {
	p.Helper()
	if _, err := breaker.Of(p.home, account).Retry(context.Background()); err != nil {
		p.Fatal(err)
	}
}

func (p *post) tripped() bool {
	p.Helper()
	s, err := breaker.Of(p.home, account).Load()
	if err != nil {
		p.Fatal(err)
	}
	return s.Tripped()
}

func (p *post) held(id string) (h courier.Hold, ok bool) {
	m, _ := courier.ReadLedger(p.home, p.id).Find(id)
	if m.State != courier.StateHeld {
		return h, false
	}
	return *m.Held, true
}

func (p *post) mustHold(id string) (h courier.Hold) {
	p.Helper()
	testworld.Wait(p, id+" is held", func() (ok bool) {
		h, ok = p.held(id)
		return ok
	})
	return h
}

// TestHeld: a message whose turn failed of the account's quota is not answered, but given
// to the model again when that is reset; what arrives meanwhile waits.
func TestHeld(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		restarted bool // the courier, while it holds the message
		again     int32
	}{
		{name: "once"},
		{name: "twice", again: 1},
		{name: "restarted", restarted: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			turns := p.program.fails(1+tt.again, func() error { return usage(time.Hour) })
			p.program.mustStart(t)
			stop := p.run()
			p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "the answer?"})
			h := p.mustHold("owner-0")
			if h.Fault.Reason != agent.UsageLimit || h.Fault.Account != account || h.Tries != 1 {
				t.Errorf("held: %+v", h)
			}
			testworld.Wait(p, "reported as blocked", func() bool {
				r, err := p.home.LoadReport(me)
				return err == nil && r.State == agent.Blocked && r.Fault.Reason == agent.UsageLimit &&
					time.Until(r.Fault.Until()) > 50*time.Minute && strings.HasPrefix(r.Detail, "usage limit until ")
			})
			p.drop(envelope.Envelope{ID: "agent0-0", From: agent.Root, To: me, Text: "later"})
			if tt.restarted {
				stop()
				p.run()
			}
			p.man.Look(t.Context())
			if n := p.count(me, bus.Delivered); n != 1 {
				t.Errorf("%d messages were given to the model, want 1", n)
			}
			if n := turns.Load(); n != 1 {
				t.Errorf("%d turns before the reset", n)
			}
			p.retry()
			for n := range tt.again {
				testworld.Wait(p, "held again", func() bool {
					h, ok := p.held("owner-0")
					return ok && h.Tries == int(2+n)
				})
				p.retry()
			}
			testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "owner-0")) > 0 })
			testworld.Wait(p, "the other one filed", func() bool { return p.count(me, bus.Delivered) == 2 && p.owed() == "" })
			if list := p.answers(agent.Owner, "owner-0"); len(list) != 1 || list[0].Kind != envelope.KindReply || list[0].Text != "42" {
				t.Errorf("answers: %+v", list)
			}
			if p.tripped() {
				t.Error("the account is still taken for exhausted")
			}
			testworld.Wait(p, "idle", func() bool {
				r, err := p.home.LoadReport(me)
				return err == nil && r.State == agent.Idle && r.Fault == agent.Fault{}
			})
			p.program.mu.Lock()
			defer p.program.mu.Unlock()
			want := []string{"the answer?", "given to you again", "later"}
			if tt.again > 0 {
				want = []string{"the answer?", "try 2", "try 3", "later"}
			}
			if len(p.program.texts) != len(want) {
				t.Fatalf("texts: %q", p.program.texts)
			}
			for i, words := range want {
				if !strings.Contains(p.program.texts[i], words) {
					t.Errorf("text %d: %q, want %q in it", i, p.program.texts[i], words)
				}
			}
		})
	}
}

// TestHeldForLogin: it is tried again by itself, and at once after a login or when the owner
// has it tried.
func TestHeldForLogin(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*post) error{
		"a login": func(p *post) error {
			p.program.set(func() { p.program.login = time.Now().Add(time.Second) })
			return nil
		},
		"the owner": func(p *post) error { _, err := breaker.Of(p.home, account).Retry(t.Context()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			p.program.fails(1, func() error { return faultError{agent.Fault{Reason: agent.Login, Text: "Please run /login"}} })
			p.program.mustStart(t)
			p.run()
			p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "?"})
			p.mustHold("owner-0")
			testworld.Wait(p, "reported as blocked", func() bool {
				r, err := p.home.LoadReport(me)
				return err == nil && r.State == agent.Blocked && r.Fault.Reason == agent.Login && strings.Contains(r.Detail, "tried again at")
			})
			if err := act(p); err != nil {
				t.Fatal(err)
			}
			testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "owner-0")) == 1 })
		})
	}
}

// TestClosedEarly: an account that serves before its stated time serves everybody at once,
// and so does another account that its owner has logged in with.
func TestClosedEarly(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.fails(1, func() error { return usage(time.Hour) })
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "?"})
	p.mustHold("owner-0")
	testworld.Wait(p, "reported as blocked", func() bool {
		r, err := p.home.LoadReport(me)
		return err == nil && r.State == agent.Blocked
	})
	if closed, err := breaker.Of(p.home, account).Answered(t.Context(), agent.Clone(2), time.Now().Add(time.Second)); !closed || err != nil {
		t.Fatalf("Answered = %v, %v", closed, err)
	}
	testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "owner-0")) == 1 })
}

// TestHeldFutureLogin: a login file from the future does not make it try again and again.
func TestHeldFutureLogin(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.login = time.Now().Add(24 * time.Hour)
	turns := p.program.fails(1000, func() error { return faultError{agent.Fault{Reason: agent.Login, Text: "Please run /login"}} })
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "?"})
	p.mustHold("owner-0")
	for range 5 {
		p.man.Look(t.Context())
	}
	if n := turns.Load(); n != 1 {
		t.Errorf("%d turns", n)
	}
}

// TestHeldWithoutBreaker: if the account's breaker can't be written, it is tried again
// slowly, and none of that counts against the message.
func TestHeldWithoutBreaker(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	if err := p.home.WriteFile("state/breakers", []byte("not a directory"), false); err != nil {
		t.Fatal(err)
	}
	turns := p.program.fails(1000, func() error { return usage(time.Hour) })
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "?"})
	h := p.mustHold("owner-0")
	for range 5 {
		p.man.Look(t.Context())
	}
	if n := turns.Load(); n != 1 || h.Tries != 0 {
		t.Errorf("%d turns, %d of them counted", n, h.Tries)
	}
}

// TestHeldAndGone: the file of a held message is removed while no courier runs.
func TestHeldAndGone(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.fails(1, func() error { return usage(time.Hour) })
	p.program.mustStart(t)
	stop := p.run()
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "?"})
	p.mustHold("owner-0")
	stop()
	if l := courier.ReadLedger(p.home, me); !l.Owes("owner-0") || l.Err != nil {
		t.Errorf("ledger: %+v", l)
	}
	names, err := p.bus.Names(me, bus.Delivered)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := p.home.Remove(home.Mailbox(me) + "/delivered/" + names[0]); err != nil {
		t.Fatal(err)
	}
	p.run()
	testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "owner-0")) == 1 })
	if a := p.answers(agent.Owner, "owner-0")[0]; a.Kind != envelope.KindError || !strings.Contains(a.Text, "no longer in the mailbox") {
		t.Errorf("answer: %+v", a)
	}
}

// TestHeldFirst: what was offered and not seen when the account was tripped waits behind
// what is held.
func TestHeldFirst(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	started, fail := make(chan bool, 10), make(chan bool)
	p.program.turn = func(text string) (time.Duration, string, error) {
		if strings.Contains(text, "first") {
			select {
			case started <- true:
			default:
			}
			<-fail
			if strings.Contains(text, "given to you again") {
				return 0, "42", nil
			}
			return 0, "", usage(time.Hour)
		}
		return 0, "43", nil
	}
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "first"})
	<-started
	p.program.set(func() { p.program.drop = 1 })
	p.drop(envelope.Envelope{ID: "owner-1", From: agent.Owner, To: me, Text: "second"})
	testworld.Wait(p, "the second is dropped", func() bool {
		p.program.mu.Lock()
		defer p.program.mu.Unlock()
		return p.program.dropped == 1
	})
	close(fail)
	p.mustHold("owner-0")
	testworld.Wait(p, "the flight is over", func() bool {
		r, err := p.home.LoadReport(me)
		return err == nil && r.State == agent.Blocked
	})
	for range 20 {
		p.man.Look(t.Context())
	}
	p.retry()
	testworld.Wait(p, "both answered", func() bool {
		return len(p.answers(agent.Owner, "owner-0")) == 1 && len(p.answers(agent.Owner, "owner-1")) == 1
	})
	if got := fmt.Sprint(p.program.effects()); got != "[owner-0 owner-0 owner-1]" {
		t.Errorf("effects %s", got)
	}
}

// TestRepliedThenHeld: a turn that fails after the model has answered is no reason to give
// it the message again.
func TestRepliedThenHeld(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.turn = func(string) (time.Duration, string, error) {
		_, err := p.bus.Send(context.Background(), envelope.Envelope{ID: "mine", From: me, To: agent.Owner, Kind: envelope.KindReply, Text: "done", InReplyTo: "owner-0"})
		if err != nil {
			t.Error(err)
		}
		return 0, "", usage(time.Hour)
	}
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "nothing owed", func() bool { return p.count(me, bus.Delivered) == 1 && p.owed() == "" && p.tripped() })
	if list := p.answers(agent.Owner, "owner-0"); len(list) != 1 {
		t.Errorf("answers: %+v", list)
	}
}

// TestHeldTexts: no two offers of a held message are the same text, which the program drops
// for half a minute.
func TestHeldTexts(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.fails(3, func() error { return faultError{agent.Fault{Reason: agent.Network, Text: "connection refused"}} })
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "?"})
	for n := range 3 {
		testworld.Wait(p, "held", func() bool {
			h, ok := p.held("owner-0")
			return ok && h.Turns == n+1
		})
		p.retry()
	}
	testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "owner-0")) == 1 })
	p.program.mu.Lock()
	defer p.program.mu.Unlock()
	seen := make(map[string]bool)
	for _, text := range p.program.texts {
		if seen[text] {
			t.Errorf("offered twice: %q", text)
		}
		seen[text] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d texts", len(seen))
	}
}

// TestPoisonousMessage: a message whose turns trip an account that serves all others does
// not do so for ever.
func TestPoisonousMessage(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.turn = func(text string) (time.Duration, string, error) {
		if strings.Contains(text, "poison") {
			return 0, "", faultError{agent.Fault{Reason: agent.Overloaded, Text: "500"}}
		}
		return 0, "fine", nil
	}
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "poison"})
	for range 2 {
		p.mustHold("owner-0")
		testworld.Wait(p, "tripped", p.tripped)
		// Another agent is served.
		b := breaker.Of(p.home, account)
		if _, err := b.Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		if closed, err := b.Answered(t.Context(), agent.Clone(2), time.Now().Add(time.Second)); err != nil || !closed {
			t.Logf("closed %v, %v: this agent was faster", closed, err)
		}
	}
	testworld.Wait(p, "an error", func() bool {
		if p.tripped() {
			b := breaker.Of(p.home, account)
			b.Retry(context.Background())
			b.Answered(context.Background(), agent.Clone(2), time.Now().Add(time.Second))
		}
		return len(p.answers(agent.Owner, "owner-0")) == 1
	})
	if a := p.answers(agent.Owner, "owner-0")[0]; a.Kind != envelope.KindError || !strings.Contains(a.Text, "500 (the last of ") {
		t.Errorf("answer: %+v", a)
	}
}

// TestHeldSeenLate: a word that comes late of the turn that failed does not have a held
// message given to the model twice.
func TestHeldSeenLate(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.fails(1, func() error { return usage(time.Hour) })
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "the answer?"})
	p.mustHold("owner-0")
	p.program.mustNote(t, agent.Event{Event: agent.EventSeen, ID: "owner-0"})
	p.program.mustNote(t, agent.Event{Event: agent.EventStop, Text: "of nobody's turn"})
	testworld.Wait(p, "that is on record", func() bool { return len(p.records.all()) >= 3 })
	p.retry()
	testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "owner-0")) == 1 && p.owed() == "" })
	if got := fmt.Sprint(p.program.effects()); got != "[owner-0 owner-0]" {
		t.Errorf("effects %s", got)
	}
	if a := p.answers(agent.Owner, "owner-0")[0]; a.Text != "42" {
		t.Errorf("answer: %+v", a)
	}
}
