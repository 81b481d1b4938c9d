package courier

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

// A Runtime is the program that has the model's conversation. A Courier calls
// its methods from one goroutine, but for Interrupt, which may be called at any
// moment. What happens in the program it reports through Options.Events.
//
// Package couriertest proves that a Runtime keeps what is promised here.
type Runtime interface {
	// Traits are the same at each call.
	Traits() Traits
	// Offer hands over a text. nil reports that it was accepted for delivery, no
	// more: an event reports that the model has it. After an error for which
	// Refused holds, or that matches ErrNotReady, nothing was accepted; after any
	// other that is not known, and the same text may be offered again.
	Offer(ctx context.Context, o Offer) error
	// State is how the program is at this moment.
	State(ctx context.Context) Condition
	// Holds reports whether the conversation holds the message. An error means
	// that this can't be told now.
	Holds(ctx context.Context, id string) (bool, error)
	// Ended is how a turn ended, as the conversation tells it: that of the number,
	// or without one the last that took the message. It is an EventStop with the
	// model's last text, or an EventStopFailed, whose Error is Interrupted if the
	// turn was broken off. ok is false if the conversation does not tell; the ID is
	// the turn's number even then, if it tells that. An error means that nothing
	// can be told now.
	Ended(ctx context.Context, id, turn string) (e agent.Event, ok bool, err error)
	// Interrupt ends the running turn on behalf of an address; an error if none
	// runs.
	Interrupt(ctx context.Context, by agent.ID) error
}

// An Offer is a text for the model.
type Offer struct {
	Text string
	// Messages are those in the text, in order. There are none in a text that only
	// names what a turn was cut off at.
	Messages []envelope.Envelope
	About    []string // the IDs of all messages that the text holds or names
}

// A Condition is how a program is.
type Condition struct {
	agent.Report      // State, Evidence and Detail
	Takes        bool // it can be offered a text
}

// An Event is what happened in the program.
type Event struct {
	agent.Event
	// Again, of an EventStopFailed: the reason passes, such as a login that has
	// expired. What the turn took is not answered but named to a later turn.
	Again bool
	// Deferred, of an EventStop: the program answers later, by itself.
	Deferred bool
	// Cut, of an EventSessionStart: the turn that ran was cut off with the
	// program's connection, and the conversation goes on.
	Cut bool
}

// EventState is the kind of an event that only reports that State has changed.
const EventState agent.EventKind = "state"

// Interrupted is the Error of an EventStopFailed of a turn that was broken off.
const Interrupted = "interrupted"

// A Source brings the events of a program.
type Source interface {
	// C receives when there may be events.
	C() <-chan struct{}
	// Read calls fn with every event since the last call. The first call begins
	// with those that happened before the courier ran, if they are on record.
	Read(fn func(Event)) error
}

// Traits say what a runtime is like.
type Traits struct {
	Name       string // of the runtime, in the records
	Batch      int    // messages in one offer, at most
	BatchBytes int    // bytes in one offer, unless it is one message
	Text       int    // bytes of the longest rendering of one message that it takes
	Queues     bool   // an accepted offer may wait in a queue of the program's own
	Implicit   bool   // the last text is not known to be meant as an answer, and is marked so
	Leaves     bool   // the program ends with the courier: a mailbox that another holds is an error, a shutdown the end
	Losses     int    // how often a message may be cut off before that is its answer; 0: without limit
	// Wants decides which messages get exactly one answer; nil is WantsAnswer.
	Wants func(envelope.Envelope) bool
	Pace  Pace
}

// A Pace is how fast a program is.
type Pace struct {
	// Burst is how many offers it accepts in a row, and Every the time for one
	// more; 0: as many as come.
	Burst int
	Every time.Duration
	// Unseen is how long it may be idle without an offer having been seen before it
	// is offered again, the first time, the second and so on; the last goes on.
	Unseen []time.Duration
	// Busy and Idle are how often its state is asked for while something goes on,
	// and while nothing does.
	Busy, Idle time.Duration
	// Told is how long it may be idle with a turn whose end no event has told before
	// the conversation is asked, Silent before the turn is taken to be broken off.
	Told, Silent time.Duration
	// Begins is how long it may be idle without an event of its session's start.
	Begins time.Duration
	// Read is how long a text in a tool's result takes to arrive.
	Read time.Duration
	// Point is the shortest time between two lines in its pane that say that messages
	// wait.
	Point time.Duration
}

// A Pointer is a Runtime with a pane in which a line can say that messages wait.
type Pointer interface {
	// Point types one line into the pane that says that n messages wait, if nothing
	// there would be disturbed; the error says what would.
	Point(ctx context.Context, n int) error
}

// A Meter is a Runtime that knows what a turn took, in tokens, where the event of
// its end does not say so.
type Meter interface {
	Usage(ctx context.Context, e agent.Event) agent.Usage
}

// A Settler is a Runtime that wants to know when nothing more is to be done about
// a message: it is filed, and its answer is sent, or will not be. It must be quick.
type Settler interface{ Settled(id string) }

// ErrNotReady is returned by an Offer that can't be accepted at this moment.
var ErrNotReady = errors.New("not ready")

// Refused reports whether a way to the program is closed, rather than that it
// was tried and something went wrong on it.
func Refused(err error) bool {
	var r interface{ Refused() bool }
	if errors.As(err, &r) {
		return r.Refused()
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}
