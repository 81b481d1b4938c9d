package cli

import (
	"errors"
	"strings"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/spawn"
)

// A showing remembers which of the owner's mail one run of a verb has shown.
type showing struct {
	l     *spawn.Launcher
	shown map[string]bool // by file name, of all time
	fresh []string        // shown by this run and not filed yet
	lines []string        // of those that are not yet written down
	wrote time.Time
}

func newShowing(l *spawn.Launcher) (*showing, error) {
	shown, err := l.Home.ShownMail()
	return &showing{l: l, shown: shown}, err
}

// markEvery bounds what is shown once more after a crash: what was shown in so
// much time.
const markEvery = 50 * time.Millisecond

// mark remembers files as shown.
func (r *showing) mark(names ...string) error {
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

func (r *showing) write() error {
	err := r.l.Home.MarkShown(r.lines...)
	r.lines, r.wrote = nil, time.Now()
	return err
}

// file files what was shown where it lies in the inbox still. Where the daemon
// runs it holds the mailbox and has filed it, or is about to.
func (r *showing) file() error {
	if len(r.fresh) == 0 {
		return nil
	}
	if err := r.write(); err != nil {
		return err
	}
	_, err := r.l.Bus.File(agent.Owner, r.fresh)
	if err != nil && !errors.Is(err, home.ErrLocked) {
		return err
	}
	r.fresh = nil
	return r.trim()
}

// maxRead is from how many names on the list is cut to the mail that is still
// on file, when that is half of it or less.
const maxRead = 10_000

func (r *showing) trim() error {
	if len(r.shown) < maxRead {
		return nil
	}
	here, err := r.l.Bus.Mail(agent.Owner, true)
	if err != nil {
		return err
	}
	var keep strings.Builder
	n := 0
	for _, name := range here {
		if r.shown[name] {
			keep.WriteString(name + "\n")
			n++
		}
	}
	if 2*n > len(r.shown) {
		return nil
	}
	return r.l.Home.WriteFile(home.OwnerRead, []byte(keep.String()), true)
}

// markName is markRead of an envelope that somebody else files.
func markName(l *spawn.Launcher, name string) error {
	r, err := newShowing(l)
	if err != nil {
		return err
	}
	if err := r.mark(name); err != nil {
		return err
	}
	return r.write()
}

// markRead remembers an envelope as shown, and files it.
func (a *app) markRead(l *spawn.Launcher, e bus.Entry) error {
	r, err := newShowing(l)
	if err != nil {
		return err
	}
	if err := r.mark(e.Name); err != nil {
		return err
	}
	return r.file()
}

// unread counts the owner's envelopes that were not shown yet, by name alone.
func (a *app) unread(l *spawn.Launcher) (int, error) {
	names, err := l.Bus.Unread()
	return len(names), err
}

// A mailed is one message of the owner's, with the files that are copies of it.
type mailed struct {
	bus.Entry
	copies []string
}

func (m mailed) names() []string { return append([]string{m.Name}, m.copies...) }

// letters are the owner's readable messages, the oldest first: all of them, also
// what was filed unread, or those that were not shown yet, each once. Then
// copies are files in the inbox that will be filed unread, as what they say has
// been filed before.
func (a *app) letters(l *spawn.Launcher, all bool) (list []mailed, copies []string, err error) {
	names, err := l.Bus.Unread()
	if all {
		if names, err = l.Bus.Mail(agent.Owner, true); errors.Is(err, bus.ErrNoMailbox) {
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
	had := make(map[key]int)
	entries, err := l.Bus.FindAll(agent.Owner, names) // without those that were pruned just now
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !e.IsMessage() {
			continue
		}
		k := key{e.Envelope.From, e.Envelope.ID}
		if i, again := had[k]; again && !all {
			list[i].copies = append(list[i].copies, e.Name)
			continue
		}
		had[k] = len(list)
		list = append(list, mailed{Entry: e})
	}
	if all {
		return list, nil, nil
	}
	return withoutCopies(l.Bus, list)
}

func withoutCopies(b *bus.Bus, list []mailed) (kept []mailed, copies []string, err error) {
	var waiting []envelope.Envelope
	var at []int
	for i, m := range list {
		if m.Place == bus.Inbox {
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
			copies = append(copies, m.names()...)
		} else {
			kept = append(kept, m)
		}
	}
	return kept, copies, nil
}
