package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// Retract takes unclaimed mail back out of an inbox: what match accepts moves to delivered/ with a .why that says so. It returns how many it
// removed. If a receiver claims one at the same moment, the receiver has it; it is never
// in both places.
func (b *Bus) Retract(ctx context.Context, id agent.ID, match func(envelope.Envelope) bool) (n int, err error) {
	inbox, list, err := b.openListed(id, Inbox)
	if err != nil {
		return 0, err
	}
	defer unix.Close(inbox)
	delivered, err := mailbox.MakeDir(b.home, placePath(id, Delivered))
	if err != nil {
		return 0, err
	}
	defer unix.Close(delivered)
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		e, _, err := b.readEnvelope(inbox, c.name, form{})
		if err != nil || !match(e) {
			continue
		}
		var unsaid error
		_, err = b.file(inbox, c.name, delivered, mailbox.Why{Text: "filed unread: taken back before it was claimed", Reason: mailbox.Retracted}, func(_ string, err error) { unsaid = err })
		if mailbox.Gone(err) {
			continue
		}
		if err != nil {
			return n, err
		}
		n++
		if unsaid != nil {
			return n, unsaid
		}
	}
	return n, nil
}

// PoisonRetry moves a file from poison/ back to where it was found, its mailbox's inbox or
// outbox, and returns which. A file that would be poisoned again stays, and the error
// lists everything that is wrong with it.
func (b *Bus) PoisonRetry(id agent.ID, name string) (place Place, err error) {
	err = b.fromPoison(id, name, func(from int) (err error) {
		if place, err = b.retriable(from, id, name); err != nil {
			return err
		}
		to, err := mailbox.MakeDir(b.home, placePath(id, place))
		if err != nil {
			return err
		}
		defer unix.Close(to)
		_, err = move(from, name, to)
		return err
	})
	return place, err
}

// PoisonNow reports whether a file in poison/ was changed after it was put there, and what
// is wrong with it now: nil if it is valid, and goes back where it was found.
func (b *Bus) PoisonNow(id agent.ID, name string) (changed bool, err error) {
	from, err := b.openPlace(id, Poison)
	if err != nil {
		return false, err
	}
	defer unix.Close(from)
	st, err := mailbox.Lstat(from, name)
	origin := readWhy(from, name).Origin
	if err != nil || origin.Place == "" || mailbox.MarkOf(st).Same(origin.Mark) {
		return false, err
	}
	_, err = b.retriable(from, id, name)
	return true, err
}

// retriable returns where a file in poison/ belongs, or why it would be poisoned again.
func (b *Bus) retriable(poison int, id agent.ID, name string) (Place, error) {
	data, _, err := mailbox.ReadFile(poison, name, b.maxBytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w", envelope.Plain(name), err)
	}
	w := readWhy(poison, name)
	place := Place(w.Origin.Place)
	if place == "" {
		place = b.guessOrigin(id, w.Text, data)
	}
	f := form{b, id, place}
	list := f.faults(data)
	if len(list) == 0 && place == Outbox {
		if e, err := f.parse(data); err == nil {
			list = b.unsendable(e)
		}
	}
	for i, err := range list {
		list[i] = fmt.Errorf("%s: %w", envelope.Plain(name), err)
	}
	return place, errors.Join(list...)
}

// guessOrigin is for files poisoned before the .why recorded where they were found.
func (b *Bus) guessOrigin(id agent.ID, why string, data []byte) Place {
	if strings.Contains(why, "but this is the outbox of") {
		return Outbox
	}
	e, _ := envelope.Decode(data, func(error) error { return nil })
	if e.To != "" && e.To != id {
		return Outbox
	}
	return Inbox
}

