package bus

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"netsky/agent"
)

// Retract takes control mail back out of an inbox that nobody has claimed, for
// a `down` that has ended: what match accepts goes to delivered/ with a .why
// that says so. It returns how many it took back. A receiver that claims one
// at the same moment has it; it is never in both places.
func (b *Bus) Retract(ctx context.Context, id agent.ID, match func(Envelope) bool) (n int, err error) {
	inbox, err := b.openPlace(id, Inbox)
	if err != nil {
		return 0, err
	}
	defer unix.Close(inbox)
	delivered, err := openDir(b.home, placePath(id, Delivered), true)
	if err != nil {
		return 0, err
	}
	defer unix.Close(delivered)
	list, err := candidates(inbox, 0)
	if err != nil {
		return 0, fmt.Errorf("list the inbox of %s: %w", id, err)
	}
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		e, _, err := b.readEnvelope(inbox, c.name, form{})
		if err != nil || !e.Kind.Control() || !match(e) {
			continue
		}
		name, err := move(inbox, c.name, delivered)
		if gone(err) {
			continue
		}
		if err != nil {
			return n, err
		}
		n++
		if err := b.explain(delivered, name, "filed unread: taken back, for nobody had claimed it\n"); err != nil {
			return n, err
		}
	}
	return n, nil
}

// PoisonRetry puts a file from poison/ back into the inbox, as it is.
func (b *Bus) PoisonRetry(id agent.ID, name string) error {
	return b.fromPoison(id, name, func(from int) error {
		to, err := openDir(b.home, placePath(id, Inbox), true)
		if err != nil {
			return err
		}
		defer unix.Close(to)
		_, err = move(from, name, to)
		return err
	})
}

// PoisonDrop removes a file from poison/ for good.
func (b *Bus) PoisonDrop(id agent.ID, name string) error {
	return b.fromPoison(id, name, func(from int) error {
		err := sysUnlink(from, name)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
			err = unix.Unlinkat(from, name, unix.AT_REMOVEDIR)
		}
		if err != nil {
			return fmt.Errorf("remove %s: %w", Plain(name), err)
		}
		return nil
	})
}

func (b *Bus) fromPoison(id agent.ID, name string, do func(from int) error) error {
	if !isMailName(name) {
		return fmt.Errorf("%s: not the name of an envelope", Plain(name))
	}
	from, err := b.openPlace(id, Poison)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	if err := do(from); err != nil {
		return fmt.Errorf("poison of %s: %w", id, err)
	}
	if err := sysUnlink(from, whyName(name)); err != nil && err != unix.ENOENT {
		return fmt.Errorf("remove the reason of %s: %w", Plain(name), err)
	}
	return nil
}

// Prune removes from delivered/ and sent/ what has lain there longer than keep
// and is on record. Only the daemon calls it. It returns how many files it
// removed; a crash leaves the rest for the next time.
func (b *Bus) Prune(ctx context.Context, recorded func(envelopeID string) bool) (n int, err error) {
	boxes, err := b.Mailboxes()
	if err != nil {
		return 0, err
	}
	for _, id := range boxes {
		for _, p := range []Place{Delivered, Sent} {
			removed, err := b.prunePlace(ctx, id, p, recorded)
			n += removed
			if err != nil && !errors.Is(err, ErrNoMailbox) {
				return n, fmt.Errorf("prune %s of %s: %w", p, id, err)
			}
		}
	}
	return n, nil
}

func (b *Bus) prunePlace(ctx context.Context, id agent.ID, p Place, recorded func(string) bool) (n int, err error) {
	fd, err := b.openPlace(id, p)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	cutoff := b.now().Add(-b.keep).UnixNano()
	var old []string
	err = sysNames(fd, func(name string) bool {
		ns, _, ours := nameParts(name)
		if isMail(name) && (!ours || ns < cutoff) {
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
		// The change time says when the file was moved here.
		st, err := sysLstat(fd, name)
		if err != nil || st.Ctim.Nano() >= cutoff {
			continue
		}
		e, _, err := b.readEnvelope(fd, name, f)
		if err != nil || !recorded(e.ID) {
			continue
		}
		if err := sysUnlink(fd, name); err != nil && err != unix.ENOENT {
			return n, err
		}
		n++
		if err := sysUnlink(fd, whyName(name)); err != nil && err != unix.ENOENT {
			return n, err
		}
	}
	return n, nil
}
