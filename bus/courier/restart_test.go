package courier_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// mustLeave lays down what a dead server left of a message: in the place, in the
// ledger, and in the events.
func (p *post) mustLeave(e envelope.Envelope, place bus.Place, events ...agent.Event) {
	p.Helper()
	p.drop(e)
	switch place {
	case bus.Delivered:
		if _, err := p.bus.Drain(context.Background(), me, 0, func(envelope.Envelope) error { return nil }); err != nil {
			p.Fatal(err)
		}
	case bus.Claimed:
		names, err := p.bus.Names(me, bus.Inbox)
		if err != nil {
			p.Fatal(err)
		}
		box := home.Mailbox(me)
		if err := os.Rename(p.home.Path(box, "inbox", names[0]), p.home.Path(box, "claimed", names[0])); err != nil {
			p.Fatal(err)
		}
	}
	wants := e.From == agent.Owner
	left := fmt.Sprintf(`{"owed":[{"id":%q,"from":%q,"sent_ms":%d,"offered_ms":1000,"wants":%v}],"recorded_ms":1000}`,
		e.ID, e.From, time.Now().Add(-time.Second).UnixMilli(), wants)
	if err := p.home.WriteFile("state/owed/"+string(me)+".json", []byte(left), false); err != nil {
		p.Fatal(err)
	}
	for _, e := range events {
		if err := home.Events(p.home).Append(me, e); err != nil {
			p.Fatal(err)
		}
	}
}

