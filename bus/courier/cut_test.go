package courier_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
	"netsky/internal/testworld"
)

// A line is a program that the courier's own process drives over a connection
// that can break. It takes one text at a time and has no queue.
type line struct {
	queue *courier.Queue
	// takes decides what becomes of the nth offer, counted from 1.
	takes func(n int) fate
	wants func(envelope.Envelope) bool // nil: the usual ones
	stop  func(n int)                  // the nth interrupt; nil: nothing

	queues bool

	mu    sync.Mutex
	stops int // calls of Interrupt
	n     int
	texts []string
	held  map[string]agent.Event // how the last turn ended that took a message
}

type fate int

const (
	answered   fate = iota
	lostBefore      // the connection breaks, and the conversation does not hold it
	lostAfter       // it does, and the turn was broken off
	lostDone        // it does, and the turn had ended
	lostRuns        // its turn runs on, and is told of over the next connection
	runs            // its turn does not end
	waits           // nor has it begun
)

func (l *line) Traits() courier.Traits {
	return courier.Traits{
		Name: "line", Wants: l.wants, Queues: l.queues, Batch: 1, BatchBytes: 1 << 20, Text: 1 << 20, Leaves: true, Losses: 3,
		Pace: courier.Pace{
			Unseen: []time.Duration{time.Minute}, Busy: 5 * time.Millisecond, Idle: 20 * time.Millisecond,
			Told: 50 * time.Millisecond, Silent: time.Minute, Begins: time.Minute,
		},
	}
}

func (l *line) State(context.Context) courier.Condition {
	return courier.Condition{Report: agent.Report{State: agent.Idle, Evidence: "test"}, Takes: true}
}

func (l *line) Offer(_ context.Context, o courier.Offer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.texts = append(l.texts, o.Text)
	id, turn := o.About[0], fmt.Sprint("turn-", l.n)
	stop := agent.Event{Event: agent.EventStop, ID: turn, Text: fmt.Sprint("said in ", turn)}
	cut := courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c"}, Cut: true}
	switch l.takes(l.n) {
	case lostBefore:
		l.queue.Put(cut)
		return fmt.Errorf("the connection is gone")
	case lostAfter:
		l.held[id] = agent.Event{Event: agent.EventStopFailed, ID: turn, Error: courier.Interrupted}
		l.queue.Put(cut)
		return fmt.Errorf("the connection is gone")
	case lostRuns:
		l.held[id] = stop
		prompt := courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: turn, IDs: o.About}}
		l.queue.Put(cut, prompt, courier.Event{Event: stop})
		return fmt.Errorf("the connection is gone")
	case runs:
		l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: turn, IDs: o.About}})
		return nil
	case waits:
		return nil
	case lostDone:
		l.held[id] = stop
		l.queue.Put(cut)
		return nil
	}
	l.held[id] = stop
	l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: turn, IDs: o.About}}, courier.Event{Event: stop})
	return nil
}

func (l *line) Holds(_ context.Context, id string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.held[id]
	return ok, nil
}

func (l *line) Ended(_ context.Context, id, _ string) (agent.Event, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.held[id]
	return e, ok, nil
}

func (l *line) Interrupt(context.Context, agent.ID) error {
	l.mu.Lock()
	l.stops++
	n := l.stops
	l.mu.Unlock()
	if l.stop != nil {
		l.stop(n)
	}
	return nil
}

func (l *line) interrupted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stops
}

func (l *line) said() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.texts...)
}

