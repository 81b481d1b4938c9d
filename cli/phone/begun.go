package phone

import (
	"context"
	"errors"
	"time"

	"netsky/imessage"
	"netsky/internal/advice"
)

// begunWithin is how long the first look at a phone may take: it only finds out where the chat
// ends, with one query.
const begunWithin = 2 * time.Second

// Begun waits until a daemon that has just been started knows where reading begins; only what is
// written from then on is ever acted on. Once that is known, later daemons go on there, so Begun
// returns at once. It waits for two seconds at most; the error says why reading has not begun.
func (p Phone) Begun(ctx context.Context) error {
	if !p.On() {
		return nil
	}
	t, err := p.Transport()
	if err != nil {
		return err
	}
	defer t.Close()
	ctx, cancel := context.WithTimeout(ctx, begunWithin)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := imessage.Load(p.Home)
		if err == nil && s.Transport == t.Name() && s.Cursor != "" {
			return nil
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		if err == nil && s.Transport == t.Name() && s.State == imessage.StateDegraded {
			return advice.With(errors.New(s.Reason), "%s", s.Next)
		}
		return errors.New("the daemon has not looked yet")
	}
}
