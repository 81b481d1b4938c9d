package bus

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
	"netsky/internal/advice"
)

// Defaults for Options.
const (
	DefaultMaxBytes = 1 << 20
	DefaultKeep     = 7 * 24 * time.Hour
)

// Options are the limits of a bus. The zero value means the defaults.
type Options struct {
	MaxBytes int64            // the largest envelope on disk, in bytes
	Keep     time.Duration    // how long IDs are remembered and delivered mail is kept
	Now      func() time.Time // the clock
}

// A Bus is the mailboxes of one home. It holds no connection and no lock and
// needs no closing; it is safe for concurrent use. Its parts know of each other
// only what they embed.
type Bus struct {
	*boxes
	memory
	answers
	poisoned
	sender
	upkeep
	reports
	hub      mailbox.Hub
	refusals perHost
}

// Errors that callers test for.
var (
	ErrNoMailbox = advice.With(errors.New("no mailbox"),
		"`netsky status` lists the agents; `netsky agent N` starts one, and gives it a mailbox")
	ErrNotAllowed = advice.With(errors.New("is not allowed to write to"),
		"clones write to agent0 and to each other; the owner and agentinfinity they only answer")
	ErrBrake = mailbox.ErrBrake
	ErrHops  = mailbox.ErrHops // a limit that waiting does not lift; also matches ErrBrake
)

// New returns the bus of a home. It touches nothing on disk.
func New(dir home.Dir, o Options) *Bus {
	if o.Now == nil {
		o.Now = time.Now
	}
	x := &boxes{home: dir, maxBytes: cmp.Or(max(o.MaxBytes, 0), DefaultMaxBytes), keep: cmp.Or(max(o.Keep, 0), DefaultKeep), now: o.Now}
	b := &Bus{boxes: x, memory: memory{x}, answers: answers{x, x.now()}, poisoned: poisoned{x}, upkeep: upkeep{boxes: x}}
	b.sender = sender{memory: b.memory, filer: &filer{names: envelope.Namer{Now: x.now}}}
	b.refusals.every, b.refusals.burst = refusalEvery, refusalBurst
	b.reports = reports{limit: perHost{every: reportEvery, burst: reportBurst}, boxes: x, had: b.memory, post: &b.sender, upkeep: &b.upkeep}
	b.hub.Open = func() (*fsnotify.Watcher, error) { return fsnotify.NewBufferedWatcher(1024) }
	b.hub.Boxes, b.hub.Above = b.mailboxDirs, dir.Path(home.Channels)
	return b
}

// A Place is a directory of a mailbox.
type Place string

const (
	Inbox     Place = "inbox"     // waits to be taken
	Claimed   Place = "claimed"   // taken by the receiver, not yet confirmed
	Delivered Place = "delivered" // confirmed; or filed unread, and a .why says so
	Poison    Place = "poison"    // not a valid envelope, with a .why beside it
	Outbox    Place = "outbox"    // written by an agent to be sent
	Sent      Place = "sent"      // sent by the router
)

// places are in the order in which files move through them. A reader that follows it finds
// a file that moves meanwhile at its new place or at both.
var places = []Place{Inbox, Claimed, Delivered, Poison, Outbox, Sent}

// Places returns all places of a mailbox, in the order in which files move through them: a
// reader that follows it misses no file that moves meanwhile.
func Places() []Place { return slices.Clone(places) }

// Pending returns the first of Places: where a message is until it is delivered.
func Pending() []Place { return Places()[:2] }

// Arrived returns the first of Places: where a received message is, delivered or not.
func Arrived() []Place { return Places()[:3] }

func placePath(id agent.ID, p Place) string { return home.Mailbox(id) + "/" + string(p) }

// The boxes of a home: they are made, opened, listed and read, without a lock and without taking anything.
type boxes struct {
	home     home.Dir
	maxBytes int64
	keep     time.Duration
	now      func() time.Time
}

