// This file collects remarks on lines of an agent's work and sends them to the agent in one message.
//
// A remark is on record until it is sent or dropped. Before a message goes out, its id is recorded with
// the remarks it holds, and stays with them; a crash, or another Send at the same time, then sends the very
// same message under the same id, which has no effect if the first one arrived.

package diff

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/advice"
	"netsky/store"
	"netsky/work/record"
)

// Bounds of what is collected for one agent, so that the message has no more than it may.
const (
	MaxText    = 4000 // bytes of a remark
	maxExcerpt = 1500
	maxPending = 100
)

// A Refusal reports that what was asked for can't be done with the remark, or with those that wait.
type Refusal struct{ error }

func (e Refusal) Unwrap() error { return e.error }

func refuse(format string, args ...any) error { return Refusal{fmt.Errorf(format, args...)} }

// A Review collects one author's remarks.
type Review struct {
	Author agent.ID
	Via    string // how the author writes; "" is by the verb
	Bus    *bus.Bus
	Record func(context.Context, ...store.Op) error
	// Read calls do with the records, if there are any yet.
	Read func(ctx context.Context, do func(record.Records) error) error
}

// Pending returns the remarks on the agent's work that have not been sent, the oldest first.
func (r Review) Pending(ctx context.Context, id agent.ID) (list []record.Comment, err error) {
	list = []record.Comment{}
	err = r.Read(ctx, func(rec record.Records) error {
		all, err := rec.Comments(ctx, record.Filter{Agent: id, State: record.Pending, Limit: 1000})
		for _, k := range all {
			if k.Author == r.Author {
				list = append(list, k)
			}
		}
		return err
	})
	return list, err
}

// Sent returns the author's remarks on the agent's work that were sent last, at most 100, the newest first.
func (r Review) Sent(ctx context.Context, id agent.ID) (list []record.Comment, err error) {
	list = []record.Comment{}
	err = r.Read(ctx, func(rec record.Records) error {
		all, err := rec.Comments(ctx, record.Filter{Agent: id, State: record.Sent, Author: r.Author, Newest: true})
		list = append(list, all...)
		return err
	})
	return list, err
}

// Keyed returns the id of the remark that AddOnce records under a key.
func Keyed(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// AddOnce is Add for who may ask twice: a second remark under the same key has no effect.
func (r Review) AddOnce(ctx context.Context, key string, c *Change, id agent.ID, file string, line int, old bool, text string) (k record.Comment, err error) {
	var had []record.Comment
	err = r.Read(ctx, func(rec record.Records) (err error) {
		had, err = rec.Comments(ctx, record.Filter{ID: Keyed(key), Limit: 1})
		return err
	})
	if err != nil || len(had) > 0 {
		return append(had, k)[0], err
	}
	return r.add(ctx, Keyed(key), c, id, file, line, old, text)
}

// Add records a remark on a line of a file as it is now, or with old as it was.
func (r Review) Add(ctx context.Context, c *Change, id agent.ID, file string, line int, old bool, text string) (k record.Comment, err error) {
	key := make([]byte, 4)
	rand.Read(key) // never fails
	return r.add(ctx, hex.EncodeToString(key), c, id, file, line, old, text)
}

func (r Review) add(ctx context.Context, key string, c *Change, id agent.ID, file string, line int, old bool, text string) (k record.Comment, err error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return k, refuse("the comment has no text")
	case len(text) > MaxText:
		return k, refuse("the comment has %d bytes: at most %d", len(text), MaxText)
	}
	pending, err := r.Pending(ctx, id)
	if err != nil {
		return k, err
	}
	if len(pending) >= maxPending {
		return k, advice.With(refuse("%s: %d comments wait already", id, len(pending)), "`netsky diff %s --send` sends them", id)
	}
	excerpt, err := c.Line(ctx, file, line, old)
	if err != nil {
		return k, err
	}
	k = record.Comment{
		ID: key, Agent: id, File: file, Line: line, Old: old, Head: c.Head, Excerpt: envelope.Shorten(excerpt, maxExcerpt),
		Text: text, Author: r.Author, State: record.Pending, Created: store.At(time.Now()),
	}
	return k, recorded(r.Record(ctx, record.SetComment(k)))
}

// recorded takes what will be recorded as soon as there is a database again for done.
func recorded(err error) error {
	if errors.Is(err, store.ErrSpooled) {
		return nil
	}
	return err
}

