package courier

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

// A ledger is the journal of an agent's mailbox, to which each change is appended as a line,
// and what its lines come to. It is safe for concurrent use.
type ledger struct {
	home home.Dir
	of   agent.ID

	mu     sync.Mutex // guards the fields below, and the file
	file   Ledger
	opened bool // file says what the last courier left
	closed bool
	lines  mailbox.Lines
	bound  int64 // the length from which on the journal is replaced
}

const (
	journalName = "journal"
	maxJournal  = 16 << 20 // bytes that are read
	// growth is how much is appended to a journal before it is replaced by one with the open
	// messages alone: whoever reads it reads it whole.
	growth = 32 << 10
)

// JournalFile returns the journal of an agent's mailbox.
func JournalFile(of agent.ID) string { return home.Mailbox(of) + "/" + journalName }

// earlierFile returns the file of a ledger of an earlier version.
func earlierFile(of agent.ID) string { return "state/owed/" + string(of) + ".json" }

func newLedger(h home.Dir, id agent.ID) *ledger {
	return &ledger{home: h, of: id, lines: mailbox.Lines{Home: h, Box: home.Mailbox(id), Name: journalName, Files: new(mailbox.Maker)}}
}

// open reads the ledger for the courier that keeps it: what a dead one's program was seen
// with, the events and the conversation tell. A file with a line that is not JSON is copied, and
// the error says where to. If it can't be read now, readable is false: what it says is still owed.
func (l *ledger) open() (readable bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err = l.load()
	for i := range l.file.Messages {
		if m := &l.file.Messages[i]; m.State != StateHeld {
			m.State = StateOffered
		}
	}
	if l.opened = err == nil || l.file.damaged != ""; err == nil || !l.opened {
		return l.opened, err
	}
	aside := earlierFile(l.of) + ".bad-" + strconv.FormatInt(time.Now().UnixMilli(), 10)
	data, werr := l.home.ReadFile(l.file.damaged, maxJournal)
	if werr == nil {
		werr = l.home.WriteFile(aside, data, true)
	}
	if werr == nil {
		werr = l.rewrite()
	}
	if werr != nil {
		return false, errors.Join(err, werr)
	}
	return true, fmt.Errorf("%w; it is kept as %s: who waited for an answer may get none", err, l.home.Path(aside))
}

// load reads the ledger; one that is not there is empty.
func (l *ledger) load() (err error) {
	l.file = ReadLedger(l.home, l.of)
	err, l.file.Err = l.file.Err, nil
	return err
}

// close keeps a model's late reply from being noted in what is another courier's file now.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.lines.Close()
}

// save appends what has changed, in one line; with sync that survives a loss of power. What
// can't be stored now, the next change stores. The caller holds mu.
func (l *ledger) save(sync bool, list ...Message) error {
	if l.lines.Size > l.bound || l.lines.Gone() {
		return l.rewrite()
	}
	var line bytes.Buffer
	if err := write(&line, Ledger{Messages: list, RecordedMS: l.file.RecordedMS}); err != nil {
		return err
	}
	return l.lines.Append(line.Bytes(), sync, l.all)
}

// rewrite replaces the journal by one line with all messages, and the ledger of an earlier
// version with it. The caller holds mu.
func (l *ledger) rewrite() error {
	l.bound = -1 // until it is done
	err := l.lines.Replace(l.all)
	if err == nil {
		step("journal")
		err = l.home.Remove(earlierFile(l.of))
	}
	if err == nil {
		l.bound = 2*l.lines.Size + growth
	}
	return err
}

func (l *ledger) all(w io.Writer) error { return write(w, l.file) }

func write(w io.Writer, l Ledger) error {
	return json.MarshalEncode(jsontext.NewEncoder(w, mangle), l)
}

// mangle replaces invalid UTF-8 rather than refuse it.
var mangle = jsontext.AllowInvalidUTF8(true)