// TestWhatADeadServerLeft: every message that a dead server or a killed
// conversation left has its effect once and, if it wants one, its one answer.
func TestWhatADeadServerLeft(t *testing.T) {
	t.Parallel()
	seen := agent.Event{MS: 2000, Event: agent.EventSeen, ID: "q-0"}
	prompt := agent.Event{MS: 2001, Event: agent.EventPrompt, IDs: []string{"q-0"}, Start: "dead"}
	stop := agent.Event{MS: 3000, Event: agent.EventStop, Text: "of the turn", Start: "dead"}
	other := agent.Event{MS: 4000, Event: agent.EventStop, Text: "of another turn", Start: "dead"}
	numbered := agent.Event{MS: 2001, Event: agent.EventPrompt, ID: "its", IDs: []string{"q-0"}, Start: "dead"}
	named := agent.Event{MS: 2500, Event: agent.EventPrompt, ID: "next", Start: "dead",
		Text: `<channel source="netsky"> A restart, a lost connection or a login cut off your turn. Not answered yet: q-0 from owner. Go on`}
	next := agent.Event{MS: 3000, Event: agent.EventStop, ID: "next", Text: "of the next turn", Start: "dead"}
	said := map[string]agent.Event{"its": {Event: agent.EventStop, Text: "of its own"}}
	cut := map[string]agent.Event{"its": {Event: agent.EventStopFailed, Error: "interrupted"}}
	failed := agent.Event{MS: 3000, Event: agent.EventStopFailed, Error: "server_error", Text: "529", Start: "dead"}
	for _, tt := range []struct {
		name     string
		from     agent.ID
		place    bus.Place
		events   []agent.Event
		ends     map[string]agent.Event // in the conversation
		held     bool                   // by the conversation
		busy     bool                   // the turn still runs
		answered bool                   // and only the ledger did not know it
		effects  int                    // of the message, now
		words    string                 // in what is pushed
		want     string                 // the answer
	}{
		{name: "its turn ended", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, prompt, stop, other}, held: true, want: "of the turn"},
		{name: "its turn failed", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, failed}, held: true, want: "the turn failed: server_error: 529"},
		{name: "answered before the death", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, stop}, held: true, answered: true, want: "already"},
		{name: "its turn was cut off", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, prompt}, held: true,
			words: "Not answered yet: q-0 from owner", want: "now"},
		{name: "another's turn ended before", from: agent.Owner, place: bus.Delivered, events: []agent.Event{stop, seen}, held: true,
			words: "Not answered yet: q-0 from owner", want: "now"},
		{name: "forgotten by the conversation", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, prompt}, effects: 1,
			words: "did not reach you", want: "now"},
		{name: "cut off, wants no answer", from: agent.Root, place: bus.Delivered, events: []agent.Event{seen, prompt}, held: true},
		{name: "forgotten, wants no answer", from: agent.Root, place: bus.Delivered, events: []agent.Event{seen}, effects: 1, words: "did not reach you"},
		{name: "ended, wants no answer", from: agent.Root, place: bus.Delivered, events: []agent.Event{seen, stop}, held: true},
		{name: "the turn goes on", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, prompt}, held: true, busy: true, want: "in the end"},
		{name: "not seen", from: agent.Owner, place: bus.Claimed, effects: 1, words: `id="q-0"`, want: "now"},
		{name: "seen and not filed", from: agent.Owner, place: bus.Claimed, events: []agent.Event{seen, stop}, held: true, want: "of the turn"},
		{name: "held and not seen", from: agent.Root, place: bus.Claimed, held: true},
		{name: "only the conversation tells of its end", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, numbered}, ends: said,
			held: true, want: "of its own"},
		{name: "and that of another was told", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, numbered, next}, ends: said,
			held: true, want: "of its own"},
		{name: "its prompt was told by half", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, next}, ends: said,
			held: true, want: "of its own"},
		{name: "cut off, and another's end was told", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, numbered, next}, ends: cut,
			held: true, words: "Not answered yet: q-0 from owner", want: "now"},
		{name: "told by half, cut off, and another's end was told", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, next}, ends: cut,
			held: true, words: "Not answered yet: q-0 from owner", want: "now"},
		{name: "named to another turn, which ended", from: agent.Owner, place: bus.Delivered, events: []agent.Event{seen, numbered, named, next}, ends: cut,
			held: true, want: "of the next turn"},
		{name: "held, not seen, and ended", from: agent.Owner, place: bus.Claimed, ends: said, held: true, want: "of its own"},
		{name: "held, not seen, and cut off", from: agent.Owner, place: bus.Claimed, ends: cut, held: true,
			words: "Not answered yet: q-0 from owner", want: "now"},
		{name: "still in the inbox", from: agent.Owner, place: bus.Inbox, effects: 1, want: "now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			e := envelope.Envelope{ID: "q-0", From: tt.from, To: me, Text: "?"}
			p.mustLeave(e, tt.place, tt.events...)
			if tt.answered {
				a := envelope.Envelope{ID: envelope.AnswerID(me, "q-0", envelope.KindReply), From: me, To: tt.from, Kind: envelope.KindReply, Text: "already", InReplyTo: "q-0"}
				if _, err := p.bus.Send(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			}
			p.program.held["q-0"] = tt.held
			if tt.ends != nil {
				p.program.took["q-0"] = "its"
				maps.Copy(p.program.ends, tt.ends)
			}
			p.program.turn = func(string) (time.Duration, string, error) { return 0, "now", nil }
			p.program.mustStart(t)
			if tt.busy {
				p.program.set(func() { p.program.state = agent.Busy })
			}
			stop := p.run()
			if tt.busy {
				testworld.Wait(p, "owed", func() bool { return len(p.man.Owed()) == 1 })
				p.program.mustNote(t, agent.Event{Event: agent.EventStop, Text: "in the end"})
				p.program.set(func() { p.program.state = agent.Idle })
			}
			// What comes next is dealt with after all that was left.
			p.drop(envelope.Envelope{ID: "next", From: agent.Root, To: me, Text: "next"})
			testworld.Wait(p, "the next filed", func() bool { return p.count(me, bus.Delivered) == 2 })
			testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
			stop()
			effects := 0
			for _, id := range p.program.effects() {
				if id == "q-0" {
					effects++
				}
			}
			if effects != tt.effects {
				t.Errorf("%d effects, want %d", effects, tt.effects)
			}
			pushed := strings.Join(p.program.texts, "\n")
			if !strings.Contains(pushed, tt.words) || tt.words == "" && strings.Contains(pushed, "cut off your turn") {
				t.Errorf("pushed %q, want %q", pushed, tt.words)
			}
			list := p.answers(tt.from, "q-0")
			if tt.want == "" && len(list) != 0 || tt.want != "" && (len(list) != 1 || list[0].Text != tt.want) {
				t.Errorf("answers: %+v, want %q", list, tt.want)
			}
			// The next server finds nothing to do.
			p.program.set(func() { p.program.taken, p.program.texts = nil, nil })
			p.run()
			p.drop(envelope.Envelope{ID: "last", From: agent.Root, To: me, Text: "last"})
			testworld.Wait(p, "the last filed", func() bool { return p.count(me, bus.Delivered) == 3 })
			if got := p.program.effects(); len(got) != 1 {
				t.Errorf("effects after another start: %v", got)
			}
			if n := len(p.answers(tt.from, "q-0")); n != len(list) {
				t.Errorf("%d answers after another start", n)
			}
		})
	}
}