// TestCut: what was on its way when the program's connection broke has its effect
// once, and one answer, and is not tried for ever.
func TestCut(t *testing.T) {
	t.Parallel()
	always := func(f fate) func(int) fate { return func(int) fate { return f } }
	first := func(f fate) func(int) fate {
		return func(n int) fate {
			if n == 1 {
				return f
			}
			return answered
		}
	}
	for _, tt := range []struct {
		name   string
		takes  func(int) fate
		words  []string // how each text goes
		kind   envelope.Kind
		answer string
	}{
		{"not taken", first(lostBefore), []string{`id="q-0"`, `id="q-0"`}, envelope.KindReply, "said in turn-2"},
		{"taken and broken off", first(lostAfter), []string{`id="q-0"`, "Not answered yet: q-0 from owner"}, envelope.KindReply, "said in turn-2"},
		{"taken and ended", first(lostDone), []string{`id="q-0"`}, envelope.KindReply, "said in turn-1"},
		{"taken by a turn that runs on", first(lostRuns), []string{`id="q-0"`}, envelope.KindReply, "said in turn-1"},
		{"never taken", always(lostBefore), []string{`id="q-0"`, `id="q-0"`, `id="q-0"`}, envelope.KindError, "cut off 3 times"},
		{"broken off each time", always(lostAfter), []string{`id="q-0"`, "q-0 from owner", "q-0 from owner"}, envelope.KindError, "cut off 3 times"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			l := &line{queue: courier.NewQueue("start"), takes: tt.takes, held: make(map[string]agent.Event)}
			l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c", Text: "clear"}})
			stop := p.runLine(l)
			p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
			testworld.Wait(p, "the answer", func() bool { return len(p.answers(agent.Owner, "q-0")) > 0 })
			testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" && p.count(me, bus.Delivered) == 1 })
			stop()
			list := p.answers(agent.Owner, "q-0")
			if len(list) != 1 || list[0].Kind != tt.kind || !strings.Contains(list[0].Text, tt.answer) {
				t.Errorf("answers: %+v, want one %s with %q", list, tt.kind, tt.answer)
			}
			texts := l.said()
			if len(texts) != len(tt.words) {
				t.Fatalf("offered %q, want %d texts", texts, len(tt.words))
			}
			for i, want := range tt.words {
				if !strings.Contains(texts[i], want) {
					t.Errorf("text %d: %q, want %q in it", i, texts[i], want)
				}
			}
		})
	}
}

// TestKilledConfirming: a courier is killed after its mailbox remembers a message and
// before the file is moved, so that the mailbox does not offer it again. What its turn
// owed is still given.
func TestKilledConfirming(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		end   agent.Event // of the turn, by the conversation
		words int         // texts that are offered
		want  string
	}{
		{"broken off", agent.Event{Event: agent.EventStopFailed, ID: "turn-0", Error: courier.Interrupted}, 1, "said in turn-1"},
		{"ended", agent.Event{Event: agent.EventStop, ID: "turn-0", Text: "said before"}, 0, "said before"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
			r, err := p.bus.Receive(t.Context(), me, bus.ReceiveOptions{})
			if err != nil {
				t.Fatal(err)
			}
			d, err := r.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := courier.Owe(p.home, me, d.Envelope()); err != nil {
				t.Fatal(err)
			}
			if err := d.Confirm(); err != nil {
				t.Fatal(err)
			}
			r.Close()
			place := func(p2 bus.Place) string { return p.home.Path(home.Mailbox(me), string(p2)) }
			list, err := p.bus.List(me, bus.Delivered, 0)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			if err := os.Rename(filepath.Join(place(bus.Delivered), list[0].Name), filepath.Join(place(bus.Claimed), list[0].Name)); err != nil {
				t.Fatal(err)
			}
			l := &line{queue: courier.NewQueue("start"), takes: func(int) fate { return answered }, held: map[string]agent.Event{"q-0": tt.end}}
			l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c"}})
			p.runLine(l)
			testworld.Wait(p, "the answer", func() bool { return len(p.answers(agent.Owner, "q-0")) > 0 })
			testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" && p.count(me, bus.Delivered) == 1 })
			if list := p.answers(agent.Owner, "q-0"); len(list) != 1 || list[0].Text != tt.want || len(l.said()) != tt.words {
				t.Errorf("answers: %+v, want one %q; offered %q", list, tt.want, l.said())
			}
		})
	}
}

// TestKilledUnfiled: a message is answered while the disk refuses to file it, and the
// courier is killed then. It is not given to the model a second time, also if the
// conversation has been lost.
func TestKilledUnfiled(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost %v", lost), func(t *testing.T) {
			t.Parallel()
			killedUnfiled(t, lost)
		})
	}
}

