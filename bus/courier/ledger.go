package courier

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
)

// A ledger is state/owed/<agent>.json. It is safe for concurrent use.
type ledger struct {
	home home.Dir
	of   agent.ID

	mu     sync.Mutex // guards the fields below, and the file
	file   Ledger
	opened bool // file says what the last courier left
	closed bool
}

const maxLedger = 4 << 20

// LedgerDir holds the ledgers: state/owed/<agent>.json.
const LedgerDir = "state/owed"

func ledgerFile(of agent.ID) string { return LedgerDir + "/" + string(of) + ".json" }

func newLedger(home home.Dir, id agent.ID) *ledger { return &ledger{home: home, of: id} }

// open reads the ledger for the courier that keeps it: what a dead one's program was seen
// with, the events and the conversation tell. One that is not JSON is moved aside, and the
// error says where to. If it can't be read now, readable is false: what it says is still owed.
func (l *ledger) open() (readable bool, err error) {
	if err = l.load(); !errors.Is(err, errDamaged) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i := range l.file.Messages {
			if m := &l.file.Messages[i]; m.State != StateHeld {
				m.State = StateOffered
			}
		}
		return err == nil, err
	}
	rel := ledgerFile(l.of)
	aside := rel + ".bad-" + strconv.FormatInt(time.Now().UnixMilli(), 10)
	data, rerr := l.home.ReadFile(rel, maxLedger)
	if rerr == nil {
		rerr = l.home.WriteFile(aside, data, true)
	}
	if rerr == nil {
		rerr = l.home.Remove(rel)
	}
	if rerr != nil {
		return false, errors.Join(err, rerr)
	}
	return true, fmt.Errorf("%w; moved to %s: who waited for an answer may get none", err, l.home.Path(aside))
}

// errDamaged reports a ledger that is not JSON.
var errDamaged = errors.New("damaged")

// load reads the ledger; one that is not there is empty.
func (l *ledger) load() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = ReadLedger(l.home, l.of)
	l.opened = l.file.Err == nil || errors.Is(l.file.Err, errDamaged)
	err := l.file.Err
	l.file.Err = nil
	return err
}

// close keeps a model's late reply from being noted in what is another courier's file now.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// save writes the ledger. The caller holds mu.
func (l *ledger) save(sync bool) error {
	data, err := json.Marshal(l.file)
	if err != nil {
		return err
	}
	return l.home.WriteFile(ledgerFile(l.of), append(data, '\n'), sync)
}

// offer stores what is about to be offered. When it returns nil, that survives a loss
// of power.
func (l *ledger) offer(list []Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.file.Messages
	next := slices.Clone(before)
	fresh := false
	for _, o := range list {
		switch i := l.file.index(o.ID, o.From); {
		case i < 0:
			next, fresh = append(next, o), true
		case next[i].State == StateHeld: // events of earlier turns are not about this offer
			next[i].become(StateOffered)
			next[i].Start, next[i].OfferedMS, fresh = o.Start, time.Now().UnixMilli(), true
		case next[i].Start != o.Start:
			next[i].Start, fresh = o.Start, true
		}
	}
	if !fresh {
		return nil
	}
	l.file.Messages = next
	err := l.save(true)
	if err != nil {
		l.file.Messages = before
	}
	return err
}

// mistakable reports whether a turn has another sender's message with the same ID. Events
// and the conversation know IDs only, so this one waits until that one is settled.
func (l *ledger) mistakable(e envelope.Envelope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.file.Messages, func(m Message) bool { return m.ID == e.ID && m.From != e.From && m.State == StateSeen })
}

// sight records that the model has the message, and reports whether that is new: of one
// that is held, it had that before.
func (l *ledger) sight(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.file.index(id, "")
	return i >= 0 && l.file.Messages[i].become(StateSeen)
}

// interrupt records that the model may have lost all that it has, and returns that, with the
// numbers of the turns that took it.
func (l *ledger) interrupt() (list []Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.file.Messages {
		m := &l.file.Messages[i]
		if turn := m.turn; m.State == StateSeen && m.become(StateInterrupted) {
			list = append(list, *m)
			list[len(list)-1].turn = turn
		}
	}
	return list
}

// hold records that messages wait for their account, or that their senders know it. If that
// can't be stored now, the next change of the ledger does.
func (l *ledger) hold(list []Message) error {
	if len(list) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range list {
		if i := l.file.index(o.ID, o.From); i >= 0 {
			l.file.Messages[i].become(StateHeld)
			l.file.Messages[i].Held = o.Held
		}
	}
	return l.save(true)
}

// late records that the end of the message's turn was missed.
func (l *ledger) late(id string) { l.change(id, func(m *Message) { m.late = true }) }

// took records which turn took a message.
func (l *ledger) took(id, turn string) {
	l.change(id, func(m *Message) { m.turn = cmp.Or(turn, m.turn) })
}

// change changes what is known of a message, but not stored.
func (l *ledger) change(id string, to func(*Message)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.file.index(id, ""); i >= 0 {
		to(&l.file.Messages[i])
	}
}

// list returns all messages.
func (l *ledger) list() []Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.file.Messages)
}

// seen returns the messages that the model has.
func (l *ledger) seen() []Message {
	return slices.DeleteFunc(l.list(), func(m Message) bool { return m.State != StateSeen })
}

// offered finds the message if it was offered before.
func (l *ledger) offered(e envelope.Envelope) (m Message, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.file.index(e.ID, e.From)
	if i < 0 {
		return m, false
	}
	return l.file.Messages[i], true
}

// mayHave reports whether the model may have the message: it was offered before, or the
// ledger is not read yet.
func (l *ledger) mayHave(e envelope.Envelope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.opened || l.file.index(e.ID, e.From) >= 0
}

// answered records that the model has answered by itself.
func (l *ledger) answered(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.file.index(id, "")
	if i < 0 || !l.file.Messages[i].Wants || l.closed {
		return nil
	}
	l.file.Messages[i].Wants, l.file.Messages[i].Replied = false, true
	return l.save(true)
}

// settle removes finished entries. If a crash leaves one, it is settled again.
func (l *ledger) settle(recorded int64, done ...Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.file.Messages)
	l.file.Messages = slices.DeleteFunc(slices.Clone(l.file.Messages), func(o Message) bool {
		return slices.ContainsFunc(done, func(d Message) bool { return d.ID == o.ID && d.From == o.From })
	})
	if len(l.file.Messages) == n && recorded <= l.file.RecordedMS {
		return nil
	}
	l.file.RecordedMS = max(l.file.RecordedMS, recorded)
	return l.save(len(l.file.Messages) > 0)
}

func (l *ledger) recorded() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.RecordedMS
}