// Drop removes the remarks with these ids, or beginnings of them, from those that wait.
func (r Review) Drop(ctx context.Context, id agent.ID, ids ...string) (dropped []record.Comment, err error) {
	list, err := r.Pending(ctx, id)
	if err != nil {
		return nil, err
	}
	var ops []store.Op
	for _, want := range ids {
		var found []record.Comment
		for _, k := range list {
			if want != "" && strings.HasPrefix(k.ID, want) {
				found = append(found, k)
			}
		}
		switch {
		case len(found) != 1:
			return nil, advice.With(refuse("%s: %d comments on the work of %s that wait have this id", envelope.Line(want, 40), len(found), id), "`netsky diff %s --comments` lists them", id)
		case found[0].Message != "" && r.mayHave(ctx, id, found[0].Message):
			return nil, refuse("%s: it may have been sent already, in message %s", found[0].ID, found[0].Message)
		}
		found[0].State = record.Dropped
		dropped, ops = append(dropped, found[0]), append(ops, record.SetComment(found[0]))
	}
	return dropped, recorded(r.Record(ctx, ops...))
}

// mayHave reports whether the agent may have been sent the message: all that its mailbox has had is there.
func (r Review) mayHave(ctx context.Context, id agent.ID, message string) bool {
	list, err := r.Bus.Received(ctx, id, message)
	return err != nil && !errors.Is(err, bus.ErrNoMailbox) || len(list) > 0
}

// DropOnce is Drop for who may ask twice: one that was dropped already stays so.
func (r Review) DropOnce(ctx context.Context, id agent.ID, key string) error {
	var had []record.Comment
	err := r.Read(ctx, func(rec record.Records) (err error) {
		had, err = rec.Comments(ctx, record.Filter{ID: key, Agent: id, Author: r.Author, State: record.Dropped, Limit: 1})
		return err
	})
	if err != nil || len(had) > 0 && had[0].ID == key {
		return err
	}
	_, err = r.Drop(ctx, id, key)
	return err
}

// A Sent is a message that was sent.
type Sent struct {
	ID       string           `json:"id"`
	Agent    agent.ID         `json:"agent"`
	Comments []record.Comment `json:"comments"`
}

// Send sends the agent all remarks that wait, in one message; one that a crash has kept from being
// recorded as sent goes first, as it was.
func (r Review) Send(ctx context.Context, id agent.ID) (sent []Sent, err error) {
	list, err := r.Pending(ctx, id)
	if err != nil {
		return nil, err
	}
	if fresh := slices.DeleteFunc(slices.Clone(list), func(k record.Comment) bool { return k.Message != "" }); len(fresh) > 0 {
		if list, err = r.gather(ctx, id, fresh); err != nil {
			return nil, fmt.Errorf("nothing was sent: %w", err)
		}
	}
	var batches []Sent
	for _, k := range list {
		i := slices.IndexFunc(batches, func(s Sent) bool { return s.ID == k.Message })
		switch {
		case k.Message == "": // it was added just now
		case i < 0:
			batches = append(batches, Sent{k.Message, id, []record.Comment{k}})
		default:
			batches[i].Comments = append(batches[i].Comments, k)
		}
	}
	for _, s := range batches {
		if err := r.send(ctx, s); err != nil {
			return sent, err
		}
		sent = append(sent, s)
	}
	return sent, nil
}

// gather records with remarks the id of the message that they are sent in, and returns all that wait: some
// may be in another's message by now. If it is not in the records, a second Send would make another message
// of them.
func (r Review) gather(ctx context.Context, id agent.ID, fresh []record.Comment) ([]record.Comment, error) {
	sum := sha256.New()
	for _, k := range fresh {
		fmt.Fprintf(sum, "%s\x00", k.ID)
	}
	var ops []store.Op
	for _, k := range fresh {
		k.Message = "review-" + hex.EncodeToString(sum.Sum(nil)[:16])
		ops = append(ops, record.SetComment(k))
	}
	if err := r.Record(ctx, ops...); err != nil {
		return nil, err
	}
	return r.Pending(ctx, id)
}

func (r Review) send(ctx context.Context, s Sent) error {
	_, _, err := r.Bus.SendOnce(ctx, envelope.Envelope{ID: s.ID, From: r.Author, To: s.Agent, Text: s.text(), Via: cmp.Or(r.Via, "cli"), Time: time.Now()})
	if err != nil {
		return err
	}
	var ops []store.Op
	for i := range s.Comments {
		s.Comments[i].State = record.Sent
		ops = append(ops, record.SetComment(s.Comments[i]))
	}
	return recorded(r.Record(ctx, ops...))
}

// text is the message. It depends on nothing but the remarks.
func (s Sent) text() string {
	var b strings.Builder
	if len(s.Comments) == 1 {
		b.WriteString("A comment on your work:\n")
	} else {
		fmt.Fprintf(&b, "%d comments on your work:\n", len(s.Comments))
	}
	for _, k := range s.Comments {
		was := ""
		if k.Old {
			was = " as it was before your changes"
		}
		fmt.Fprintf(&b, "\n%s, line %d%s:\n", k.File, k.Line, was)
		for line := range strings.SplitSeq(k.Excerpt, "\n") {
			fmt.Fprintf(&b, "> %s\n", line)
		}
		b.WriteString(k.Text + "\n")
	}
	return envelope.SafeText(b.String())
}