func killedUnfiled(t *testing.T, lost bool) {
	p := mustPost(t)
	memory := p.home.Path(home.Mailbox(me), "seen")
	l := &line{queue: courier.NewQueue("start"), held: make(map[string]agent.Event)}
	l.takes = func(n int) fate {
		if n > 1 {
			return answered
		}
		if err := os.Remove(memory); err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		if err := os.Mkdir(memory, 0o700); err != nil { // which nothing can be written to
			t.Error(err)
		}
		return answered
	}
	begin := courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c"}}
	l.queue.Put(begin)
	stop := p.runLine(l)
	p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "the answer", func() bool { return len(p.answers(agent.Owner, "q-0")) > 0 })
	testworld.Wait(p, "the turn's end on record", func() bool { return len(p.records.all()) > 0 })
	stop()
	if p.count(me, bus.Claimed) != 1 {
		t.Fatal("it was filed")
	}
	if err := os.Remove(memory); err != nil {
		t.Fatal(err)
	}
	if lost {
		l.held = make(map[string]agent.Event)
	}
	l.queue = courier.NewQueue("start")
	l.queue.Put(begin)
	p.runLine(l)
	testworld.Wait(p, "it is filed and nothing owed", func() bool { return p.count(me, bus.Delivered) == 1 && p.owed() == "" })
	if texts := l.said(); len(texts) != 1 || len(p.answers(agent.Owner, "q-0")) != 1 {
		t.Errorf("offered %q", texts)
	}
	// Filed late, it is settled then.
	p.drop(envelope.Envelope{ID: "q-1", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "nothing owed", func() bool { return p.count(me, bus.Delivered) == 2 && p.owed() == "" })
}

// TestExpiredAfterOffer: a message expires while no courier runs, after it was offered. Its
// turn's answer is still given; if the model never had it, it is not given to it late but
// filed unread, and its sender is told, also one that waits for no answer.
func TestExpiredAfterOffer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		from agent.ID
		held map[string]agent.Event
		kind envelope.Kind
		want string
	}{
		{"ended", agent.Owner, map[string]agent.Event{"q-0": {Event: agent.EventStop, ID: "turn-0", Text: "said before"}}, envelope.KindReply, "said before"},
		{"never taken", agent.Owner, map[string]agent.Event{}, envelope.KindError, "not delivered to agent1: it expired"},
		{"never taken, from an agent", agent.Root, map[string]agent.Event{}, envelope.KindError, "not delivered to agent1: it expired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			e := envelope.Envelope{ID: "q-0", From: tt.from, To: me, Text: "?", Expires: time.Now().Add(-time.Second)}
			p.drop(e)
			if err := courier.Owe(p.home, me, e); err != nil {
				t.Fatal(err)
			}
			l := &line{queue: courier.NewQueue("start"), takes: func(int) fate { return answered }, held: tt.held}
			l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c"}})
			p.runLine(l)
			testworld.Wait(p, "nothing owed", func() bool { return p.count(me, bus.Delivered) == 1 && p.owed() == "" })
			list := p.answers(tt.from, "q-0")
			if len(list) != 1 || list[0].Kind != tt.kind || !strings.HasPrefix(list[0].Text, tt.want) || len(l.said()) > 0 {
				t.Errorf("answers: %+v, want one %s %q; offered %q", list, tt.kind, tt.want, l.said())
			}
			filed, err := p.bus.Received(t.Context(), me, "q-0")
			if unread := tt.kind == envelope.KindError; err != nil || len(filed) != 1 || (filed[0].Reason == mailbox.Expired) != unread {
				t.Errorf("filed: %+v, %v; want unread: %v", filed, err, unread)
			}
		})
	}
}

// TestCancelBetweenTurns: a cancel that comes while no turn runs does not end the one that
// begins a moment later.
func TestCancelBetweenTurns(t *testing.T) {
	t.Parallel()
	for _, queues := range []bool{false, true} {
		t.Run(fmt.Sprintf("queues %v", queues), func(t *testing.T) {
			t.Parallel()
			cancelBetweenTurns(t, queues)
		})
	}
}

