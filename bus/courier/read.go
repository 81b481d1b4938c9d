package courier

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

// A Ledger is what an agent has in hand, as of one look: the messages that were offered to
// it and whose turns have not ended, the oldest first.
type Ledger struct {
	Messages []Message `json:"owed,omitempty"`
	// RecordedMS is the end of the last recorded turn.
	RecordedMS int64 `json:"recorded_ms,omitzero"`
	Err        error `json:"-"` // it could not be read: what the agent has is not known

	damaged string // the file of which a line is not JSON
}

// ReadLedger reads what an agent has in hand: the changes in the journal of its mailbox, after
// those in the file of an earlier version. It takes no lock.
func ReadLedger(h home.Dir, of agent.ID) (l Ledger) {
	for _, rel := range []string{earlierFile(of), JournalFile(of)} {
		data, err := h.ReadFile(rel, maxJournal)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Ledger{Err: err}
		}
		if rel != JournalFile(of) {
			data = append(bytes.ReplaceAll(data, []byte("\n"), nil), '\n') // all of it is one change
		}
		if err := l.follow(data); err != nil {
			l.damaged, l.Err = rel, fmt.Errorf("%s: damaged: %w", h.Path(rel), err)
		}
	}
	return l
}

// follow makes the changes that the lines tell; a half one at the end does not count. The error
// is why some could not be read.
func (l *Ledger) follow(data []byte) (err error) {
	for line := range bytes.Lines(data) {
		var change Ledger
		if line[len(line)-1] != '\n' {
			break
		}
		if lerr := json.Unmarshal(line, &change, mangle); lerr != nil {
			err = lerr
			continue
		}
		l.RecordedMS = max(l.RecordedMS, change.RecordedMS)
		for _, m := range change.Messages {
			switch {
			case m.State == "" && m.Held != nil && m.Held.Waits: // by an earlier version
				m.State = StateHeld
			case m.State == "", m.State == StateHeld && m.Held == nil:
				m.State = StateOffered
			}
			switch i := l.index(m.ID, m.From); {
			case m.State.Over():
				l.Messages = slices.DeleteFunc(l.Messages, func(o Message) bool { return o.ID == m.ID && o.From == m.From })
			case i < 0:
				l.Messages = append(l.Messages, m)
			default:
				l.Messages[i] = m
			}
		}
	}
	return err
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
func (l Ledger) Find(id string) (m Message, ok bool) { return l.find(id, "") }

func (l Ledger) find(id string, from agent.ID) (m Message, ok bool) {
	if i := l.index(id, from); i >= 0 {
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
	defer l.close()
	if err := l.load(); err != nil {
		return err
	}
	return l.offer([]Message{messageOf(e, "", WantsAnswer(e))})
}

// Forget removes a message from an agent's ledger: the agent owes nothing for it, and its model is
// not given it again. The caller must hold the agent's lock.
func Forget(h home.Dir, of agent.ID, id string) error {
	l := newLedger(h, of)
	defer l.close()
	if err := l.load(); err != nil {
		return err
	}
	if m, ok := l.file.Find(id); ok {
		return l.settle(0, m)
	}
	return nil
}
