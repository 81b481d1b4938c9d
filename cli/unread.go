package cli

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/bus"
	"netsky/spawn"
)

// markRead remembers an envelope as shown.
func (a *app) markRead(ctx context.Context, l *spawn.Launcher, e bus.Entry) error {
	if err := markName(l, e.Name); err != nil {
		return err
	}
	return fileOwn(ctx, l.Bus, e.Envelope.ID)
}

// markName is markRead of an envelope that somebody else files.
func markName(l *spawn.Launcher, name string) error {
	read, err := l.Home.ShownMail()
	if err != nil || read[name] {
		return err
	}
	return appendRead(l, name, len(read))
}

// maxRead is from how many names on the list is cut to the mail that is still
// on file.
const maxRead = 10_000

func appendRead(l *spawn.Launcher, name string, have int) error {
	if have >= maxRead {
		here, err := l.Bus.Names(agent.Owner, bus.Delivered)
		if err != nil {
			return err
		}
		read, err := l.Home.ShownMail()
		if err != nil {
			return err
		}
		here = slices.DeleteFunc(here, func(n string) bool { return !read[n] })
		return l.Home.WriteFile(agent.OwnerRead, []byte(strings.Join(append(here, name, ""), "\n")), true)
	}
	f, err := l.Home.OpenAppend(agent.OwnerRead)
	if err != nil {
		return err
	}
	_, err = f.WriteString(name + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// fileOwn files an envelope of the owner's that has been shown. Where the daemon
// runs it holds the mailbox and has filed it, or is about to.
func fileOwn(ctx context.Context, b *bus.Bus, id string) error {
	_, err := b.Drain(ctx, agent.Owner, 0, func(e bus.Envelope) error {
		if e.ID == id {
			return nil
		}
		return bus.ErrLeave
	})
	if errors.Is(err, agent.ErrLocked) {
		return nil
	}
	return err
}

// filing are the places of a message that came, in the order in which it moves
// through them: looked at so, none slips by on its way.
func filing() []bus.Place { return []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} }

// unread counts the owner's envelopes that were not shown yet, by name alone.
func (a *app) unread(l *spawn.Launcher) (int, error) {
	read, err := l.Home.ShownMail()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range filing() {
		names, err := l.Bus.Names(agent.Owner, p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, bus.ErrNoMailbox) {
			return 0, err
		}
		for _, name := range names {
			if !read[name] {
				n++
				read[name] = true // it may be seen once more, further on
			}
		}
	}
	return n, nil
}
