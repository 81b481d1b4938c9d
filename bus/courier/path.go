package courier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/bus/envelope"
)

// A path is how texts get to the program: pushed as notifications, or offered to the runtime,
// not too many in a row. While that is closed, a line in the pane says that mail waits. It
// belongs to the goroutine of its courier.
type path struct {
	o       *Options
	pace    Pace
	trouble func(what string, err error) // logs what fails, once

	tokens  float64
	filled  time.Time // when tokens were last counted
	channel bool      // push by Notify
	closed  closed
}

// A closed is a delivery path that can't be used at the moment.
type closed struct {
	is   bool
	next time.Time // when to try it again
	wait time.Duration
}

// offer passes a text to the program. back reports that nothing of it was accepted.
func (p *path) offer(ctx context.Context, f *flight) (back bool) {
	within, cancel := context.WithTimeout(ctx, pushWithin)
	defer cancel()
	var err error
	if f.way == byChannel {
		err = p.notify(within, f)
	} else {
		err = p.o.Runtime.Offer(within, f.offer())
	}
	step("offered")
	switch {
	case err == nil:
		p.trouble("deliver mail", nil)
		p.closed = closed{}
	case ctx.Err() != nil:
	case errors.Is(err, ErrNotReady):
		return true
	case f.way == byChannel:
		p.trouble("channel", fmt.Errorf("using the other delivery path from now on: %w", err))
		p.channel = false
		return true
	case Refused(err):
		p.trouble("deliver mail", err)
		p.closed.is = true
		return true
	default: // it may have been accepted: retried like one that was not seen
		p.trouble("deliver mail", err)
	}
	return false
}

// notify pushes each message of the flight as a notification. The program renders it as
// netsky does.
func (p *path) notify(ctx context.Context, f *flight) error {
	for i, d := range f.list {
		e := d.Envelope()
		texts := []string{d.Rendered()}
		if i == 0 {
			for at, text := range f.preface {
				texts = slices.Insert(texts, at, envelope.RenderNotice(text))
			}
		}
		for at, text := range texts { // the program adds the element around it
			_, text, _ = strings.Cut(text, "\n")
			texts[at] = strings.TrimSuffix(text, "\n</channel>")
		}
		body := strings.Join(texts, "\n\n")
		meta := map[string]string{
			"chat_id": string(e.From), "from": string(e.From), "ts": e.Time.UTC().Format(time.RFC3339Nano), "id": e.ID,
		}
		if err := p.o.Notify(ctx, body, meta); err != nil {
			return err
		}
	}
	return nil
}

// nudge types a line into the pane of a program that n messages wait, as the other ways are closed.
func (p *path) nudge(ctx context.Context, now time.Time, idle bool, n int) {
	c, every := &p.closed, p.pace.Point
	pane, ok := p.o.Runtime.(Pointer)
	if !ok {
		c.next = now.Add(again)
		return
	}
	if !idle {
		c.next = now.Add(every / 12)
		return
	}
	within, cancel := context.WithTimeout(ctx, pushWithin)
	defer cancel()
	err := pane.Point(within, max(n, 1))
	p.trouble("nudge in the pane", err)
	if err == nil {
		c.next, c.wait = now.Add(every), 0
		return
	}
	c.wait = min(max(2*c.wait, every/12), every)
	c.next = now.Add(c.wait)
}

// token counts offers in a row; it returns how long to wait.
func (p *path) token(now time.Time) time.Duration {
	if p.pace.Burst == 0 {
		return 0
	}
	p.tokens = min(float64(p.pace.Burst), p.tokens+float64(now.Sub(p.filled))/float64(p.pace.Every))
	p.filled = now
	if p.tokens >= 1 {
		return 0
	}
	return time.Duration((1 - p.tokens) * float64(p.pace.Every))
}
