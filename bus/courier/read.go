package courier

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

// A Ledger is what an agent has in hand, as of one look: the messages that were offered to
// it and whose turns have not ended, the oldest first.
type Ledger struct {
	Messages []Message `json:"owed"`
	// RecordedMS is the end of the last recorded turn.
	RecordedMS int64 `json:"recorded_ms,omitempty"`
	Err        error `json:"-"` // it could not be read: what the agent has is not known
}

// ReadLedger reads an agent's ledger. It takes no lock.
func ReadLedger(h home.Dir, of agent.ID) (l Ledger) {
	data, err := h.ReadFile(ledgerFile(of), maxLedger)
	if errors.Is(err, fs.ErrNotExist) {
		return l
	}
	if err == nil {
		if err = json.Unmarshal(data, &l); err != nil {
			err = fmt.Errorf("%s: %w: %w", h.Path(ledgerFile(of)), errDamaged, err)
		}
	}
	if err != nil {
		return Ledger{Err: err}
	}
	for i := range l.Messages {
		switch m := &l.Messages[i]; {
		case m.State == "" && m.Held != nil && m.Held.Waits: // by an earlier version
			m.State = StateHeld
		case m.State == "", m.State == StateHeld && m.Held == nil:
			m.State = StateOffered
		}
	}
	return l
}

// index finds a message; without a sender the one that was offered last.
func (l Ledger) index(id string, from agent.ID) int {
	for i, m := range slices.Backward(l.Messages) {
		if m.ID == id && (from == "" || m.From == from) {
			return i
		}
	}
	return -1
}

// Find returns a message; ok is false if the agent does not have it in hand.
func (l Ledger) Find(id string) (m Message, ok bool) {
	if i := l.index(id, ""); i >= 0 {
		return l.Messages[i], true
	}
	return m, false
}

// Owes reports whether the message is still to be answered or given to the model again, by
// the agent's courier or its next one. Without a ledger that can be read it may be.
func (l Ledger) Owes(id string) bool { return l.Err != nil || l.index(id, "") >= 0 }

// InHand returns the ID of the message that was offered last and is not held, or "".
func (l Ledger) InHand() string {
	for _, m := range slices.Backward(l.Messages) {
		if m.State != StateHeld {
			return m.ID
		}
	}
	return ""
}

// Holding returns how many messages are held, and until when at most, if the vendor has
// stated that.
func (l Ledger) Holding() (n int, until time.Time) {
	for _, m := range l.Messages {
		if m.State != StateHeld {
			continue
		}
		n++
		if t := m.Held.Fault.Until(); t.After(until) {
			until = t
		}
	}
	return n, until
}

// Limited returns the model of which a limit, rather than one of its account, made a start
// of the agent hold messages; "" if none did.
func (l Ledger) Limited(start string) (scope string) {
	if m, ok := l.limited(); ok && m.State == StateHeld && m.Start == start {
		return m.Held.Fault.Scope
	}
	return ""
}

// limited returns the message that was the last to be held for a limit of one model.
func (l Ledger) limited() (last Message, ok bool) {
	for _, m := range l.Messages {
		if m.Held != nil && m.Held.Fault.Scope != "" && (!ok || m.Held.LastMS >= last.Held.LastMS) {
			last, ok = m, true
		}
	}
	return last, ok
}

// StateOf returns the state of a message of which that file of the agent's mailbox is known.
func (l Ledger) StateOf(e bus.Entry) State {
	i := l.index(e.Envelope.ID, e.Envelope.From)
	switch {
	case e.Place == bus.Poison:
		return StatePoisoned
	case e.Place == bus.Inbox:
		return StateWaiting
	case e.Reason == mailbox.Expired:
		return StateExpired
	case e.Reason == mailbox.Retracted:
		return StateCancelled
	case i >= 0:
		return l.Messages[i].State
	case l.Err != nil:
		return StateOffered
	case e.Place == bus.Claimed:
		return StateClaimed
	}
	return StateAnswered
}

// Owe puts a message into an agent's ledger that was given to its program in another
// way: the next courier answers it, or gives it to the model again. The caller must
// hold the agent's lock, as a courier reads the ledger when it starts.
func Owe(h home.Dir, to agent.ID, e envelope.Envelope) error {
	l := newLedger(h, to)
	if err := l.load(); err != nil {
		return err
	}
	return l.offer([]Message{messageOf(e, "", WantsAnswer(e))})
}

// Forget removes a message from an agent's ledger: the agent owes nothing for it, and its model is
// not given it again. The caller must hold the agent's lock.
func Forget(h home.Dir, of agent.ID, id string) error {
	l := newLedger(h, of)
	if err := l.load(); err != nil {
		return err
	}
	if m, ok := l.file.Find(id); ok {
		return l.settle(0, m)
	}
	return nil
}
