package courier_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
)

// faster is how much faster the program is than Claude Code.
const faster = 50

func scaled(d time.Duration) time.Duration { return d / faster }

// A program plays Claude Code as it is met from outside: it takes 30 texts in a
// row and then one in two seconds, drops the others without a word, swallows a
// text that equals the last accepted one for half a minute, queues what comes
// while it is busy, and its hooks tell of what it took later, from another
// process.
type program struct {
	bus   *bus.Bus
	home  home.Dir
	id    agent.ID
	start string
	// turn says how long a turn takes and what the model says last; with an error
	// the turn fails.
	turn func(text string) (time.Duration, string, error)
	hook time.Duration // that a hook takes

	mu       sync.Mutex
	state    agent.State
	shut     bool                     // the messaging socket is closed
	silent   bool                     // hooks say nothing
	muted    map[agent.EventKind]bool // these hooks are killed before they do
	mum      bool                     // the conversation does not tell how turns ended
	slow     bool                     // it tells nothing the first time
	turns    int
	took     map[string]string      // the number of the turn that took a message
	ends     map[string]agent.Event // by the turn's number
	drop     int                    // so many texts are dropped whatever the rate
	dialog   bool
	queue    []string
	taken    []string        // IDs of messages that had their effect, in order
	held     map[string]bool // by the conversation
	lags     bool            // its file, until it catches up
	unsaved  []func()        // what it does not have yet
	texts    []string        // that had their effect
	points   []int
	pushes   int
	dropped  int
	bucket   float64
	filled   time.Time
	last     string
	lastAt   time.Time
	breakOff chan struct{} // not nil: a turn runs; closed: it is broken off
	fresh    int           // texts that the running turn has taken
	login    time.Time     // when the credentials were changed
	account  string        // "" is that of all programs of a test
	left     []agent.Work  // what goes on in the background
	looks    int           // how often its state was asked for
	asked    func()        // runs when it is asked for next
	wake     chan struct{}
}

func newProgram(b *bus.Bus, home home.Dir, id agent.ID) *program {
	return &program{
		bus: b, home: home, id: id, start: "0123456789abcdef", state: agent.Idle,
		held: make(map[string]bool), took: make(map[string]string), ends: make(map[string]agent.Event),
		muted: make(map[agent.EventKind]bool), bucket: 30, filled: time.Now(), wake: make(chan struct{}, 1),
		turn: func(text string) (time.Duration, string, error) { return scaled(500 * time.Millisecond), "done", nil },
		hook: scaled(40 * time.Millisecond),
	}
}

// mustStart begins the program's session; it ends with the test.
func (p *program) mustStart(tb testing.TB) *program {
	tb.Helper()
	p.mustNote(tb, agent.Event{Event: agent.EventSessionStart, Text: "startup"})
	return p.mustRun(tb)
}

// mustRun is mustStart without a word of it.
func (p *program) mustRun(tb testing.TB) *program {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); p.run(ctx) }()
	tb.Cleanup(func() { cancel(); <-over })
	return p
}

func (p *program) mustNote(tb testing.TB, e agent.Event) {
	tb.Helper()
	if err := p.note(e); err != nil {
		tb.Fatal(err)
	}
}

// note is what a hook writes.
func (p *program) note(e agent.Event) error {
	e.Start, e.Session = p.start, "conversation-1"
	return home.Events(p.home).Append(p.id, e)
}

var errClosed = refusedError("messaging socket: connection refused")

type refusedError string

func (e refusedError) Error() string { return string(e) }
func (e refusedError) Refused() bool { return true }

// Traits are those of Claude Code, which is slower.
func (p *program) Traits() courier.Traits {
	return courier.Traits{
		Name: "claude", Batch: 30, BatchBytes: 200 << 10, Text: 480 << 10, Queues: true, Implicit: true,
		Pace: courier.Pace{
			Burst: 25, Every: scaled(2200 * time.Millisecond),
			Unseen: []time.Duration{scaled(5 * time.Second), scaled(10 * time.Second), scaled(20 * time.Second), scaled(30 * time.Second)},
			Busy:   scaled(250 * time.Millisecond), Idle: scaled(time.Second),
			Told: scaled(2 * time.Second), Silent: scaled(6 * time.Second),
			Begins: scaled(10 * time.Second), Read: scaled(10 * time.Second), Point: scaled(time.Minute),
		},
	}
}

// Offer is the messaging socket.
func (p *program) Offer(_ context.Context, o courier.Offer) error {
	text := o.Text
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return errClosed
	}
	p.pushes++
	now := time.Now()
	p.bucket = min(30, p.bucket+float64(now.Sub(p.filled))/float64(scaled(2*time.Second)))
	p.filled = now
	switch {
	case p.bucket < 1 || p.drop > 0:
		p.drop = max(0, p.drop-1)
		p.dropped++
		return nil
	case text == p.last && now.Sub(p.lastAt) < scaled(30*time.Second):
		p.bucket--
		return nil
	}
	p.bucket--
	p.last, p.lastAt = text, now
	p.queue = append(p.queue, text)
	p.poke()
	return nil
}

func (p *program) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Point is the line in the pane.
func (p *program) Point(_ context.Context, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dialog {
		return errors.New("a dialog is open")
	}
	p.points = append(p.points, n)
	return nil
}

// Interrupt is an Escape.
func (p *program) Interrupt(context.Context, agent.ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.breakOff == nil {
		return errors.New("no turn runs")
	}
	close(p.breakOff)
	p.breakOff = nil
	return nil
}

