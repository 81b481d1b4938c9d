// This file finds the one message that a person or a model means by an id or the
// beginning of one. It only reads.

package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/advice"
)

// ErrNoMessage reports that an address has received no message with that ID.
var ErrNoMessage = errors.New("no message with that id has come to")

// An AmbiguousError reports an ID that names several messages: that of several
// senders, or the beginning of several IDs.
type AmbiguousError struct {
	ID      string
	Senders []agent.ID // who each gave a message that ID
	Begin   int        // how many IDs begin so, at most MostReceived
}

func (e *AmbiguousError) Error() string {
	if len(e.Senders) > 0 {
		var senders []string
		for _, id := range e.Senders {
			senders = append(senders, string(id))
		}
		return fmt.Sprintf("%s: %s each sent a message with that id; netsky channel send AGENT TEXT --kind reply --in-reply-to %[1]s answers one of them",
			e.ID, strings.Join(senders, " and "))
	}
	more := ""
	if e.Begin == MostReceived {
		more = " or more"
	}
	return fmt.Sprintf("%s: %d%s messages begin so; give more of the id", e.ID, e.Begin, more)
}

// FindOne returns the one message that an address has received under the ID; control messages,
// which nobody could answer, do not count. Two senders may have given theirs the same ID:
// then it is that of from, if there is such. The error matches ErrNoMessage or is an
// [AmbiguousError].
func FindOne(ctx context.Context, b *Bus, box agent.ID, id string, from agent.ID) (envelope.Envelope, error) {
	list, err := b.Received(ctx, box, id)
	if err != nil {
		return envelope.Envelope{}, err
	}
	list = slices.DeleteFunc(list, func(e Entry) bool { return e.Envelope.Kind.Control() })
	if i := slices.IndexFunc(list, func(e Entry) bool { return e.Envelope.ID == id && e.Envelope.From == from }); i >= 0 {
		list = list[i : i+1]
	}
	switch {
	case len(list) == 1:
		return list[0].Envelope, nil
	case len(list) == 0:
		return envelope.Envelope{}, advice.With(fmt.Errorf("%s: %w %s", id, ErrNoMessage, box), "`netsky inbox --all` shows your mail with its ids")
	}
	e := &AmbiguousError{ID: id}
	if list[0].Envelope.ID != id {
		e.Begin = len(list)
		return envelope.Envelope{}, e
	}
	for _, m := range list {
		e.Senders = append(e.Senders, m.Envelope.From)
	}
	return envelope.Envelope{}, e
}

// maxLast is how many messages Last reads.
const maxLast = 1000

// FindLast returns the newest message from that sender among the last that an address has received; control
// messages, which nobody could answer, do not count.
func FindLast(ctx context.Context, b *Bus, box, from agent.ID) (envelope.Envelope, error) {
	names, err := b.Mail(box, false)
	if err != nil && !errors.Is(err, ErrNoMailbox) {
		return envelope.Envelope{}, err
	}
	for _, name := range slices.Backward(names[max(0, len(names)-maxLast):]) {
		if ctx.Err() != nil {
			return envelope.Envelope{}, ctx.Err()
		}
		e, err := b.Find(box, name)
		if err == nil && e.Err == nil && e.Envelope.From == from && !e.Envelope.Kind.Control() {
			return e.Envelope, nil
		}
	}
	return envelope.Envelope{}, advice.With(fmt.Errorf("%s: no message from it has come to %s", from, box), "`netsky inbox --all` shows your mail with its ids")
}
