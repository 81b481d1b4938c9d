package bridge

import (
	"context"
	"errors"
	"time"

	"netsky/internal/advice"
	"netsky/phone"
)

// lookWithin is how long the first look at a phone may take: it only finds out where the chat
// ends, with one query.
const lookWithin = 2 * time.Second

// AwaitLook waits until the daemon has looked for the first time, and so knows where reading begins;
// only what is written from then on is ever acted on. Later daemons go on there, so AwaitLook then
// returns at once. It waits for two seconds at most; the error says why reading has not begun.
func (p Phone) AwaitLook(ctx context.Context) error {
	if !p.On() {
		return nil
	}
	t, err := p.Transport()
	if err != nil {
		return err
	}
	defer t.Close()
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := phone.Load(p.Home)
		if err == nil && s.Transport == t.Name() && s.Cursor != "" {
			return nil
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		switch {
		case err != nil || s.Transport != t.Name():
			return advice.With(errors.New("the daemon has not looked yet"), "if it was running when you enabled the phone: `netsky daemon restart`")
		case s.State == phone.StateDegraded:
			return advice.With(errors.New(s.Reason), "%s", s.Next)
		}
		return errors.New("the first look has not come to an end")
	}
}
