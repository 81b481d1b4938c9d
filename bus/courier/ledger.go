package courier

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
)

// An owed is a message that was offered to the model and whose turn has not ended. It
// is stored before it is offered, so that the next courier knows what a dead one may
// have left unanswered, and what a conversation that was killed may have forgotten.
type owed struct {
	ID        string        `json:"id"`
	From      agent.ID      `json:"from"`
	Kind      envelope.Kind `json:"kind,omitempty"`
	Thread    string        `json:"thread,omitempty"`
	Hops      int           `json:"hops,omitempty"`
	SentMS    int64         `json:"sent_ms"`
	OfferedMS int64         `json:"offered_ms"`
	Start     string        `json:"start,omitempty"` // the start id of the program that it was last offered to
	Wants     bool          `json:"wants,omitempty"` // it wants an answer, and the model has given none

	Replied bool `json:"replied,omitempty"` // the model has answered it by itself

	Held *Held `json:"held,omitempty"` // its turn failed of the account; never changed, only replaced

	seen bool   // the model has it
	turn string // the number of the turn that took it, if an event has reported it
	late bool   // a later turn has ended, and how its own ended is not known yet
}

// is reports whether that is the message.
func (o owed) is(e envelope.Envelope) bool { return o.ID == e.ID && o.From == e.From }

func (m *Courier) owedOf(e envelope.Envelope) owed {
	return owed{
		ID: e.ID, From: e.From, Kind: e.Kind, Thread: e.Thread, Hops: e.Hops, Start: m.o.Start,
		SentMS: e.Time.UnixMilli(), OfferedMS: time.Now().UnixMilli(), Wants: m.traits.Wants(e),
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
	return e.From == agent.Owner || e.RequiresAck
}

// A ledger is state/owed/<agent>.json. It is safe for concurrent use.
type ledger struct {
	home home.Dir
	rel  string

	mu     sync.Mutex // guards the fields below, and the file
	file   ledgerFile
	opened bool // file says what the last courier left
	closed bool
}

type ledgerFile struct {
	Owed []owed `json:"owed"` // the oldest first
	// RecordedMS is the end of the last recorded turn.
	RecordedMS int64 `json:"recorded_ms,omitempty"`
}

const (
	owedDir   = "state/owed"
	maxLedger = 4 << 20
)

func newLedger(home home.Dir, id agent.ID) *ledger {
	return &ledger{home: home, rel: owedDir + "/" + string(id) + ".json"}
}

// open reads the ledger for the courier that keeps it. One that is not JSON is moved aside,
// and the error says where to. If it can't be read now, readable is false: what it says is
// still owed.
func (l *ledger) open() (readable bool, err error) {
	if err = l.load(); !errors.Is(err, errDamaged) {
		return err == nil, err
	}
	aside := l.rel + ".bad-" + strconv.FormatInt(time.Now().UnixMilli(), 10)
	data, rerr := l.home.ReadFile(l.rel, maxLedger)
	if rerr == nil {
		rerr = l.home.WriteFile(aside, data, true)
	}
	if rerr == nil {
		rerr = l.home.Remove(l.rel)
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
	l.file = ledgerFile{}
	data, err := l.home.ReadFile(l.rel, maxLedger)
	if errors.Is(err, fs.ErrNotExist) {
		l.opened = true
		return nil
	}
	if err != nil {
		return err
	}
	l.opened = true
	if err := json.Unmarshal(data, &l.file); err != nil {
		l.file = ledgerFile{}
		return fmt.Errorf("%s: %w: %w", l.home.Path(l.rel), errDamaged, err)
	}
	return nil
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
	return l.home.WriteFile(l.rel, append(data, '\n'), sync)
}

// offer stores what is about to be offered. When it returns nil, that survives a loss
// of power.
func (l *ledger) offer(list []owed) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.file.Owed
	next := slices.Clone(before)
	fresh := false
	for _, o := range list {
		switch i := l.index(o.ID, o.From); {
		case i < 0:
			next, fresh = append(next, o), true
		case next[i].Held != nil && next[i].Held.Waits: // events of earlier turns are not about this offer
			h := *next[i].Held
			h.Waits = false
			next[i].Held, next[i].Start, next[i].OfferedMS, fresh = &h, o.Start, time.Now().UnixMilli(), true
		case next[i].Start != o.Start:
			next[i].Start, fresh = o.Start, true
		}
	}
	if !fresh {
		return nil
	}
	l.file.Owed = next
	err := l.save(true)
	if err != nil {
		l.file.Owed = before
	}
	return err
}

// index finds a message; without a sender the one that was offered last.
func (l *ledger) index(id string, from agent.ID) int {
	for i, o := range slices.Backward(l.file.Owed) {
		if o.ID == id && (from == "" || o.From == from) {
			return i
		}
	}
	return -1
}

// mistakable reports whether a turn has another sender's message with the same ID. Events
// and the conversation know IDs only, so this one waits until that one is settled.
func (l *ledger) mistakable(e envelope.Envelope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.file.Owed, func(o owed) bool { return o.ID == e.ID && o.From != e.From && o.seen })
}

