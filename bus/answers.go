package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/internal/proc"
)

// answers finds the answers to messages in the mailboxes of those who asked.
type answers struct {
	*boxes
	born time.Time // by the clock of the boxes, when their Bus was made
}

// Answered reports whether an agent has answered a message, which others that got one with
// the same ID may have done too. A sender without a mailbox has no answer.
func (a answers) Answered(ctx context.Context, by agent.ID, q envelope.Envelope) (bool, error) {
	_, found, err := a.AnswerTo(ctx, by, q)
	return found, err
}

// AnswerTo returns what Answered has found.
func (a answers) AnswerTo(ctx context.Context, by agent.ID, q envelope.Envelope) (e Entry, found bool, err error) {
	// If the clock was set back, the answer may seem older than the question.
	if now := a.now(); q.Time.Before(a.born) || proc.SetBack(a.born, now) {
		q.Time = q.Time.Add(-time.Minute)
	} else if q.Time.After(now) {
		q.Time = time.Time{}
	}
	e, found, err = a.FindAnswer(ctx, by, q.From, q.ID, q.Time)
	if errors.Is(err, ErrNoMailbox) {
		return Entry{}, false, nil
	}
	return e, found, err
}

// FindAnswer looks in a mailbox for the answer by that agent, or by any if it is "", to the
// envelope inReplyTo: the newest of any kind but ack, cancel and the approvals, a waiting one
// before a delivered one. It opens no file from more than a second before the question was
// sent, and lists no place that has not changed since. It takes nothing and needs no lock.
func (a answers) FindAnswer(ctx context.Context, by, mailbox agent.ID, inReplyTo string, sent time.Time) (e Entry, found bool, err error) {
	for _, p := range places[:3] {
		fd, err := a.openPlace(mailbox, p)
		if err != nil {
			return Entry{}, false, err
		}
		e, found, err = a.findAnswerIn(ctx, fd, by, mailbox, p, inReplyTo, sent)
		unix.Close(fd)
		if found || err != nil {
			return e, found, err
		}
	}
	return Entry{}, false, nil
}

func (a answers) findAnswerIn(ctx context.Context, fd int, by, id agent.ID, p Place, inReplyTo string, sent time.Time) (Entry, bool, error) {
	oldest := int64(0)
	if !sent.IsZero() {
		oldest = sent.Add(-time.Second).UnixNano()
		if st, err := mailbox.Fstat(fd); err == nil && unchanged(st.Mtim.Nano(), sent) {
			return Entry{}, false, nil
		}
	}
	list, err := candidates(fd, oldest)
	if err != nil {
		return Entry{}, false, fmt.Errorf("list %s of %s: %w", p, id, err)
	}
	for _, c := range slices.Backward(list) {
		if err := ctx.Err(); err != nil {
			return Entry{}, false, err
		}
		if _, from, ours := envelope.NameParts(c.name); ours && by != "" && from != string(by) {
			continue
		}
		e, err := a.entry(fd, id, p, c.name)
		if err != nil || e.Err != nil || e.Envelope.InReplyTo != inReplyTo || by != "" && e.Envelope.From != by {
			continue
		}
		switch e.Envelope.Kind {
		case envelope.KindAck, envelope.KindHeld, envelope.KindNotice, envelope.KindCancel, envelope.KindApproval, envelope.KindApprovalAnswer:
			continue
		}
		return e, true, nil
	}
	return Entry{}, false, nil
}

// unchanged reports whether a directory with that modification time, in nanoseconds, has
// certainly not changed since. The kernel's time for files is up to 10 ms behind, and some
// file systems store whole seconds only, or even ones.
func unchanged(mtime int64, since time.Time) bool {
	late := 2 * time.Second
	if mtime%int64(time.Second) != 0 {
		late = 50 * time.Millisecond
	}
	return mtime < since.Add(-late).UnixNano()
}
