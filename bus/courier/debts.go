package courier

import (
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
)

// InHand returns the ID of the message that was offered to an agent last and whose turn
// has not ended, or "".
func InHand(h home.Dir, of agent.ID) string {
	l := newLedger(h, of)
	if l.load() != nil {
		return ""
	}
	for _, o := range slices.Backward(l.file.Owed) {
		if o.Held == nil || !o.Held.Waits {
			return o.ID
		}
	}
	return ""
}

// A Debt is a message that was offered to an agent and whose turn has not ended.
type Debt struct {
	ID    string
	From  agent.ID
	Sent  time.Time
	Wants bool // it wants an answer
	Held  bool // a vendor's fault has interrupted it
}

// Debts lists them, the oldest first; a ledger that can't be read has none.
func Debts(h home.Dir, of agent.ID) (list []Debt) {
	l := newLedger(h, of)
	if l.load() != nil {
		return nil
	}
	for _, o := range l.file.Owed {
		list = append(list, Debt{o.ID, o.From, time.UnixMilli(o.SentMS), o.Wants, o.Held != nil && o.Held.Waits})
	}
	return list
}

// Owes reports whether the message is still to be answered or given to the model again, by
// the agent's courier or its next one. A ledger that can't be read is still owed.
func Owes(h home.Dir, of agent.ID, id string) bool {
	l := newLedger(h, of)
	return l.load() != nil || l.index(id, "") >= 0
}

// Unfinished returns the IDs of all messages that are in the ledgers of these agents.
func Unfinished(h home.Dir, of ...agent.ID) (ids map[string]bool, err error) {
	ids = make(map[string]bool)
	for _, id := range of {
		l := newLedger(h, id)
		if err := l.load(); err != nil {
			return nil, err
		}
		for _, o := range l.file.Owed {
			ids[o.ID] = true
		}
	}
	return ids, nil
}

// Owe puts a message into an agent's ledger that was given to its program in another
// way: the next courier answers it, or gives it to the model again. The caller must
// hold the agent's lock, as a courier reads the ledger when it starts.
func Owe(h home.Dir, to agent.ID, e envelope.Envelope) error {
	l := newLedger(h, to)
	if err := l.load(); err != nil {
		return err
	}
	return l.offer([]owed{{
		ID: e.ID, From: e.From, Kind: e.Kind, Thread: e.Thread, Hops: e.Hops,
		SentMS: e.Time.UnixMilli(), OfferedMS: time.Now().UnixMilli(), Wants: WantsAnswer(e),
	}})
}

// Forget removes a message from an agent's ledger: the agent owes nothing for it, and its model is
// not given it again. The caller must hold the agent's lock.
func Forget(h home.Dir, of agent.ID, id string) error {
	l := newLedger(h, of)
	if err := l.load(); err != nil {
		return err
	}
	if i := l.index(id, ""); i >= 0 {
		return l.settle(0, l.file.Owed[i])
	}
	return nil
}