// sight records that the model has the message, and reports whether that is new.
func (l *ledger) sight(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.index(id, "")
	if i < 0 || l.file.Owed[i].seen {
		return false
	}
	l.file.Owed[i].seen = true
	return true
}

// unsee records that the model may have lost the messages.
func (l *ledger) unsee(list []owed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range list {
		if i := l.index(o.ID, o.From); i >= 0 {
			l.file.Owed[i].seen, l.file.Owed[i].turn, l.file.Owed[i].late = false, "", false
		}
	}
}

// hold records that messages wait for their account, or that their senders know it. If that
// can't be stored now, the next change of the ledger does.
func (l *ledger) hold(list []owed) error {
	if len(list) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range list {
		if i := l.index(o.ID, o.From); i >= 0 {
			e := &l.file.Owed[i]
			e.Held, e.seen, e.turn, e.late = o.Held, false, "", false
		}
	}
	return l.save(true)
}

// late records that the end of the message's turn was missed.
func (l *ledger) late(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(id, ""); i >= 0 {
		l.file.Owed[i].late = true
	}
}

// took records which turn took a message.
func (l *ledger) took(id, turn string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(id, ""); i >= 0 && turn != "" {
		l.file.Owed[i].turn = turn
	}
}

// list returns the entries; with seen only those that the model has.
func (l *ledger) list(seen bool) (list []owed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.file.Owed {
		if o.seen || !seen {
			list = append(list, o)
		}
	}
	return list
}

// offered finds the message if it was offered before.
func (l *ledger) offered(e envelope.Envelope) (o owed, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.index(e.ID, e.From)
	if i < 0 {
		return o, false
	}
	return l.file.Owed[i], true
}

// mayHave reports whether the model may have the message: it was offered before, or the
// ledger is not read yet.
func (l *ledger) mayHave(e envelope.Envelope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.opened || l.index(e.ID, e.From) >= 0
}

// answered records that the model has answered by itself.
func (l *ledger) answered(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.index(id, "")
	if i < 0 || !l.file.Owed[i].Wants || l.closed {
		return nil
	}
	l.file.Owed[i].Wants, l.file.Owed[i].Replied = false, true
	return l.save(true)
}

// settle removes finished entries. If a crash leaves one, it is settled again.
func (l *ledger) settle(recorded int64, done ...owed) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.file.Owed)
	l.file.Owed = slices.DeleteFunc(slices.Clone(l.file.Owed), func(o owed) bool {
		return slices.ContainsFunc(done, func(d owed) bool { return d.ID == o.ID && d.From == o.From })
	})
	if len(l.file.Owed) == n && recorded <= l.file.RecordedMS {
		return nil
	}
	l.file.RecordedMS = max(l.file.RecordedMS, recorded)
	return l.save(len(l.file.Owed) > 0)
}

func (l *ledger) recorded() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.RecordedMS
}
