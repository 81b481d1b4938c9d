package bus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
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

// An upkeep knows which of the owner's mail has been shown, and removes what nobody needs any more.
type upkeep struct {
	*boxes
	shown home.Shown
}

// Prune removes files from delivered/ and sent/ that are older than keep and recorded; of
// the owner's mail only what the owner has been shown. Only the daemon calls it. It
// returns how many files it removed; a crash leaves the rest for the next time.
func (u *upkeep) Prune(ctx context.Context, recorded func(envelopeID string) bool) (n int, err error) {
	shown, settled, err := u.shown.Names(u.home)
	if err != nil {
		return 0, err
	}
	boxes, err := u.All()
	if err != nil {
		return 0, err
	}
	for _, id := range boxes {
		for _, p := range []Place{Delivered, Sent} {
			removed, perr := u.prunePlace(ctx, id, p, func(name, envelopeID string) bool {
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

func (u *upkeep) prunePlace(ctx context.Context, id agent.ID, p Place, may func(name, envelopeID string) bool) (n int, err error) {
	fd, err := u.openPlace(id, p)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	cutoff := u.now().Add(-u.keep).UnixNano()
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
	f := form{u.boxes, id, p}
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
		e, _, err := u.readEnvelope(fd, name, f)
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

// Unread lists the names of the owner's mail that has not been shown yet, oldest first,
// without copies and expired mail, and without what was settled by itself. It opens no
// envelope, so some may be no message. Without a mailbox there is none.
func (u *upkeep) Unread() ([]string, error) {
	names, settled, err := u.ToShow()
	return slices.DeleteFunc(names, func(name string) bool { return settled[name] }), err
}

// ToShow is Unread with what was settled before it was shown, and which that is.
func (u *upkeep) ToShow() (names []string, settled map[string]bool, err error) {
	list, err := u.candidates(agent.Owner, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoMailbox) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	shown, settled, err := u.shown.Names(u.home)
	if err != nil {
		return nil, nil, err
	}
	return oldestFirst(slices.DeleteFunc(list, func(c candidate) bool { return shown[c.name] && !settled[c.name] })), settled, nil
}
