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

// A Runtime is the program that holds the model's conversation. A Courier calls its
// methods from one goroutine, except Interrupt, which may be called at any time. What
// happens in the program is reported by Options.Events.
//
// testworld.Run tests that a Runtime keeps these promises.
type Runtime interface {
	// Traits are the same at each call.
	Traits() Traits
	// Offer passes a text to the program. nil means that it was accepted for delivery, no
	// more: an event reports that the model has it. After an error for which Refused is
	// true, or that matches ErrNotReady, nothing was accepted; after any other that is
	// unknown, and the same text may be offered again.
	Offer(ctx context.Context, o Offer) error
	// State returns the program's current state.
	State(ctx context.Context) Condition
	// Holds reports whether the conversation holds the message. An error means that this is
	// unknown now.
	Holds(ctx context.Context, id string) (bool, error)
	// Ended returns how a turn ended, according to the conversation: that of the number, or
	// without one the last that took the message. It is an EventStop with the model's last
	// text, or an EventStopFailed, whose Error is Interrupted if the turn was interrupted.
	// ok is false if the conversation does not show it; the ID is the turn's number even
	// then, if known. An error means that nothing can be said now.
	Ended(ctx context.Context, id, turn string) (e agent.Event, ok bool, err error)
	// Interrupt ends the running turn on behalf of an address; an error if none is running.
	Interrupt(ctx context.Context, by agent.ID) error
}

// An Offer is a text for the model.
type Offer struct {
	Text string
	// Messages are those in the text, in order. A text that only names what a turn was
	// working on when it was cut off has none.
	Messages []envelope.Envelope
	About    []string // the IDs of all messages that the text holds or names
}

// A Condition is the state of a program.
type Condition struct {
	agent.Report      // State, Evidence and Detail
	Takes        bool // it can be offered a text
	// Works is what an idle program still works on by itself; the agent is busy with it.
	Works []agent.Work
}

// An Event is something that happened in the program.
type Event struct {
	agent.Event
	// Again, of an EventStopFailed: the reason is temporary, such as an expired login. What
	// the turn took is not answered but presented to a later turn.
	Again bool
	// Deferred, of an EventStop: the program answers later, by itself.
	Deferred bool
	// Cut, of an EventSessionStart: the running turn was cut off with the program's
	// connection, and the conversation continues.
	Cut bool
}

// EventState is the kind of an event that only reports that State has changed.
const EventState agent.EventKind = "state"

// Interrupted is the Error of an EventStopFailed of an interrupted turn.
const Interrupted = "interrupted"

// A Source supplies the events of a program.
type Source interface {
	// C receives when there may be events.
	C() <-chan struct{}
	// Read calls fn with every event since the last call. The first call begins with
	// recorded events from before the courier ran.
	Read(fn func(Event)) error
}

// Traits say what a runtime is like.
type Traits struct {
	Name       string // of the runtime, in the records
	Batch      int    // maximum number of messages in one offer
	BatchBytes int    // bytes in one offer, unless it is one message
	Text       int    // bytes of the longest rendering of one message that it takes
	Queues     bool   // an accepted offer may wait in the program's own queue
	Implicit   bool   // the last text may not be meant as an answer, and is marked so
	Leaves     bool   // the program ends with the courier: a mailbox held by another is an error, a shutdown the end
	Losses     int    // how often a message may be cut off before that is its answer; 0: no limit
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
	// Unseen is how long it may be idle without an offer having been seen before it is
	// offered again, the first time, the second and so on; the last value repeats.
	Unseen []time.Duration
	// Busy and Idle are how often its state is polled while something happens, and while
	// nothing does.
	Busy, Idle time.Duration
	// Told is how long it may be idle during a turn without a reported end before the
	// conversation is asked, Silent before the turn counts as interrupted.
	Told, Silent time.Duration
	// Begins is how long it may be idle without an event of its session's start.
	Begins time.Duration
	// Read is how long a text in a tool's result takes to arrive.
	Read time.Duration
	// Point is the minimum time between two lines in its pane that say that messages wait.
	Point time.Duration
}

// A Pointer is a Runtime with a pane in which a line can say that messages wait.
type Pointer interface {
	// Point types one line into the pane that says that n messages wait, if that disturbs
	// nothing there; the error names the obstacle.
	Point(ctx context.Context, n int) error
}

// A Halter is a Runtime whose program can be kept from beginning turns by itself. Halt does
// that until a person at its pane allows it again; it may fail if there is nothing to halt.
type Halter interface {
	Halt(ctx context.Context) error
}

// A Meter is a Runtime that knows what a turn used, in tokens, if the event of its end
// does not say so.
type Meter interface {
	Usage(ctx context.Context, e agent.Event) agent.Usage
}

// A Subscriber is a Runtime whose model is reached by a login with a vendor.
type Subscriber interface {
	// Account names the provider and the login that a turn would use now, without a secret,
	// and returns when its credentials were last changed, zero if that is not known. It is
	// "" if the login is not known. It must be quick.
	Account() (name string, changed time.Time)
}

// A Settler is a Runtime that wants to know when a message is finished: it is filed, and
// its answer is sent, or will not be. Settled must be quick.
type Settler interface{ Settled(id string) }

// ErrNotReady is returned by an Offer that can't be accepted at this moment.
var ErrNotReady = errors.New("not ready")

// Refused reports whether a delivery path is closed, rather than that using it failed.
func Refused(err error) bool {
	var r interface{ Refused() bool }
	if errors.As(err, &r) {
		return r.Refused()
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}
