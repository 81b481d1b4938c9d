package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/home"
	"netsky/store"
)

// Reasons for which Restart refuses, besides those of Up.
var (
	ErrOtherStart = errors.New("it has been started again since")
	ErrUnwanted   = errors.New("its desired state is down")
	ErrEnded      = errors.New("its program has ended")
	ErrHeard      = errors.New("its receiver is running")
)

// Restart ends the running session of an agent whose receiver has gone and starts the
// agent again. The agent is not asked, as nothing would answer. The caller has found it
// idle under the start named by p.Start. Nothing is ended, and an error returned, if that
// start is no longer the running one, if the agent's desired state is down, if a receiver
// is running again, or if anything prevents the new start. The desired state does not
// change. Mail stays in the mailbox: the new receiver is offered what the old one had
// claimed.
//
// Up, Down and Restart exclude one another.
func (l *Launcher) Restart(ctx context.Context, p Plan, by string, report func(Progress)) (Progress, error) {
	u := newUp(l, UpOptions{By: by, Report: report})
	lock, err := l.Home.WaitLock(ctx, home.UpLock, func(err error) { u.tell(Progress{Agent: p.Agent, Step: StepBlocked, Err: err}) })
	if err != nil {
		return Progress{}, err
	}
	defer lock.Unlock()

	st, err := l.restartable(ctx, p)
	if err != nil {
		return Progress{}, err
	}
	if err := u.Prepared.check(ctx, l, []Plan{p}); err != nil {
		return Progress{}, err
	}
	if err := u.writeConf(); err != nil {
		return Progress{}, err
	}
	if err := l.clear(ctx, Statuses{st}, false); err != nil {
		return Progress{}, err
	}
	why := "restarted: " + cmp.Or(p.Why, "its receiver had gone")
	l.record(ctx,
		store.EndSession{Start: st.Start, Actor: p.Agent, State: agent.Down, Reason: why},
		store.AddLog{Level: store.LevelWarn, Part: "watchdog", Actor: p.Agent, About: st.Start, Text: why + " (by " + by + ")"},
	)
	ends, err := u.start(ctx, []prepared{u.prepare(ctx, p)}, false)
	if len(ends) == 0 {
		return Progress{}, err
	}
	return ends[0], err
}

// restartable returns the agent's status if nothing forbids its restart.
func (l *Launcher) restartable(ctx context.Context, p Plan) (Status, error) {
	v, err := l.view(ctx)
	if err != nil {
		return Status{}, err
	}
	if other := v.foreign[string(p.Agent)]; other != nil {
		return Status{}, other
	}
	states, err := l.inspect(v, nil)
	if err != nil {
		return Status{}, err
	}
	st := states.Find(p.Agent)
	_, heard := l.Home.LockHolder(home.ReceiverLock(p.Agent))
	switch {
	case !st.Wanted:
		err = ErrUnwanted
	case p.Start == "" || st.Start != p.Start || st.State == agent.Unknown:
		err = ErrOtherStart
	case !st.Alive():
		err = ErrEnded
	case heard:
		err = ErrHeard
	default:
		if s, ok := v.agents[p.Agent]; ok {
			err = l.keepPerson(p.Agent, s)
		}
	}
	if err != nil {
		return Status{}, fmt.Errorf("%s: not restarted: %w", p.Agent, err)
	}
	return st, nil
}
