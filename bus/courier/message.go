package courier

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netsky/agent"
	"netsky/bus/envelope"
)

// A State is where a message is on its way through an agent.
type State string

const (
	StateWaiting     State = "waiting"     // in the inbox
	StateClaimed     State = "claimed"     // taken out of it, and never offered
	StateOffered     State = "offered"     // to the program, which may have it
	StateSeen        State = "seen"        // the program has been seen with it; its turn has not ended
	StateHeld        State = "held"        // its turn failed of what is no answer; it is offered again when that is over
	StateInterrupted State = "interrupted" // its turn was cut off; it is offered again, or pointed out
	StateAnswered    State = "answered"    // finished, also if it wanted no answer
	StateExpired     State = "expired"     // before the program had it
	StateCancelled   State = "cancelled"   // before the program had it
	StatePoisoned    State = "poisoned"    // no valid envelope
)

// changes are the states that can follow a state.
var changes = map[State][]State{
	StateWaiting:     {StateClaimed, StateExpired, StateCancelled, StatePoisoned},
	StateClaimed:     {StateWaiting, StateOffered, StateSeen, StateAnswered, StateExpired, StateCancelled, StatePoisoned},
	StateOffered:     {StateSeen, StateHeld, StateInterrupted, StateAnswered, StateExpired, StateCancelled},
	StateSeen:        {StateHeld, StateInterrupted, StateAnswered, StateCancelled},
	StateHeld:        {StateOffered, StateAnswered, StateExpired, StateCancelled},
	StateInterrupted: {StateOffered, StateSeen, StateHeld, StateAnswered, StateExpired, StateCancelled},
	StatePoisoned:    {StateWaiting}, // mended
}

// Becomes reports whether a message can change from one state to the other.
func (s State) Becomes(next State) bool { return slices.Contains(changes[s], next) }

// Over reports whether nothing more happens to the message. A state of a later version is open.
func (s State) Over() bool { return s == StateAnswered || s == StateExpired || s == StateCancelled }

// A Message is one that was offered to the model and whose turn has not ended. It is stored
// before it is offered, so that the next courier knows what a dead one may have left
// unanswered, and what a conversation that was killed may have forgotten.
type Message struct {
	ID        string        `json:"id"`
	From      agent.ID      `json:"from"`
	Kind      envelope.Kind `json:"kind,omitempty"`
	Thread    string        `json:"thread,omitempty"`
	Hops      int           `json:"hops,omitzero"`
	SentMS    int64         `json:"sent_ms,omitzero"`
	OfferedMS int64         `json:"offered_ms,omitzero"`
	Start     string        `json:"start,omitempty"` // the start id of the program that it was last offered to
	Wants     bool          `json:"wants,omitzero"`  // it wants an answer, and the model has given none

	Replied bool `json:"replied,omitzero"` // the model has answered it by itself

	State State `json:"state,omitempty"`
	Held  *Hold `json:"held,omitempty"` // its turn has failed of the account; never changed, only replaced

	Later jsontext.Value `json:",embed"` // fields of a later version

	turn string // the number of the turn that took it, if an event has reported it
	late bool   // a later turn has ended, and how its own ended is not known yet
}

// is reports whether that is the message.
func (m Message) is(e envelope.Envelope) bool { return m.ID == e.ID && m.From == e.From }

// become changes the state, if that can follow the present one.
func (m *Message) become(next State) bool {
	if !m.State.Becomes(next) {
		return false
	}
	m.State = next
	if next != StateSeen {
		m.turn, m.late = "", false
	}
	return true
}

// messageOf returns the record of a message that is offered now to a start of the agent.
func messageOf(e envelope.Envelope, start string, wants bool) Message {
	return Message{
		ID: e.ID, From: e.From, Kind: e.Kind, Thread: e.Thread, Hops: e.Hops, Start: start, State: StateOffered,
		SentMS: e.Time.UnixMilli(), OfferedMS: time.Now().UnixMilli(), Wants: wants,
	}
}

// WantsAnswer reports whether a message gets exactly one answer: the owner's messages,
// briefs, handoffs and cron's calls, and those that ask for one; never an answer.
func WantsAnswer(e envelope.Envelope) bool {
	switch e.Kind {
	case envelope.KindReply, envelope.KindError, envelope.KindAck, envelope.KindHeld, envelope.KindApproval, envelope.KindApprovalAnswer:
		return false
	case envelope.KindBrief, envelope.KindHandoff, envelope.KindCron:
		return true
	}
	return e.From.Local() == agent.Owner || e.RequiresAck
}
