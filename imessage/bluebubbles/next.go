package bluebubbles

import (
	"context"
	"fmt"
	"slices"
	"time"

	"netsky/phone/chat"
)

// askAgain is how often the server is asked who it is.
const askAgain = 10 * time.Minute

// Next implements imessage.Transport.
func (t *Transport) Next(ctx context.Context, from string) (chat.Batch, error) {
	until := t.opts.Now().Add(t.opts.Wait)
	c, note, err := t.begin(ctx, from)
	if err != nil {
		t.checked = time.Time{} // it may be another one that answers next
		return chat.Batch{}, t.degraded(err)
	}
	t.listen()
	if from == "" || note != "" {
		b := chat.Batch{Cursor: c.String()}
		if note != "" {
			b.Notes = []string{note}
		}
		return b, nil
	}
	for {
		looked := time.Now()
		b, err := t.look(ctx, &c)
		if err != nil {
			t.checked = time.Time{}
			return chat.Batch{}, t.degraded(err)
		}
		left := until.Sub(t.opts.Now())
		if len(b.Messages) > 0 || len(b.Notes) > 0 || left <= 0 {
			b.Cursor = c.String()
			return b, nil
		}
		if err := t.pause(ctx, looked, min(left, t.interval())); err != nil {
			return chat.Batch{}, err
		}
	}
}

// interval is how long to wait for the next query, if the socket says nothing before.
func (t *Transport) interval() time.Duration {
	switch {
	case len(t.held) > 0:
		return min(t.opts.Poll, max(t.opts.Hold/10, time.Millisecond))
	case t.connected.Load():
		return t.opts.Watch
	}
	return t.opts.Poll
}

// pause waits for that long, or until the socket says that something happened. However much it
// says, the server is asked twenty times in a poll's time at most.
func (t *Transport) pause(ctx context.Context, looked time.Time, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return context.Canceled
	case <-t.wake:
		return t.pauseAfter(ctx, min(d, t.opts.Poll/20-time.Since(looked)))
	case <-timer.C:
	}
	return nil
}

// begin parses the cursor and checks that it is about the table that is there now. If it is not,
// or there is none, reading begins at the end, and the note says why.
func (t *Transport) begin(ctx context.Context, from string) (cursor, string, error) {
	c, broken := parseCursor(from)
	now := t.opts.Now()
	if broken == nil && now.Sub(t.checked) < askAgain {
		return c, "", nil
	}
	i, err := t.who(ctx)
	if err != nil {
		return cursor{}, "", err
	}
	t.info.Store(&i)
	top, err := t.newest(ctx)
	if err != nil {
		return cursor{}, "", err
	}
	t.checked = now
	name := brief(value(i.Computer))
	note := ""
	switch {
	case from == "":
	case broken != nil:
		note = fmt.Sprintf("the cursor cannot be read: reading begins at message %d", top.ID)
	case top.ID < c.Row:
		note = fmt.Sprintf("the Mac's newest message is %d, where %d was seen: its database was replaced; reading begins at its end", top.ID, c.Row)
	default:
		ours, err := t.ours(ctx, c, name)
		if err != nil {
			return cursor{}, "", err
		}
		if ours {
			c.Name = name
			return c, "", nil
		}
		note = fmt.Sprintf("message %d is not the one that was seen: another Mac or another database; reading begins at message %d", c.Anchor, top.ID)
	}
	clear(t.held)
	return cursor{Row: top.ID, Anchor: top.ID, GUID: brief(top.GUID), Name: name}, note, nil
}

// ours reports whether the cursor is about the table that is there. If the message that would
// tell was deleted, the Mac's name does.
func (t *Transport) ours(ctx context.Context, c cursor, name string) (bool, error) {
	if c.Anchor == 0 {
		return true, nil
	}
	list, _, err := t.span(ctx, c.Anchor-1, 1, []string{})
	if err != nil {
		return false, err
	}
	if len(list) > 0 {
		return brief(list[0].GUID) == c.GUID, nil
	}
	return c.Name == name, nil
}

// maxText is how many bytes of texts a batch has before it ends.
const maxText = 8 << 20

// look queries once and returns what was not returned before.
func (t *Transport) look(ctx context.Context, c *cursor) (chat.Batch, error) {
	var b chat.Batch
	now := t.opts.Now()
	here := map[int64]bool{}
	size, full := 0, false
	var before []*row
	err := t.scan(ctx, c.Row, func(list []row) bool {
		for i := range list {
			r := &list[i]
			here[r.ID] = true
			size += len(value(r.Text))
			earlier := before
			before = append(before, r)[max(0, len(before)+1-mostBefore):]
			if c.has(r.ID) || t.hold(r, now) {
				continue
			}
			c.add(r.ID, now)
			if r.repeats(earlier) {
				continue
			}
			t.deliver(c, r, &b)
			if n := len(b.Messages) - 1; r.unreadable == nil {
				b.Messages[n].More = slices.ContainsFunc(list[i+1:], func(link row) bool { return link.follows(r) })
				if k := slices.IndexFunc(earlier, r.follows); k >= 0 {
					b.Messages[n].After = earlier[k].GUID
				}
			}
			if full = len(b.Messages) == chat.MaxBatch || len(b.Notes) == chat.MaxBatch || size >= maxText; full {
				return false
			}
		}
		return true
	})
	if err != nil {
		return chat.Batch{}, err
	}
	if !full {
		for id := range t.held { // deleted meanwhile
			if !here[id] {
				delete(t.held, id)
			}
		}
	}
	old := now.Add(-t.opts.Again)
	if size >= maxText { // so much is not asked for again and again
		old = now
	}
	c.settle(old, t.held)
	return b, nil
}

// deliver adds a row to a batch.
func (t *Transport) deliver(c *cursor, r *row, b *chat.Batch) {
	if r.unreadable != nil {
		b.Notes = append(b.Notes, fmt.Sprintf("message %s is left out: %v", clip(r.GUID), t.redact(r.unreadable.Error())))
		return
	}
	if r.ID > c.Anchor {
		c.Anchor, c.GUID = r.ID, brief(r.GUID)
	}
	m := r.message()
	if r.late() {
		m.Unreadable = "the server has no text of it"
	}
	b.Messages = append(b.Messages, m)
}

// hold reports whether a row without a body is to wait for it.
func (t *Transport) hold(r *row, now time.Time) bool {
	if r.unreadable != nil || !r.late() {
		delete(t.held, r.ID)
		return false
	}
	since, known := t.held[r.ID]
	if !known {
		since = now
		t.held[r.ID] = now
	}
	if now.Sub(since) < t.opts.Hold {
		return true
	}
	delete(t.held, r.ID)
	return false
}

// History implements imessage.Transport.
func (t *Transport) History(ctx context.Context, c chat.Chat, limit int) ([]chat.Message, error) {
	if limit <= 0 {
		return nil, nil
	}
	q := query{Chat: c.GUID, With: withAll, Sort: "DESC", Limit: min(limit, chat.MaxBatch)}
	list, err := t.ask(ctx, q)
	if err == nil && len(list) == 0 {
		if q.Chat = otherName(c.GUID); q.Chat != "" {
			list, err = t.ask(ctx, q)
		}
	}
	if err != nil {
		return nil, t.degraded(err)
	}
	slices.Reverse(list)
	all := make([]chat.Message, 0, len(list))
	for i := range list {
		m := chat.Message{GUID: list[i].GUID, Kind: chat.Event}
		if err := list[i].unreadable; err == nil {
			m = list[i].message()
		} else {
			m.Unreadable = err.Error()
		}
		all = append(all, m)
	}
	return all, nil
}
