// Package courier brings a mailbox's mail to a program that has a model's
// conversation, and sends what the model owes: it is a message's whole way through
// one agent. Claim, write down what is owed, offer, see the program with it, file,
// wait for the turn's end, answer once, forget.
//
// A Courier is the receiver of one mailbox. It drives a Runtime, which is all that
// differs between programs, and knows none of them by name.
//
// # What it promises
//
// A message that was claimed has its effect in the conversation once, and a
// message that wants an answer has exactly one: the model's own, or what the model
// said last in the turn that took the message, or an error that says why there is
// none. One offer is under way at a time; what comes meanwhile goes into the next,
// so that each sender's messages keep their order. What brakes or the system hold
// up is tried again. A shutdown is acknowledged after the answers to what a turn
// took, or after 45 s.
//
// # What a crash leaves
//
// Every message is in the ledger, state/owed/<agent>.json, from before it is offered
// until nothing more is to be done about it; the ledger survives a loss of power. The next
// courier gives the answer that a dead one owed, offers again what the
// conversation never had, and names to the model what it was in the middle of. An
// answer's ID depends on the message and the agent alone, so that one given twice
// has one effect. An event reports how a turn ended; where none was written, the
// conversation does.
package courier

import (
	"context"
	"fmt"
	"sync"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/store"
)

// Options say whose mail a Courier brings, and to what. Agent, Home, Bus, Runtime
// and Events are required.
type Options struct {
	Agent   agent.ID
	Start   string // the agent's start id
	Home    home.Dir
	Bus     *bus.Bus
	Runtime Runtime
	Events  Source
	Records Recorder // nil: nothing is recorded
	// Startup goes in front of the first text of a conversation, once it is Fresh:
	// no prompt was ever accepted in it.
	Startup string
	Fresh   bool
	// Notify pushes one message as a channel notification, if it is not nil. Where
	// that is not seen, messages go by Runtime.Offer from then on.
	Notify func(ctx context.Context, text string, meta map[string]string) error
	// Log receives failures and, with a nil error, notices. It may be nil, is called
	// from several goroutines, and must be quick.
	Log func(what string, err error)
}

// A Recorder stores what happens. *store.Journal is one.
type Recorder interface {
	Record(ctx context.Context, ops ...store.Op) error
}

const (
	again      = time.Second // after which what the system refused is tried again
	pushWithin = 15 * time.Second
)

// A Courier is the receiver of a mailbox at work. Its exported methods may be
// called from any goroutine.
type Courier struct {
	o      Options
	traits Traits

	ledger  *ledger
	asks    chan func()     // of others, run by Run's goroutine
	stopped chan struct{}   // closed when Run has returned
	cancels chan agent.ID   // who wants the running turn ended
	wants   chan struct{}   // asks for a batch
	batches chan batch      // which comes here
	group   sync.WaitGroup  // what Run has started
	told    map[string]bool // troubles that were logged, until they pass

	// The rest belongs to Run's goroutine.
	box      *bus.Receiver
	state    Condition
	reported bool      // state is on disk
	finished bool      // with the word that a shutdown was obeyed
	since    time.Time // when the state was first seen
	looks    time.Time // when it is looked at next
	heard    time.Time // the last event of our program
	hooked   bool      // there was one, so events work
	open     bool      // a turn runs, by the events
	turn     func()    // ends the turn for the receiver; nil: none runs
	startup  bool      // the startup text is due

	asked    bool            // a batch has been asked for
	over     bool            // the mailbox gives nothing more
	pending  []*bus.Delivery // claimed and not offered
	lost     []lost          // of an earlier conversation, to be told of
	flight   *flight         // nil: none
	tokens   float64
	filled   time.Time // when tokens were last counted
	channel  bool      // push by Notify
	closed   closed
	unfiled  []*bus.Delivery // witnessed, and the system would not let us file them
	unsent   []answer
	tries    time.Time       // when both are tried again
	restored bool            // what was left is settled
	doubts   map[string]bool // of what is not filed: whether it was seen, or may still wait in the program's queue
	began    bool            // our program's session has
	end      agent.Event     // of the last turn
	turnOf   string          // the first message of the running turn
	past     map[string]*past
	left     []owed         // of the ledger, to be restored
	losses   map[string]int // how often a message's turn was cut off
}

// A batch is what the mailbox gave.
type batch struct {
	list []*bus.Delivery
	err  error
}

