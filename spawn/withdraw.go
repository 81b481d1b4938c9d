package spawn

import (
	"context"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

// withdrawWithin is how long a receiver may take to give up a shutdown, or to end after
// all.
const withdrawWithin = 5 * time.Second

// withdraw cancels shutdowns that a down which died, or was interrupted, had requested of
// agents that are wanted up now, if their receivers have not obeyed yet. An agent whose
// receiver obeyed in that moment ends; withdraw waits for it, so that the up starts it
// again. It reports whether anything was cancelled.
func (u *up) withdraw(ctx context.Context) (changed bool, err error) {
	for _, p := range u.Plans {
		st, known := u.Prepared.States.find(p.Agent)
		if u.Wanted || !known || !st.Alive() || st.Claimed == 0 && st.Inbox == 0 {
			continue
		}
		if _, err := u.Bus.Retract(ctx, p.Agent, func(e envelope.Envelope) bool { return isShutdown(e) && e.Start == st.Start }); err != nil {
			return changed, fmt.Errorf("%s: %w", p.Agent, err)
		}
		list, err := u.Bus.List(p.Agent, bus.Claimed, 0)
		if err != nil {
			return changed, fmt.Errorf("%s: %w", p.Agent, err)
		}
		for _, e := range list {
			if e.Err != nil || e.Envelope.Kind != envelope.KindShutdown || e.Envelope.Start != st.Start {
				continue
			}
			changed = true
			if err := u.takeBack(ctx, p.Agent, e.Envelope); err != nil {
				return changed, fmt.Errorf("%s: %w", p.Agent, err)
			}
		}
	}
	return changed, nil
}

func (u *up) takeBack(ctx context.Context, id agent.ID, request envelope.Envelope) error {
	asked := time.Now()
	_, err := u.Bus.Send(ctx, envelope.Envelope{
		From: agent.Root, To: id, Kind: envelope.KindCancel, InReplyTo: request.ID, Via: "cli", Time: asked,
		Text: "stay: the shutdown is cancelled",
	})
	if err != nil {
		return fmt.Errorf("cancel an old shutdown: %w", err)
	}
	for time.Since(asked) < withdrawWithin {
		open, err := u.isClaimed(id, request.ID)
		if err != nil {
			return err
		}
		if !open {
			_, obeyed, err := u.Bus.FindAnswer(ctx, id, agent.Root, request.ID, request.Time)
			if err != nil || !obeyed {
				return err
			}
			k, err := u.Home.LoadKeeper(id)
			if err != nil || k.EndedMS != 0 || !k.Alive() {
				return nil // it has ended: the up finds it dead
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("an old shutdown (%s) was neither cancelled nor obeyed within %v", request.ID, withdrawWithin)
}

func (u *up) isClaimed(id agent.ID, envelope string) (bool, error) {
	list, err := u.Bus.List(id, bus.Claimed, 0)
	for _, e := range list {
		if e.Err == nil && e.Envelope.ID == envelope {
			return true, nil
		}
	}
	return false, err
}
