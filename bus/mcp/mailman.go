package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
)

// MailOptions say how a mailbox's mail reaches the model. Runtime is required.
type MailOptions struct {
	Runtime Runtime
	// Startup goes in front of the first text of a conversation, once it is Fresh:
	// no prompt was ever accepted in it.
	Startup string
	Fresh   bool
	// Notify pushes one message as a channel notification; nil: by Runtime.Push.
	Notify func(ctx context.Context, text string, meta map[string]string) error
}

const (
	maxBatch = 30        // messages in one text
	maxBytes = 200 << 10 // of one text, unless it is one message
	// maxText is the longest rendering that is taken. The program reads a line of
	// JSON of less than 1 MiB, and JSON may write each of its characters as two.
	maxText = 480 << 10

	tokens     = 25 // texts in a row, of the 30 that the program takes
	tokenEvery = 2200 * time.Millisecond

	again      = time.Second // after which what the system refused is tried again
	rotates    = time.Hour   // how often the file of events is looked at for its size
	pushWithin = 15 * time.Second
)

// A Mailman is the receiver of a mailbox: it hands what comes to the model,
// sends the answers that the model owes when a turn ends, and reports how the
// agent is. It is the server's Mail.
//
// One text is on its way at a time; what comes meanwhile goes into the next. A
// message is filed when the program itself has been seen with it. What a dead
// server or a killed conversation left is settled by the next.
type Mailman struct {
	o     Options
	m     MailOptions
	scale int // tests run faster by this

	ledger  *ledger
	asks    chan func()     // of tools, run by Run's goroutine
	cancels chan struct{}   // somebody wants the running turn ended
	wants   chan struct{}   // asks for a batch
	batches chan batch      // which comes here
	group   sync.WaitGroup  // what Run has started
	told    map[string]bool // troubles that were logged, until they pass

	// The rest belongs to Run's goroutine.
	box      *bus.Receiver
	tail     *home.EventTail
	state    agent.Report
	reported bool      // state is on disk
	finished bool      // with the word that a shutdown was obeyed
	since    time.Time // when the state was first seen
	looks    time.Time // when it is looked at next
	heard    time.Time // the last event of our program
	hooked   bool      // there was one, so hooks work
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
	tries    time.Time // when both are tried again
	rotated  time.Time
	restored bool            // what was left is settled
	doubts   map[string]bool // of what is not filed: whether it was seen, or may still wait in the program's queue
	began    bool            // our program's session has
	end      agent.Event     // of the last turn
	turnOf   string          // the first message of the running turn
	past     map[string]*past
}

// A batch is what the mailbox gave.
type batch struct {
	list []*bus.Delivery
	err  error
}

// NewMailman makes the receiver of o.Agent's mailbox. It takes nothing before Run.
func NewMailman(o Options, m MailOptions) *Mailman {
	if o.Log == nil {
		o.Log = func(string, error) {}
	}
	return &Mailman{
		o: o, m: m, scale: 1, ledger: newLedger(o.Home, o.Agent),
		asks: make(chan func()), cancels: make(chan struct{}, 1), wants: make(chan struct{}, 1), batches: make(chan batch),
		told: make(map[string]bool), startup: m.Fresh && m.Startup != "", tokens: tokens, channel: m.Notify != nil,
	}
}

// ServeMail is Serve for the server that holds the mailbox.
func ServeMail(ctx context.Context, o Options, mail MailOptions) error {
	m := NewMailman(o, mail)
	o.Mail = m
	s := New(o)
	if o.Channel && mail.Notify == nil {
		m.m.Notify, m.channel = s.Notify, true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- m.Run(ctx) }()
	err := s.Serve(ctx)
	cancel()
	return errors.Join(err, <-over)
}

// Run works until ctx ends, which is no error. It waits for the mailbox if
// another process holds it. After an obeyed shutdown it hands over nothing more.
func (m *Mailman) Run(ctx context.Context) (err error) {
	if err := m.o.Bus.Make(m.o.Agent); err != nil {
		return err
	}
	m.resumeReport()
	if !m.take(ctx) {
		return nil
	}
	defer m.box.Close()
	m.trouble("what was owed", m.ledger.load())
	m.tail = m.o.Home.AllEvents(m.o.Agent)
	defer m.tail.Close()
	watch, err := m.o.Bus.WatchEvents(ctx)
	if err != nil {
		return nil // ctx has ended
	}
	defer watch.Close()
	m.remember(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer m.group.Wait()
	defer cancel()
	m.group.Go(func() { m.fetch(ctx) })
	m.loop(ctx, watch)
	return nil
}

// take waits for the mailbox; false if ctx ended first.
func (m *Mailman) take(ctx context.Context) bool {
	for {
		box, err := m.o.Bus.Receive(ctx, m.o.Agent, bus.ReceiveOptions{
			Start: m.o.Start, MaxText: maxText, Running: true, Report: m.report, Cancel: m.cancelled,
		})
		if err == nil {
			m.box, m.turn = box, box.Turn() // until it is known whether one runs
			m.trouble("the mailbox", nil)
			return true
		}
		m.trouble("the mailbox", err)
		m.look(ctx, time.Now())
		timer := time.NewTimer(m.pace(again) / 4)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case f := <-m.asks:
			f()
		case <-timer.C:
		}
		timer.Stop()
	}
}

// report logs what the receiver says.
func (m *Mailman) report(what string, err error) {
	if err == nil {
		m.o.Log("the mailbox", errors.New(what))
		return
	}
	m.o.Log(what, err)
}

// cancelled hands a cancel to the loop.
func (m *Mailman) cancelled(envelope.Envelope) {
	select {
	case m.cancels <- struct{}{}:
	default: // one more says the same
	}
}

// fetch takes a batch out of the mailbox each time one is asked for.
func (m *Mailman) fetch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wants:
		}
		list, err := m.box.Batch(ctx, maxBatch, maxBytes)
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

// trouble logs an error once, until it has passed.
func (m *Mailman) trouble(what string, err error) {
	if err == nil {
		delete(m.told, what)
		return
	}
	if !m.told[what] {
		m.told[what] = true
		m.o.Log(what, err)
	}
}

// pace is a duration as it is for this mailman.
func (m *Mailman) pace(d time.Duration) time.Duration { return d / time.Duration(m.scale) }

// Owed lists the IDs of the messages that want an answer and have none yet.
func (m *Mailman) Owed() (ids []string) {
	for _, o := range m.ledger.list(true) {
		if o.Wants {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// Answered notes that the model has answered the message.
func (m *Mailman) Answered(id string) {
	if err := m.ledger.answered(id); err != nil {
		m.o.Log(fmt.Sprintf("note the answer to %s", id), err)
	}
}
