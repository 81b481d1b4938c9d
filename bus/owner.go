// This file is the owner's mail for showing it: which messages are new, each once,
// and which have been shown. What a crash interrupts is shown once more.

package bus

import (
	"errors"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
)

// A Showing records which of the owner's mail one run of a verb has shown.
type Showing struct {
	home  home.Dir
	bus   *Bus
	shown map[string]bool // by file name, of all time
	fresh []string        // shown by this run and not filed yet
	lines []string        // of those not yet saved
	wrote time.Time
}

// NewShowing starts a run.
func NewShowing(h home.Dir, b *Bus) (*Showing, error) {
	shown, settled, err := new(home.Shown).Names(h)
	for name := range settled {
		delete(shown, name)
	}
	return &Showing{home: h, bus: b, shown: shown}, err
}

// markEvery limits what is shown once more after a crash: what was shown in that time.
const markEvery = 50 * time.Millisecond

// Mark records files as shown.
func (r *Showing) Mark(names ...string) error {
	for _, name := range names {
		if !r.shown[name] {
			r.shown[name] = true
			r.lines = append(r.lines, name)
		}
	}
	r.fresh = append(r.fresh, names...)
	if time.Since(r.wrote) < markEvery {
		return nil
	}
	return r.write()
}

func (r *Showing) write() error {
	err := home.ShownMail(r.home).Mark(r.lines...)
	r.lines, r.wrote = nil, time.Now()
	return err
}

// File files the messages shown that are still in the inbox. If the daemon runs, it
// holds the mailbox and has filed them, or is about to.
func (r *Showing) File() error {
	if len(r.fresh) == 0 {
		return nil
	}
	if err := r.write(); err != nil {
		return err
	}
	_, err := r.bus.File(agent.Owner, r.fresh)
	if err != nil && !errors.Is(err, home.ErrLocked) {
		return err
	}
	r.fresh = nil
	return nil
}

// A Letter is one message of the owner's, with the files that are copies of it.
type Letter struct {
	Entry
	copies []string
	late   bool // it expired before anybody read it, and is not filed yet
}

// Names returns the files that are read with it: none of a message that has expired, which
// whoever takes the mail files unread.
func (m Letter) Names() []string {
	if m.late {
		return nil
	}
	return append([]string{m.Name}, m.copies...)
}

// Letters returns the owner's readable messages, the oldest first, each once: all of
// them, including those filed unread, or only those not shown yet, also if they have settled
// by themselves, which their Why says. In the latter case,
// copies are files in the inbox that will be filed unread, because the same message has
// been filed before; what has expired is left out.
func Letters(b *Bus, all bool) (list []Letter, copies []string, err error) {
	names, settled, err := b.ToShow()
	if all {
		if names, err = b.Mail(agent.Owner, true); errors.Is(err, ErrNoMailbox) {
			return nil, nil, nil
		}
	}
	if err != nil || len(names) == 0 {
		return nil, nil, err
	}
	type key struct {
		from agent.ID
		id   string
	}
	had, now := make(map[key]int), time.Now()
	entries, err := b.FindAll(agent.Owner, names) // without those that were just pruned
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !e.IsMessage() {
			continue
		}
		late := e.Place == Inbox && e.Envelope.Expired(now)
		if late && !all {
			continue
		}
		if late {
			e.Why = "not read before it expired at " + agent.Clock(e.Envelope.Expires, now)
		}
		if settled[e.Name] {
			e.Why = "this has settled by itself: nothing is left to do about it"
		}
		k := key{e.Envelope.From, e.Envelope.ID}
		if i, again := had[k]; again && !all {
			list[i].copies = append(list[i].copies, e.Name)
			continue
		}
		had[k] = len(list)
		list = append(list, Letter{Entry: e, late: late})
	}
	if all {
		return list, nil, nil
	}
	return withoutCopies(b, list)
}

func withoutCopies(b *Bus, list []Letter) (kept []Letter, copies []string, err error) {
	var waiting []envelope.Envelope
	var at []int
	for i, m := range list {
		if m.Place == Inbox {
			waiting, at = append(waiting, m.Envelope), append(at, i)
		}
	}
	known, err := b.Remembered(agent.Owner, waiting)
	if err != nil {
		return nil, nil, err
	}
	drop := make(map[int]bool)
	for i, is := range known {
		if is {
			drop[at[i]] = true
		}
	}
	for i, m := range list {
		if drop[i] {
			copies = append(copies, m.Names()...)
		} else {
			kept = append(kept, m)
		}
	}
	return kept, copies, nil
}
