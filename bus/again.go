package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// ErrUsed reports an ID that the sender has already used for another message, or for one
// that was filed unread: sending under it has no effect.
var ErrUsed = errors.New("was used already")

// SendOnce is Send for a sender that chose the ID: again reports that the recipient has
// already taken this very message, so that nothing was sent. The Receipt then has the
// first copy's file, if it is still there. The error matches ErrUsed if the recipient has
// a message with another text under that ID, or filed it unread.
func (b *Bus) SendOnce(ctx context.Context, e envelope.Envelope) (r Receipt, again bool, err error) {
	if e.Time.IsZero() {
		e.Time = b.now()
	}
	if e.ID != "" && e.Validate() == nil && allowed(e) == nil { // else Send says what is wrong
		r.ID = e.ID
		if r.File, again, err = b.taken(ctx, e); again || err != nil {
			return r, again, err
		}
	}
	r, err = b.Send(ctx, e)
	return r, false, err
}

// taken reports whether the recipient has taken the message, and returns the file that
// holds it. One that only waits may still be lost in a power cut, so it is sent again.
func (b *Bus) taken(ctx context.Context, e envelope.Envelope) (file string, taken bool, err error) {
	m, err := mailbox.OpenMemory(b.home, e.To, b.forgotten())
	if err != nil {
		return "", false, err
	}
	defer m.Close()
	if _, taken, err = m.Find(envelope.Envelope{ID: e.ID, From: e.From}); err != nil {
		return "", false, err
	}
	list, err := b.Received(ctx, e.To, e.ID)
	if err != nil {
		return "", false, err
	}
	if slices.ContainsFunc(list, func(x Entry) bool { return x.Reason == mailbox.Duplicate }) { // another copy than the one that was taken
		if list, err = b.locateIn(ctx, e.To, Delivered, e.ID); err != nil {
			return "", false, err
		}
	}
	for _, x := range list {
		switch {
		case x.Reason == mailbox.Duplicate:
		case x.Envelope.ID != e.ID || x.Envelope.From != e.From || x.Place == Delivered && !taken: // the last is forgotten
		case x.Envelope.Text != e.Text:
			return "", false, fmt.Errorf("id: %s %w for another message to %s; nothing was sent", e.ID, ErrUsed, e.To)
		case x.Why != "":
			return "", false, fmt.Errorf("id: %s %w for a message to %s that was %s; nothing was sent", e.ID, ErrUsed, e.To, x.Fact())
		default:
			file = x.Name
		}
	}
	return file, taken, nil
}