// TestExpiredMeanwhile: what was offered once and then expired is not what a conversation
// has lost, and its sender is told.
func TestExpiredMeanwhile(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	e := envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?", Expires: time.Now().Add(-time.Second)}
	p.mustLeave(e, bus.Claimed)
	p.program.mustStart(t)
	for i := range 2 { // the next start knows of it, too
		stop := p.run()
		p.drop(envelope.Envelope{ID: fmt.Sprintf("next-%d", i), From: agent.Root, To: me, Text: "next"})
		testworld.Wait(p, "the next filed", func() bool { return p.count(me, bus.Delivered) == 2+i })
		stop()
	}
	mustOnce(t, p.program.effects(), map[string]int{"next": 2})
	p.run()
	testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
	if list := p.answers(agent.Owner, "q-0"); len(list) != 1 || list[0].Kind != envelope.KindError || !strings.Contains(list[0].Text, "expired") {
		t.Errorf("answers: %+v", list)
	}
}

func TestBrokenLedger(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	if err := p.home.WriteFile("state/owed/"+string(me)+".json", []byte("not JSON"), false); err != nil {
		t.Fatal(err)
	}
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "q-0")) == 1 })
	testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
	if !strings.Contains(p.log.String(), "ledger of owed answers") {
		t.Errorf("log: %s", p.log.String())
	}
}

// TestTurnsWhileNobodyLooked: what turns took while no server ran is put on
// record by the next, once.
func TestTurnsWhileNobodyLooked(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.mustStart(t)
	stop := p.run()
	p.drop(envelope.Envelope{ID: "a-0", From: agent.Root, To: me, Text: "hi"})
	testworld.Wait(p, "on record", func() bool { return len(p.records.all()) == 1 })
	testworld.Wait(p, "settled", func() bool { return p.owed() == "" })
	stop()
	p.program.mustNote(t, agent.Event{Event: agent.EventStop, Text: "typed", Usage: &agent.Usage{Input: 7}})
	for range 2 {
		stop := p.run()
		testworld.Wait(p, "on record", func() bool { return len(p.records.all()) >= 2 })
		stop()
	}
	if list := p.records.all(); len(list) != 2 || list[1].Fields["input"] != int64(7) {
		t.Errorf("on record: %+v", list)
	}
}

// TestServerStartedAgain: the program may start its server again while a turn
// runs, behind which waits what the dead one handed over. It is not handed over
// again, alone or with what came since.
func TestServerStartedAgain(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.turn = func(text string) (time.Duration, string, error) {
		if strings.Contains(text, `id="a"`) {
			return scaled(time.Minute), "long", nil
		}
		return 0, "short", nil
	}
	p.program.mustStart(t)
	stop := p.run()
	p.drop(envelope.Envelope{ID: "a", From: agent.Owner, To: me, Text: "a"})
	testworld.Wait(p, "the first filed", func() bool { return p.count(me, bus.Delivered) == 1 })
	p.drop(envelope.Envelope{ID: "b", From: agent.Owner, To: me, Text: "b"})
	pushes := 0
	testworld.Wait(p, "the second handed over", func() bool { p.program.set(func() { pushes = p.program.pushes }); return pushes == 2 })
	stop()
	p.drop(envelope.Envelope{ID: "c", From: agent.Owner, To: me, Text: "c"})
	p.run()
	testworld.Wait(p, "all filed", func() bool { return p.count(me, bus.Delivered) == 3 })
	if got := strings.Join(p.program.effects(), " "); got != "a b c" {
		t.Errorf("effects %q, want each once", got)
	}
	for id, want := range map[string]string{"a": "long", "b": "short", "c": "short"} {
		testworld.Wait(p, "the answer to "+id, func() bool { return len(p.answers(agent.Owner, id)) > 0 })
		if list := p.answers(agent.Owner, id); len(list) != 1 || list[0].Text != want {
			t.Errorf("answers to %s: %+v, want %q", id, list, want)
		}
	}
}