func cancelBetweenTurns(t *testing.T, queues bool) {
	p := mustPost(t)
	l := &line{queue: courier.NewQueue("start"), takes: func(int) fate { return runs }, held: make(map[string]agent.Event), queues: queues}
	if queues { // it begins later
		l.takes = func(int) fate { return waits }
	}
	l.wants = func(e envelope.Envelope) bool { // the message is about to be offered
		p.dropCancel("c-0")
		p.drop(envelope.Envelope{ID: "s-0", From: agent.Root, To: me, Kind: envelope.KindShutdown, Text: "another start's", Start: "other"})
		testworld.Wait(p, "the cancel taken, and what came after it", func() bool { return p.count(me, bus.Delivered) == 2 })
		return courier.WantsAnswer(e)
	}
	l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c"}})
	p.runLine(l)
	p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "what becomes of the cancel", func() bool { return l.interrupted() > 0 || strings.Contains(p.log.String(), "cancel from owner") })
	if l.interrupted() > 0 {
		t.Error("the next turn was interrupted")
	}
	l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: "turn-1", IDs: []string{"q-0"}}})
	testworld.Wait(p, "the turn", func() bool { return p.count(me, bus.Delivered) == 3 })
	p.dropCancel("c-1")
	testworld.Wait(p, "an interrupt", func() bool { return l.interrupted() == 1 })
}

// TestCancelTwice: a cancel that comes while the turn is being ended is about that turn,
// not about the next one.
func TestCancelTwice(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	l := &line{queue: courier.NewQueue("start"), takes: func(int) fate { return runs }, held: make(map[string]agent.Event)}
	begun := func() int { return len(l.said()) }
	var most atomic.Int32
	var running atomic.Int32
	l.stop = func(n int) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		if n == 1 {
			p.dropCancel("c-1")
			p.drop(envelope.Envelope{ID: "q-1", From: agent.Owner, To: me, Text: "?"})
			testworld.Wait(p, "the second cancel taken", func() bool { return p.count(me, bus.Delivered) == 3 })
			l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventStopFailed, ID: "turn-1", Error: courier.Interrupted}})
			return
		}
		testworld.Wait(p, "the first turn's end", func() bool { return len(p.answers(agent.Owner, "q-0")) == 1 })
		if begun() != 1 {
			t.Error("the next turn was to be interrupted")
		}
	}
	l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c"}})
	p.runLine(l)
	p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "the turn", func() bool { return p.count(me, bus.Delivered) == 1 })
	p.dropCancel("c-0")
	testworld.Wait(p, "the next turn", func() bool { return begun() == 2 && running.Load() == 0 })
	if n, at := l.interrupted(), most.Load(); n != 2 || at != 1 {
		t.Errorf("%d interrupts, %d at a time", n, at)
	}
}

func (p *post) dropCancel(id string) {
	p.Helper()
	p.drop(envelope.Envelope{ID: id, From: agent.Owner, To: me, Kind: envelope.KindCancel, Text: "stop"})
}

// TestQueueBeforeRun: what a program has told before the courier runs is news to
// it, as no courier was there to hear it.
func TestQueueBeforeRun(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.options.Startup = "to begin with"
	l := &line{queue: courier.NewQueue("start"), takes: func(int) fate { return answered }, held: make(map[string]agent.Event)}
	l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c", Text: "clear"}})
	p.runLine(l)
	p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "the answer", func() bool { return len(p.answers(agent.Owner, "q-0")) > 0 })
	if texts := l.said(); !strings.Contains(texts[0], "to begin with") {
		t.Errorf("a fresh conversation was told %q", texts[0])
	}
	testworld.Wait(p, "the conversation on record", func() bool { return p.records.conversation("start") == "c" })
}

// runLine starts a courier for a program of its own process.
func (p *post) runLine(l *line) (stop func()) {
	p.Helper()
	o := p.options
	o.Start, o.Runtime, o.Events = "start", l, l.queue
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- courier.New(o).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-over; err != nil {
			p.Errorf("Run = %v", err)
		}
	})
	p.Cleanup(stop)
	return stop
}