// Now returns the time by the clock of this bus.
func (b *boxes) Now() time.Time { return b.now() }

// Make creates the mailbox of an address, or its missing parts. When it returns, the
// mailbox survives a power loss.
func (b *boxes) Make(id agent.ID) error {
	if _, err := agent.ParseAddress(string(id)); err != nil {
		return err
	}
	for _, p := range places {
		fd, err := mailbox.MakeDir(b.home, placePath(id, p))
		if err != nil {
			return fmt.Errorf("make the mailbox of %s: %w", id, err)
		}
		unix.Close(fd)
	}
	return nil
}

// Exists reports whether the address has a mailbox.
func (b *boxes) Exists(id agent.ID) bool {
	fd, err := b.openPlace(id, Inbox)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// Used reports whether netsky has used the address: its mailbox is whole, or messages were
// filed there. A directory with some of a mailbox's names may be a person's.
func (b *boxes) Used(id agent.ID) bool {
	if _, err := os.Lstat(b.home.Path(home.Mailbox(id), mailbox.SeenName)); err == nil {
		return true
	}
	for _, p := range places {
		fd, err := b.openPlace(id, p)
		if err != nil {
			return !errors.Is(err, ErrNoMailbox)
		}
		unix.Close(fd)
	}
	return true
}

// openPlace opens a directory of a mailbox; the caller closes it. The error matches
// ErrNoMailbox if there is none.
func (b *boxes) openPlace(id agent.ID, p Place) (int, error) {
	if _, err := agent.ParseAddress(string(id)); err != nil {
		return -1, err
	}
	fd, err := mailbox.OpenDir(b.home, placePath(id, p))
	if errors.Is(err, fs.ErrNotExist) {
		if host := id.Host(); host != "" && !b.linked(host) {
			return -1, noLink(id)
		}
		return -1, fmt.Errorf("%s: %w at %s", id, ErrNoMailbox, b.home.Path(home.Mailbox(id)))
	}
	return fd, err
}

// Mailboxes lists the addresses of this home that have a mailbox, agents first.
func (b *boxes) Mailboxes() ([]agent.ID, error) { return b.below(home.Channels, "") }

// All lists the addresses that have a mailbox: those of this home, and those on other hosts
// for which there was mail.
func (b *boxes) All() ([]agent.ID, error) {
	list, err := b.Mailboxes()
	hosts, lerr := b.Linked()
	err = errors.Join(err, lerr)
	for _, host := range hosts {
		at, herr := b.below(home.Links+"/"+host, host)
		list, err = append(list, at...), errors.Join(err, herr)
	}
	return list, err
}

// below lists the mailboxes in a directory, which is that of a host unless host is "".
func (b *boxes) below(dir, host string) ([]agent.ID, error) {
	var list []agent.ID
	err := b.names(dir, func(name string) {
		id, err := agent.Parse(name)
		if err != nil {
			return
		}
		if host != "" {
			id = id.At(host)
		}
		list = append(list, id)
	})
	if err != nil {
		return nil, fmt.Errorf("list the mailboxes: %w", err)
	}
	whole := list[:0]
	for _, id := range list {
		box, err := b.openPlace(id, Inbox)
		switch {
		case err == nil:
			unix.Close(box)
			whole = append(whole, id)
		case errors.Is(err, ErrNoMailbox) || errors.Is(err, home.ErrLink) || errors.Is(err, unix.ENOTDIR):
		default:
			return nil, fmt.Errorf("list the mailboxes: %w", err)
		}
	}
	slices.SortFunc(whole, agent.Compare)
	return whole, nil
}

// names passes the names in a directory of the home to fn; without the directory there are none.
func (b *boxes) names(dir string, fn func(string)) error {
	fd, err := mailbox.OpenDir(b.home, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return mailbox.Names(fd, func(name string) bool {
		fn(name)
		return true
	})
}