// TestLostServerStartedAgain: what a killed program's conversation has lost was offered to the
// next one, whose server dies then, too. It is not offered once more to a program that has it,
// in a turn that the conversation's file does not show yet or in its queue; nor is a turn that
// was cut off pointed out again, while the program continues with it.
func TestLostServerStartedAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		queued, held bool
		idle         bool // each server finds the program idle at first, and it is not
		effects      string
	}{
		{"in a turn", false, false, false, "q-0 next"},
		{"in the queue", true, false, false, "q-0 next"},
		{"in the queue of one that seems idle", true, false, true, "q-0 next"},
		{"named", false, true, false, "next"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			p.mustLeave(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"}, bus.Delivered, agent.Event{MS: 2000, Event: agent.EventSeen, ID: "q-0"})
			left := testworld.Got(p.home.ReadFile("state/owed/"+string(me)+".json", 1<<10))(t)
			left = bytes.Replace(left, []byte(`"wants"`), []byte(`"start":"dead","wants"`), 1)
			testworld.Must(t, p.home.WriteFile("state/owed/"+string(me)+".json", left, false))
			over := make(chan struct{})
			p.program.turn = func(string) (time.Duration, string, error) { <-over; return 0, "done", nil }
			p.program.lags, p.program.held["q-0"] = true, tt.held
			if tt.queued {
				p.program.queue = []string{"typed by a person"}
			}
			p.program.mustStart(t)
			it := &idler{program: p.program}
			if p.options.Runtime = it; tt.idle {
				it.looks.Store(math.MaxInt32)
			}
			stop := p.run()
			testworld.Wait(p, "it is offered", func() (is bool) { p.program.set(func() { is = p.program.pushes == 1 }); return is })
			if !tt.queued {
				testworld.Wait(p, "it is taken", func() (is bool) { p.program.set(func() { is = len(p.program.texts) == 1 }); return is })
			}
			stop()
			it.looks.Store(min(1, it.looks.Load()))
			looks := 0
			p.program.set(func() { p.program.last, looks = "", p.program.looks }) // the program would swallow the same text
			p.run()
			testworld.Wait(p, "the next server looks around", func() (is bool) { p.program.set(func() { is = p.program.looks > looks+3 }); return is })
			p.program.set(p.program.catchUp)
			close(over)
			p.drop(envelope.Envelope{ID: "next", From: agent.Root, To: me, Text: "next"})
			testworld.Wait(p, "the next filed", func() bool { return p.count(me, bus.Delivered) == 2 })
			testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
			testworld.Equal(t, strings.Join(p.program.effects(), " "), tt.effects, "effects")
			p.program.set(func() {
				about := slices.DeleteFunc(p.program.texts, func(text string) bool { return !strings.Contains(text, "q-0") })
				testworld.Len(t, about, 1, "texts about it")
			})
			if list := p.answers(agent.Owner, "q-0"); len(list) != 1 || list[0].Text != "done" {
				t.Errorf("answers: %+v", list)
			}
		})
	}
}

// An idler is a program that says for some looks that it is idle, whatever it does.
type idler struct {
	*program
	looks atomic.Int32
}

func (p *idler) State(ctx context.Context) courier.Condition {
	c := p.program.State(ctx)
	if p.looks.Add(-1) >= 0 {
		c.State, c.Takes = agent.Idle, true
	}
	return c
}

// TestEndedWhileSettling: a server that is told to end while it settles what
// another left drops nothing of it.
func TestEndedWhileSettling(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	const n = 25
	var left []string
	for i := range n {
		e := envelope.Envelope{ID: fmt.Sprintf("q-%d", i), From: agent.Owner, To: me, Text: "?"}
		p.mustLeave(e, bus.Delivered, agent.Event{MS: 2000, Event: agent.EventSeen, ID: e.ID})
		left = append(left, fmt.Sprintf(`{"id":%q,"from":"owner","sent_ms":%d,"offered_ms":1000,"wants":true}`, e.ID, time.Now().Add(-time.Second).UnixMilli()))
		p.program.held[e.ID] = true
	}
	ledger := `{"owed":[` + strings.Join(left, ",") + `],"recorded_ms":1000}`
	if err := p.home.WriteFile("state/owed/"+string(me)+".json", []byte(ledger), false); err != nil {
		t.Fatal(err)
	}
	p.program.mustNote(t, agent.Event{MS: 3000, Event: agent.EventStop, Text: "of the turn"})
	p.program.mustStart(t)
	given := func() (all int) {
		for i := range n {
			all += len(p.answers(agent.Owner, fmt.Sprintf("q-%d", i)))
		}
		return all
	}
	for before := 0; before < n; before = given() {
		stop := p.run()
		testworld.Wait(p, "one answer more", func() bool { return given() > before })
		stop()
	}
	stop := p.run()
	testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
	stop()
	if all := given(); all != n {
		t.Errorf("%d answers, want %d", all, n)
	}
}

