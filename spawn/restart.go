package spawn

import (
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/store"
)

// What Restart refuses, beside what Up does.
var (
	ErrOtherStart = errors.New("another start of it is there by now")
	ErrUnwanted   = errors.New("it is wanted down")
	ErrEnded      = errors.New("its program has ended")
	ErrHeard      = errors.New("its receiver is there")
)

// Restart ends the running session of an agent whose receiver has gone and
// starts the agent again, without asking it: there is nobody to ask. The caller
// has seen that it is idle, under the start that p.Start names. Nothing is ended
// if that start is not the running one any more, if the agent is wanted down, if
// a receiver is there again, or if anything stands in the way of the new start;
// the error says so. What is wanted stays as it is. Mail stays where it lies:
// what the old receiver had claimed is offered again by the new one.
//
// An up, a down and another Restart wait for it, and it for them.
func (l *Launcher) Restart(ctx context.Context, p Plan, by string, report func(Progress)) (Progress, error) {
	tell := report
	if tell == nil {
		tell = func(Progress) {}
	}
	lock, err := l.Home.WaitLock(ctx, home.UpLock, func(err error) { tell(Progress{Agent: p.Agent, Step: StepBlocked, Err: err}) })
	if err != nil {
		return Progress{}, err
	}
	defer lock.Unlock()

	st, err := l.restartable(ctx, p)
	if err != nil {
		return Progress{}, err
	}
	prep := new(Preparation)
	if err := l.check(ctx, prep, []Plan{p}, []int{0}); err != nil {
		return Progress{}, err
	}
	if err := l.writeConf(); err != nil {
		return Progress{}, err
	}
	if err := l.clear(ctx, Statuses{st}); err != nil {
		return Progress{}, fmt.Errorf("%s: %w", p.Agent, err)
	}
	const why = "restarted: its receiver had gone"
	l.record(ctx,
		store.EndSession{Start: st.Start, Actor: p.Agent, State: agent.Down, Reason: why},
		store.AddLog{Level: store.LevelWarn, Part: "spawn", Actor: p.Agent, About: st.Start, Text: why + " (by " + by + ")"},
	)
	next, err := l.prepare(ctx, p, prep.found[p.Agent].prompt)
	next.plan, next.launch.Agent, next.err = p, p.Agent, err
	ends, err := l.start(ctx, UpOptions{By: by}, false, []prepared{next}, tell)
	if len(ends) == 0 {
		return Progress{}, err
	}
	return ends[0], err
}

// restartable is the agent's status if nothing speaks against its restart.
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