// offer stores what is about to be offered. When it returns nil, that survives a loss
// of power.
func (l *ledger) offer(list []Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.file.Messages
	next := slices.Clone(before)
	var changed []Message
	for _, o := range list {
		i := l.file.index(o.ID, o.From)
		switch {
		case i < 0:
			i, next = len(next), append(next, o)
		case next[i].State == StateHeld, next[i].Start != o.Start: // earlier events are not about this offer
			next[i].become(StateOffered)
			next[i].Start, next[i].OfferedMS = o.Start, time.Now().UnixMilli()
		default:
			continue
		}
		changed = append(changed, next[i])
	}
	if len(changed) == 0 {
		return nil
	}
	l.file.Messages = next
	err := l.save(true, changed...)
	if err != nil {
		l.file.Messages = before
	}
	return err
}

// update changes messages, and stores those of which to returns true, and returns them.
func (l *ledger) update(sync bool, list []Message, to func(m *Message, o Message) bool) (changed []Message, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range list {
		if i := l.file.index(o.ID, o.From); i >= 0 && to(&l.file.Messages[i], o) {
			changed = append(changed, l.file.Messages[i])
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	return changed, l.save(sync, changed...)
}

// mistakable reports whether a turn has another sender's message with the same ID. Events
// and the conversation know IDs only, so this one waits until that one is settled.
func (l *ledger) mistakable(e envelope.Envelope) bool {
	return slices.ContainsFunc(l.seen(), func(m Message) bool { return m.ID == e.ID && m.From != e.From })
}

// sight records that the model has the message, and reports whether that is new: of one
// that is held, it had that before. What can't be stored the events tell.
func (l *ledger) sight(id string) bool {
	fresh, _ := l.update(false, []Message{{ID: id}}, func(m *Message, _ Message) bool { return m.become(StateSeen) })
	step("sight")
	return len(fresh) > 0
}

// interrupt records that the model may have lost all that it has, and returns that, with the
// numbers of the turns that took it.
func (l *ledger) interrupt() []Message {
	list := l.seen()
	for i := range list {
		list[i].State = StateInterrupted
	}
	l.update(true, list, func(m *Message, _ Message) bool { return m.become(StateInterrupted) })
	return list
}

// hold records that messages wait for their account, or that their senders know it.
func (l *ledger) hold(list []Message) error {
	_, err := l.update(true, list, func(m *Message, o Message) bool {
		m.become(StateHeld)
		m.Held = o.Held
		return true
	})
	return err
}

// late records that the end of the message's turn was missed.
func (l *ledger) late(id string) {
	l.update(false, []Message{{ID: id}}, func(m *Message, _ Message) bool { m.late = true; return false })
}

// took records which turn took a message.
func (l *ledger) took(id, turn string) {
	l.update(false, []Message{{ID: id}}, func(m *Message, _ Message) bool { m.turn = cmp.Or(turn, m.turn); return false })
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
	return l.file.find(e.ID, e.From)
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
	_, err := l.update(true, []Message{{ID: id}}, func(m *Message, _ Message) bool {
		if !m.Wants || l.closed {
			return false
		}
		m.Wants, m.Replied = false, true
		return true
	})
	return err
}

// settle removes finished messages. If a crash leaves one, it is settled again.
func (l *ledger) settle(recorded int64, done ...Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var over []Message
	for _, m := range done {
		if i := l.file.index(m.ID, m.From); i >= 0 {
			l.file.Messages = slices.Delete(slices.Clone(l.file.Messages), i, i+1)
			o := Message{ID: m.ID, From: m.From, State: StateAnswered}
			if m.State.Over() {
				o.State = m.State
			}
			over = append(over, o)
		}
	}
	if len(over) == 0 && recorded <= l.file.RecordedMS {
		return nil
	}
	l.file.RecordedMS = max(l.file.RecordedMS, recorded)
	return l.save(len(over) > 0, over...)
}

func (l *ledger) recorded() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.RecordedMS
}