// TestShutdownWaitsForWhatIsOwed: what an earlier server left without an answer
// has it before a shutdown is acked.
func TestShutdownWaitsForWhatIsOwed(t *testing.T) {
	t.Parallel()
	seen := agent.Event{MS: 2000, Event: agent.EventSeen, ID: "q-0"}
	stop := agent.Event{MS: 3000, Event: agent.EventStop, Text: "in the end"}
	for _, tt := range []struct {
		name   string
		events []agent.Event
		told   bool // that the program's session has begun
	}{
		{name: "the answer", events: []agent.Event{seen, stop}},
		{name: "a turn that was cut off", events: []agent.Event{seen}, told: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			p.mustLeave(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"}, bus.Delivered, tt.events...)
			p.program.held["q-0"] = true
			if tt.told {
				p.program.mustStart(t)
			} else {
				p.program.mustRun(t)
			}
			p.mustShut(p.options.Start)
			p.run()
			testworld.Wait(p, "acked", func() bool { return p.count(agent.Root, bus.Inbox) == 1 })
			if n := len(p.answers(agent.Owner, "q-0")); n != 1 {
				t.Errorf("%d answers before the ack", n)
			}
		})
	}
}

// TestNoticeToldByHalf: what was lost and is handed over again with a notice is
// not handed over once more when the hook of that prompt was killed in the middle.
func TestNoticeToldByHalf(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	seen := agent.Event{MS: 2000, Event: agent.EventSeen, ID: "q-0"}
	p.mustLeave(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"}, bus.Delivered, seen)
	p.program.mustStart(t)
	p.program.muted[agent.EventPrompt] = true
	p.run()
	testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "q-0")) > 0 })
	p.program.set(func() { clear(p.program.muted) })
	p.drop(envelope.Envelope{ID: "next", From: agent.Root, To: me, Text: "next"})
	testworld.Wait(p, "the next filed", func() bool { return p.count(me, bus.Delivered) == 2 })
	if got := strings.Join(p.program.effects(), " "); got != "q-0 next" {
		t.Errorf("effects: %s", got)
	}
	if list := p.answers(agent.Owner, "q-0"); len(list) != 1 || list[0].Text != "done" {
		t.Errorf("answers: %+v", list)
	}
}

// TestNoticeWithoutItsHook: a text asks to continue a turn that was cut off, and may bring
// a message that was lost with it, and the hook that should report that prompt is killed.
// What the model said to it is the answer, not how the turn ended that was cut off; and it
// is not asked again and again.
func TestNoticeWithoutItsHook(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		forget bool // the second message
		muted  []agent.EventKind
		texts  int
		kind   envelope.Kind
		text   string
	}{
		{"named", false, []agent.EventKind{agent.EventPrompt, agent.EventSeen}, 2, envelope.KindReply, "said to it"},
		{"one is lost", true, []agent.EventKind{agent.EventPrompt, agent.EventSeen}, 2, envelope.KindReply, "said to it"},
		{"one is lost, the turn's end is not reported either", true, []agent.EventKind{agent.EventPrompt, agent.EventSeen, agent.EventStop}, 2, envelope.KindReply, "said to it"},
		{"named, and no hook reports anything", false, []agent.EventKind{agent.EventPrompt, agent.EventSeen, agent.EventStop}, 4, envelope.KindError, "interrupted: the turn ended without an answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			p.program.turn = func(string) (time.Duration, string, error) { return time.Hour, "", nil }
			p.program.mustStart(t)
			for _, id := range []string{"q-0", "q-1"} {
				p.drop(envelope.Envelope{ID: id, From: agent.Owner, To: me, Text: "?"})
			}
			stop := p.run()
			testworld.Wait(p, "both are taken", func() bool { return len(p.program.effects()) == 2 && p.count(me, bus.Delivered) == 2 })
			stop()
			p.program.set(func() {
				if tt.forget {
					delete(p.program.held, "q-1")
					delete(p.program.took, "q-1")
				}
				p.program.queue = nil
				close(p.program.breakOff)
				p.program.breakOff = nil
				p.program.turn = func(string) (time.Duration, string, error) { return scaled(2 * time.Second), "said to it", nil }
				for _, kind := range tt.muted {
					p.program.muted[kind] = true
				}
			})
			p.program.settle(t)
			p.options.Start = p.program.startID()
			p.run()
			for _, id := range []string{"q-0", "q-1"} {
				testworld.Wait(p, "the answer to "+id, func() bool { return len(p.answers(agent.Owner, id)) > 0 })
				if a := p.answers(agent.Owner, id)[0]; a.Kind != tt.kind || a.Text != tt.text {
					t.Errorf("%s is answered by a %s %q", id, a.Kind, a.Text)
				}
			}
			p.program.set(func() {
				texts := p.program.texts
				if len(texts) > tt.texts || !strings.Contains(texts[1], "Not answered yet: q-0 from owner") || strings.Contains(texts[1], `id="q-1"`) != tt.forget {
					t.Errorf("%d texts, %.2000q", len(texts), texts)
				}
			})
		})
	}
}
