// Package courier delivers a mailbox's mail to a program that holds a model's
// conversation, and sends the answers the model owes. It covers a message's whole way
// through one agent: claim it, record what is owed, offer it, confirm that the program has
// it, file it, wait for the end of the turn, answer once, forget.
//
// A Courier is the receiver of one mailbox. It drives a Runtime, which is all that differs
// between programs, and knows none of them by name.
//
// # What it promises
//
// A claimed message has its effect in the conversation once, and a message that wants an
// answer gets exactly one: the model's own, or the last text of the turn that took the
// message, or an error with the reason why there is none. One offer is in flight at a
// time; messages that arrive meanwhile go into the next, so that each sender's messages
// keep their order. What a brake or the system stops is retried. A shutdown is
// acknowledged after the answers to what a turn took, or after 45 s as unfinished.
//
// A fault of the vendor's, such as a used up quota, is no answer: what the turn took is
// held, the account's circuit breaker is tripped, and nothing is offered to any agent on
// that account until the breaker allows it; then the held messages are given to the model
// again, before all others. Whoever sent one can cancel it until then. A fault of one model
// has a breaker of its own, which bars only those that have run into it. A message for which
// the conversation has no room is held, too, until that is compacted or the program takes
// something again.
//
// Turns that nobody asked for are counted, and interrupted after [MostAlone] in a row, until
// somebody asks for something.
//
// # What a crash leaves
//
// Every message is in the ledger from before it is offered until it is finished. What becomes of
// it is a line of the mailbox's journal, which survives a power loss. The next courier gives the answers
// that a dead one owed, offers again what the conversation never received, and tells the
// model what it was in the middle of. An answer's ID depends on the message and the agent
// alone, so that giving it twice has one effect. An event reports how a turn ended; if
// none was written, the conversation shows it.
package courier

import (
	"context"
	"fmt"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/store"
)

// Options configure a Courier. Agent, Home, Bus, Runtime and Events are required.
type Options struct {
	Agent   agent.ID
	Start   string // the agent's start id
	Home    home.Dir
	Bus     *bus.Bus
	Runtime Runtime
	Events  Source
	Records Recorder // nil: nothing is recorded
	// Startup precedes the first text of a conversation while it is Fresh: no prompt has
	// been accepted in it yet.
	Startup string
	Fresh   bool
	Memory  Memory // nil: the conversation needs none
	// Notify, if not nil, pushes one message as a channel notification. If that has no
	// effect, messages go through Runtime.Offer from then on.
	Notify func(ctx context.Context, text string, meta map[string]string) error
	// Log, if not nil, receives failures and, with a nil error, notices. It is called from
	// several goroutines and must be quick.
	Log func(what string, err error)
}

// A Recorder stores what happens. *store.Journal is one.
type Recorder interface {
	Record(ctx context.Context, ops ...store.Op) error
}

const (
	again      = time.Second // delay before what the system refused is retried
	pushWithin = 15 * time.Second
)

// common is what the parts of a courier work with. All but the ledger belongs to the
// goroutine of the courier.
type common struct {
	o       *Options
	traits  Traits
	program *program
	ledger  *ledger
	talk    conversation
	answers *answers
	trouble func(what string, err error) // logs what fails, once
}

// A Courier is the working receiver of a mailbox. Its exported methods may be called from
// any goroutine.
type Courier struct {
	common
	asks    chan func()    // run by Run's goroutine for others
	stopped chan struct{}  // closed when Run has returned
	cancels chan cancel    // that want the running turn interrupted
	drops   chan cancel    // that name a message
	wants   chan struct{}  // asks for a batch
	batches chan batch     // the requested batches
	group   sync.WaitGroup // the goroutines of Run
	records records

	// The rest belongs to Run's goroutine.
	box      *bus.Receiver
	asked    bool         // a batch has been asked for
	over     bool         // the mailbox is closed
	later    []cancel     // of messages of which it is not known yet whether the model has them
	saved    agent.Report // on disk
	reported bool         // saved is what is to be reported
	stopping bool         // the running turn is being interrupted
	turn     func()       // reports the end of the turn to the receiver; nil: none is running

	gate      gate
	preface   preface
	backlog   backlog
	offers    offerer
	history   history
	deferrals deferrals
	alone     alone
}

// A cancel is the wish of an address that a message is dropped, or that the turn ends
// which runs at that time.
type cancel struct {
	by    agent.ID
	at    time.Time
	about string // the message that is meant, "" for the running turn
}

// A batch is what the mailbox gave.
type batch struct {
	list []*bus.Delivery
	err  error
}