// New makes the receiver of o.Agent's mailbox. It takes nothing before Run.
func New(o Options) *Courier {
	if o.Log == nil {
		o.Log = func(string, error) {}
	}
	m := &Courier{
		o: o, traits: o.Runtime.Traits(), ledger: newLedger(o.Home, o.Agent),
		asks: make(chan func()), stopped: make(chan struct{}), cancels: make(chan agent.ID, 1), wants: make(chan struct{}, 1), batches: make(chan batch),
		told: make(map[string]bool), losses: make(map[string]int), startup: o.Fresh && o.Startup != "", channel: o.Notify != nil,
	}
	m.tokens = float64(m.traits.Pace.Burst)
	if m.traits.Wants == nil {
		m.traits.Wants = WantsAnswer
	}
	return m
}

// Run works until ctx ends, which is no error; it may be called once. It waits for
// the mailbox if another process holds it. After an obeyed shutdown it offers
// nothing more. For a runtime that Leaves it returns an error that matches
// home.ErrLocked in the first case, and bus.ErrShutdown in the second.
func (m *Courier) Run(ctx context.Context) (err error) {
	defer close(m.stopped)
	if err := m.o.Bus.Make(m.o.Agent); err != nil {
		return err
	}
	m.resumeReport()
	if ok, err := m.take(ctx); !ok {
		return err
	}
	defer m.box.Close()
	m.trouble("the ledger of what is owed", m.ledger.load())
	m.remember(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer m.group.Wait()
	defer cancel()
	m.group.Go(func() { m.fetch(ctx) })
	return m.loop(ctx)
}

// take waits for the mailbox; false if ctx ended first, or with the error of a
// mailbox that is not waited for.
func (m *Courier) take(ctx context.Context) (ok bool, err error) {
	for {
		box, err := m.o.Bus.Receive(ctx, m.o.Agent, bus.ReceiveOptions{
			Start: m.o.Start, MaxText: m.traits.Text, Running: true, Report: m.report, Cancel: m.cancelled,
		})
		if err == nil {
			m.box, m.turn = box, box.Turn() // until it is known whether one runs
			m.trouble("the mailbox", nil)
			return true, nil
		}
		if m.traits.Leaves {
			return false, err
		}
		m.trouble("the mailbox", err)
		m.look(ctx, time.Now())
		timer := time.NewTimer(again / 4)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, nil
		case f := <-m.asks:
			f()
		case <-timer.C:
		}
		timer.Stop()
	}
}

// report logs what the receiver says.
func (m *Courier) report(what string, err error) {
	m.o.Log(what, err)
}

// cancelled hands a cancel to the loop.
func (m *Courier) cancelled(e envelope.Envelope) {
	select {
	case m.cancels <- e.From:
	default: // one more says the same
	}
}

// fetch takes a batch out of the mailbox each time one is asked for.
func (m *Courier) fetch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wants:
		}
		list, err := m.box.Batch(ctx, m.traits.Batch, m.traits.BatchBytes)
		select {
		case <-ctx.Done():
			return // what is claimed is offered again
		case m.batches <- batch{list, err}:
		}
		if err != nil {
			return
		}
	}
}

// trouble logs an error once, and once more that it has passed.
func (m *Courier) trouble(what string, err error) {
	switch told := m.told[what]; {
	case err == nil && told:
		delete(m.told, what)
		m.o.Log(what+": works again", nil)
	case err != nil && !told:
		m.told[what] = true
		m.o.Log(what, err)
	}
}

// Look asks the runtime for its state and reports that, before it returns: what is
// shown elsewhere is true of the report then. It waits for Run; false means that
// Run or ctx has ended.
func (m *Courier) Look(ctx context.Context) bool {
	done := make(chan struct{})
	select {
	case m.asks <- func() { m.looks = time.Time{}; m.look(ctx, time.Now()); close(done) }:
		<-done
		return true
	case <-m.stopped:
	case <-ctx.Done():
	}
	return false
}

// Owed lists the IDs of the messages that want an answer and have none yet.
func (m *Courier) Owed() (ids []string) {
	for _, o := range m.ledger.list(true) {
		if o.Wants {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// Answered notes that the model has answered the message.
func (m *Courier) Answered(id string) {
	if err := m.ledger.answered(id); err != nil {
		m.o.Log(fmt.Sprintf("note the answer to %s", id), err)
	}
}