// unsendable lists the reasons for which the router would never send an envelope.
func (b *Bus) unsendable(e envelope.Envelope) (list []error) {
	if err := allowed(e); err != nil {
		list = append(list, err)
	}
	if inbox, err := b.openPlace(e.To, Inbox); err != nil {
		list = append(list, err)
	} else {
		unix.Close(inbox)
	}
	if e.Hops > mailbox.MaxHops {
		list = append(list, envelope.Invalidf("hops: %d exceeds the limit of %d", e.Hops, mailbox.MaxHops))
	}
	return list
}

// PoisonDrop removes a file from poison/ permanently.
func (b *Bus) PoisonDrop(id agent.ID, name string) error {
	return b.fromPoison(id, name, func(from int) error {
		err := mailbox.Unlink(from, name)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
			err = unix.Unlinkat(from, name, unix.AT_REMOVEDIR)
		}
		if err != nil {
			return fmt.Errorf("remove %s: %w", envelope.Plain(name), err)
		}
		return nil
	})
}

func (b *Bus) fromPoison(id agent.ID, name string, do func(from int) error) error {
	if !envelope.IsFileName(name) {
		return fmt.Errorf("%s: not an envelope's file name", envelope.Plain(name))
	}
	from, err := b.openPlace(id, Poison)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	if err := do(from); err != nil {
		return eachf("poison of "+string(id), err)
	}
	if err := mailbox.Unlink(from, envelope.WhyName(name)); err != nil && err != unix.ENOENT {
		return fmt.Errorf("remove the .why of %s: %w", envelope.Plain(name), err)
	}
	return nil
}

// eachf prefixes each of the joined errors with what it is about.
func eachf(about string, err error) error {
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = slices.Clone(joined.Unwrap())
	}
	for i, err := range list {
		list[i] = fmt.Errorf("%s: %w", about, err)
	}
	return errors.Join(list...)
}

// Prune removes files from delivered/ and sent/ that are older than keep and recorded; of
// the owner's mail only what the owner has been shown. Only the daemon calls it. It
// returns how many files it removed; a crash leaves the rest for the next time.
func (b *Bus) Prune(ctx context.Context, recorded func(envelopeID string) bool) (n int, err error) {
	shown, settled, err := b.shown.Names(b.home)
	if err != nil {
		return 0, err
	}
	boxes, err := b.Mailboxes()
	if err != nil {
		return 0, err
	}
	for _, id := range boxes {
		for _, p := range []Place{Delivered, Sent} {
			removed, perr := b.prunePlace(ctx, id, p, func(name, envelopeID string) bool {
				return (id != agent.Owner || p != Delivered || shown[name] && !settled[name]) && recorded(envelopeID)
			})
			n += removed
			if perr != nil && !errors.Is(perr, ErrNoMailbox) {
				err = errors.Join(err, fmt.Errorf("prune %s of %s: %w", p, id, perr))
			}
		}
	}
	return n, errors.Join(err, ctx.Err())
}

func (b *Bus) prunePlace(ctx context.Context, id agent.ID, p Place, may func(name, envelopeID string) bool) (n int, err error) {
	fd, err := b.openPlace(id, p)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	cutoff := b.now().Add(-b.keep).UnixNano()
	var old []string
	err = mailbox.Names(fd, func(name string) bool {
		ns, _, ours := envelope.NameParts(name)
		if envelope.IsFile(name) && (!ours || ns < cutoff) {
			old = append(old, name)
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	f := form{b, id, p}
	if p == Sent {
		f.place = Outbox
	}
	for _, name := range old {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		// The change time is when the file was moved here.
		st, err := mailbox.Lstat(fd, name)
		if err != nil || st.Ctim.Nano() >= cutoff {
			continue
		}
		e, _, err := b.readEnvelope(fd, name, f)
		if err != nil || !may(name, e.ID) {
			continue
		}
		if err := mailbox.Unlink(fd, name); err != nil && err != unix.ENOENT {
			return n, err
		}
		n++
		if err := mailbox.Unlink(fd, envelope.WhyName(name)); err != nil && err != unix.ENOENT {
			return n, err
		}
	}
	return n, nil
}