// New returns the receiver of o.Agent's mailbox. It takes nothing before Run.
func New(o Options) *Courier {
	if o.Log == nil {
		o.Log = func(string, error) {}
	}
	m := &Courier{
		asks: make(chan func()), stopped: make(chan struct{}), cancels: make(chan cancel, 1), drops: make(chan cancel, maxDrops), wants: make(chan struct{}, 1), batches: make(chan batch),
	}
	traits, trouble := o.Runtime.Traits(), troubles(o.Log)
	if traits.Wants == nil {
		traits.Wants = WantsAnswer
	}
	m.common = common{
		o: &o, traits: traits, program: &program{pace: traits.Pace}, ledger: newLedger(o.Home, o.Agent),
		talk: conversation{o: &o, trouble: trouble}, answers: &answers{}, trouble: trouble,
	}
	*m.answers = answers{o: &o, implicit: traits.Implicit, ledger: m.ledger, trouble: trouble, finished: m.history.finished}
	m.records = records{o: &o, runtime: traits.Name, works: &m.group}
	m.gate = gate{o: &o, runtime: traits.Name, trouble: trouble, stir: m.program.stir}
	m.preface = newPreface(&o)
	m.backlog = backlog{common: m.common, records: m.records, gate: &m.gate, preface: &m.preface}
	m.deferrals = deferrals{common: m.common, list: make(map[string]*deferral)}
	m.history = history{
		common: m.common, backlog: &m.backlog, deferrals: &m.deferrals, sight: m.offers.sight,
		doubts: make(map[string]bool), losses: make(map[string]int),
	}
	m.offers = offerer{
		common: m.common, backlog: &m.backlog, history: &m.history, preface: &m.preface,
		path: path{o: &o, pace: traits.Pace, trouble: trouble, tokens: float64(traits.Pace.Burst), channel: o.Notify != nil},
	}
	return m
}

// troubles returns a function that logs an error once, and once more when it has passed.
func troubles(log func(what string, err error)) func(what string, err error) {
	told := make(map[string]bool)
	return func(what string, err error) {
		switch {
		case err == nil && told[what]:
			delete(told, what)
			log(what+": works again", nil)
		case err != nil && !told[what]:
			told[what] = true
			log(what, err)
		}
	}
}

// Run works until ctx ends, which is no error; it may be called once. It waits for the
// mailbox if another process holds it. After an obeyed shutdown it offers nothing more.
// For a runtime with Leaves set it returns an error instead: one that matches
// home.ErrLocked if the mailbox is held, and bus.ErrShutdown after a shutdown.
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
	defer m.ledger.close() // before another courier can read it
	for readable := false; !readable; {
		readable, err = m.ledger.open()
		m.trouble("ledger of owed answers", err)
		switch {
		case readable && err != nil:
			m.records.warn(ctx, "", "", err.Error(), time.Now())
		case !readable && !m.pause(ctx):
			return nil
		}
	}
	m.remember(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer m.gate.release(ctx)
	defer m.group.Wait()
	defer cancel()
	m.group.Go(func() { m.fetch(ctx) })
	return m.loop(ctx)
}

// take waits for the mailbox; it returns false if ctx ended first, or the error if it does
// not wait for the mailbox.
func (m *Courier) take(ctx context.Context) (ok bool, err error) {
	for {
		box, err := m.o.Bus.Receive(ctx, m.o.Agent, bus.ReceiveOptions{
			Start: m.o.Start, MaxText: m.traits.Text, Running: true, Report: m.o.Log, Cancel: m.cancelled,
			Offered: m.ledger.mayHave,
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
		if !m.pause(ctx) {
			return false, nil
		}
	}
}

// pause lets a moment pass before something is tried again; false if ctx has ended.
func (m *Courier) pause(ctx context.Context) bool {
	m.look(ctx, time.Now())
	timer := time.NewTimer(again / 4)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case f := <-m.asks:
		f()
	case <-timer.C:
	}
	return true
}

// maxDrops is how many cancels of messages wait for the loop.
const maxDrops = 1000

// cancelled passes a cancel to the loop; of those without a message the last one counts.
func (m *Courier) cancelled(e envelope.Envelope) {
	c := cancel{e.From, time.Now(), e.InReplyTo}
	if c.about != "" {
		select {
		case m.drops <- c:
		default:
			m.o.Log("cancel from "+string(c.by)+" is ignored: too many at once", nil)
		}
		return
	}
	select {
	case <-m.cancels:
	default:
	}
	m.cancels <- c // from one goroutine
}

// fetch takes a batch out of the mailbox whenever one is requested.
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
			return // claimed messages are offered again
		case m.batches <- batch{list, err}:
		}
		if err != nil {
			return
		}
	}
}

// Look asks the runtime for its state and reports it before returning, so that the report
// matches what is shown elsewhere. It waits for Run; false means that Run or ctx has
// ended.
func (m *Courier) Look(ctx context.Context) bool {
	done := make(chan struct{})
	select {
	case m.asks <- func() { m.program.stir(); m.look(ctx, time.Now()); close(done) }:
		<-done
		return true
	case <-m.stopped:
	case <-ctx.Done():
	}
	return false
}

// Owed lists the IDs of the messages that still need an answer.
func (m *Courier) Owed() (ids []string) {
	for _, o := range m.ledger.seen() {
		if o.Wants {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// Answered records that the model has answered the message.
func (m *Courier) Answered(id string) {
	if err := m.ledger.answered(id); err != nil {
		m.o.Log(fmt.Sprintf("record the answer to %s", id), err)
	}
}
