package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"netsky/bus/envelope"
	"netsky/store"
	"netsky/work/away"
	"netsky/work/tree"
)

// A bring is one that runs, or has ended.
type bring struct {
	over  chan struct{} // closed when err is set
	err   error
	after time.Time // when it has ended
}

const (
	bringAgain = 5 * time.Second
	// tells is how old the newest word of a host may be, after all that it is told at once.
	tells = 30 * time.Second
)

// bring brings what the worker of a task has committed on its host. still says that it is not here yet, and is looked
// for again; an error, that it will not come. Others' tasks do not wait for it.
func (l look) bring(ctx context.Context, k store.Task) (still bool, err error) {
	if l.Bring == nil {
		return false, nil
	}
	still, err = l.cross(k, func() error { return l.Bring(ctx, k.Assignee) })
	if still && err != nil {
		why := fmt.Sprintf("answered, and stays in progress until what %s has committed is here, which %s does not send: %v", k.Assignee, k.Assignee.Host(), err)
		if err = l.note(ctx, k, why); err == nil {
			err = l.tell(ctx, k, "unbrought", "is "+why)
		}
	}
	return still, err
}

// note records why a task does not go on, unless that is recorded.
func (l look) note(ctx context.Context, k store.Task, why string) error {
	if last, err := reason(ctx, l.db, k); err != nil || last != "" {
		return err
	}
	return l.db.Apply(ctx, store.AddNote{About: k.ID, Author: "netsky", Text: envelope.Line(why, 1000)}.Because())
}

// prepare brings, to a worker on another host, what a task that is about to start needs. It returns as bring does.
func (l look) prepare(ctx context.Context, k store.Task) (still bool, err error) {
	if l.Begin == nil {
		return false, nil
	}
	still, err = l.cross(k, func() error { return l.Begin(ctx, k) })
	if still && err != nil {
		why := fmt.Sprintf("starts once %s has the commits that it builds on, which %s does not take: %v", k.Assignee, k.Assignee.Host(), err)
		if err = l.note(ctx, k, why); err == nil {
			err = l.tell(ctx, k, "unprepared", why)
		}
	}
	return still, err
}

// cross does what brings commits from the host of a task's worker, or to it, beside the passes. still says that it has not
// been done, and is repeated; an error then, why.
func (l look) cross(k store.Task, do func() error) (still bool, err error) {
	if k.Assignee.Host() == "" {
		return false, nil
	}
	if _, err := tree.Load(l.Launcher.Home, k.Assignee); errors.Is(err, fs.ErrNotExist) { // its task is about no repository
		return false, nil
	}
	key := k.ID + k.Brief
	b := l.brings[key]
	if b == nil {
		b = &bring{over: make(chan struct{})}
		l.brings[key] = b
		go func() {
			defer l.Wake()
			defer close(b.over)
			b.err, b.after = do(), time.Now()
		}()
	}
	select {
	case <-b.over:
	default:
		return true, nil
	}
	switch {
	case b.err == nil, errors.Is(b.err, away.ErrRefused):
		delete(l.brings, key)
		return false, b.err
	case time.Since(b.after) > bringAgain:
		delete(l.brings, key)
	}
	return true, b.err
}

// missedAfar looks whether a worker on another host has ended. That host sees to it that a brief is answered.
func (l look) missedAfar(ctx context.Context, k store.Task) error {
	if l.Far == nil || k.State != store.TaskInProgress || time.Since(k.Briefed.Time()) < tells {
		return nil
	}
	st := l.Far(k.Assignee)
	if st.Alive() {
		return nil
	}
	return l.tell(ctx, k, "stalled-down", fmt.Sprintf("waits: %s is %s. `netsky up %s` starts it again, and it goes on; `netsky task start %s --agent N` gives the task to another.",
		k.Assignee, st.State, k.Assignee.N(), Short(k.ID)))
}