func (p *program) State(context.Context) courier.Condition {
	p.mu.Lock()
	p.looks++
	if f := p.asked; f != nil {
		p.asked = nil
		p.mu.Unlock()
		f()
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	state := p.state
	if state == agent.Idle && len(p.queue) > 0 {
		state = agent.Busy // it is about to begin, however late it gets a processor
	}
	if p.dialog {
		state = agent.Waiting
	}
	takes := state == agent.Idle || state == agent.Busy || state == agent.Waiting
	return courier.Condition{Report: agent.Report{State: state, Evidence: "test"}, Takes: takes, Works: p.left}
}

func (p *program) Holds(_ context.Context, id string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[id], nil
}

func (p *program) Ended(_ context.Context, id, turn string) (e agent.Event, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slow {
		p.slow = false
		return e, false, nil
	}
	if turn == "" {
		turn = p.took[id]
	}
	e, ok = p.ends[turn]
	e.ID = turn
	return e, ok && !p.mum, nil
}

// account is what all programs of a test use.
const account = "vendor you@example.org"

// A faultError fails a turn of a fault of the vendor's.
type faultError struct{ agent.Fault }

func (f faultError) Error() string { return f.Text }

func (p *program) Account() (string, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.account, account), p.login
}

// set changes the program under the lock.
func (p *program) set(change func()) {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	p.poke()
}

func (p *program) run(ctx context.Context) {
	for {
		p.mu.Lock()
		var texts []string
		if !p.dialog && p.state == agent.Idle {
			texts, p.queue = p.queue, nil
		}
		var broken chan struct{}
		if len(texts) > 0 {
			p.state = agent.Busy
			broken = make(chan struct{})
			p.breakOff, p.fresh = broken, 0
		}
		p.mu.Unlock()
		if len(texts) > 0 {
			p.runTurn(ctx, texts, broken)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
	}
}

// runTurn is one turn, of all that was queued.
func (p *program) runTurn(ctx context.Context, texts []string, broken chan struct{}) {
	p.mu.Lock()
	p.turns++
	number := fmt.Sprintf("turn-%d", p.turns)
	p.mu.Unlock()
	var took []string
	for _, text := range texts {
		if p.submit(text, number) {
			took = append(took, text)
		}
	}
	if len(took) > 0 {
		p.mu.Lock()
		turn := p.turn
		p.mu.Unlock()
		length, words, failed := turn(strings.Join(took, "\n"))
		timer := time.NewTimer(length)
		select {
		case <-timer.C:
		case <-broken:
		case <-ctx.Done():
		}
		p.mu.Lock()
		whole := p.breakOff != nil
		p.breakOff, p.fresh = nil, 0
		p.mu.Unlock()
		switch {
		case ctx.Err() != nil:
		case whole:
			p.end(number, words, failed)
		default: // of which no hook tells
			p.set(func() { p.ends[number] = agent.Event{Event: agent.EventStopFailed, Error: "interrupted"} })
		}
		timer.Stop()
	}
	p.set(func() { p.state, p.breakOff = agent.Idle, nil })
}

func (p *program) end(number, words string, failed error) {
	e := agent.Event{Event: agent.EventStop, ID: number, Text: words, Usage: &agent.Usage{Input: 3, Output: 4, CacheRead: 5}}
	if failed != nil {
		e.Event, e.Error = agent.EventStopFailed, failed.Error()
	}
	if f := (faultError{}); errors.As(failed, &f) {
		e.Error, e.Fault = "", &f.Fault
	}
	p.mu.Lock()
	e.Background = p.left
	p.ends[number] = e
	silent := p.silent || p.muted[e.Event]
	p.mu.Unlock()
	if silent {
		return
	}
	if err := p.note(e); err != nil {
		panic(err)
	}
}

// submit is the hook and what the program does then; false if the hook refused.
func (p *program) submit(text, number string) bool {
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(p.hook) + 1)))
	<-timer.C
	p.mu.Lock()
	defer p.mu.Unlock()
	ids, _ := envelope.RenderedIDs(text)
	if !p.silent && !p.muted[agent.EventSeen] {
		again, err := p.bus.SeenText(p.id, text)
		if err != nil {
			panic(err)
		}
		if err := p.bus.Witness(p.id, ids...); err != nil {
			panic(err)
		}
		if again {
			return false
		}
		e := agent.Event{Event: agent.EventPrompt, ID: number, IDs: ids, Text: strings.Join(strings.Fields(text), " ")}
		e.Text = e.Text[:min(1000, len(e.Text))]
		if !p.muted[e.Event] {
			if err := p.note(e); err != nil {
				panic(err)
			}
		}
	}
	p.taken = append(p.taken, ids...)
	p.texts = append(p.texts, text)
	p.fresh++
	p.unsaved = append(p.unsaved, func() {
		for _, id := range ids {
			p.held[id], p.took[id] = true, number
		}
	})
	if !p.lags {
		p.catchUp()
	}
	return true
}

// catchUp writes to the conversation's file what was said. The caller holds mu.
func (p *program) catchUp() {
	for _, write := range p.unsaved {
		write()
	}
	p.lags, p.unsaved = false, nil
}

// effects are the messages that had their effect, in order.
func (p *program) effects() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.taken...)
}

// mustOnce checks that every message had its effect once, each sender's in order.
// IDs are "SENDER-NUMBER".
func mustOnce(tb testing.TB, effects []string, want map[string]int) {
	tb.Helper()
	next := make(map[string]int)
	for i, id := range effects {
		sender, number, _ := strings.Cut(id, "-")
		if number != fmt.Sprint(next[sender]) {
			tb.Fatalf("effect %d is %s, want %s-%d", i, id, sender, next[sender])
		}
		next[sender]++
	}
	for sender, n := range want {
		if next[sender] != n {
			tb.Errorf("%d of %d of %s had their effect", next[sender], n, sender)
		}
	}
}
