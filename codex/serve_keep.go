package codex

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/codex/appserver"
	"netsky/internal/proc"
)

const (
	// mostWait is the longest pause between attempts to open the thread.
	mostWait = 30 * time.Second
	// loginWait is how long a Codex that is not logged in is left alone if its files do not
	// change: a login in a keyring changes none.
	loginWait = 5 * time.Minute
	// beat is the interval for polling what is not reported.
	beat = time.Second
)

// keep keeps the thread open and reports its events to the courier, until ctx ends or
// it cannot continue.
func (r *resident) keep(ctx context.Context) error {
	for cut := false; ; {
		if err := r.open(ctx, cut); err != nil {
			return err
		}
		cut = r.follow(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.disconnect()
		if !cut {
			r.print.say("starting Codex again, which then reads its login")
			r.endServer()
		}
	}
}

// open opens the thread and waits until a model can be used. A Codex that does not answer
// in time is ended; each attempt is reported.
func (r *resident) open(ctx context.Context, cut bool) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, mostWait) {
		old := r.session.state.Thread
		thread, err := r.opening(ctx)
		if err == nil {
			r.ready(thread, cut, old != "" && old != thread.ID())
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.print.say(err.Error())
		switch {
		case errors.Is(err, appserver.ErrLogin):
			f := r.fault(err)
			r.show(agent.Report{State: agent.Blocked, Detail: f.String(), Fault: *f})
			r.awaitLogin(ctx)
			r.disconnect()
			r.endServer()
		case errors.Is(err, appserver.ErrOld):
			return fmt.Errorf("update Codex: %w", err)
		case errors.Is(err, context.DeadlineExceeded):
			r.set(agent.Blocked, err.Error())
			r.disconnect()
			r.endServer()
			proc.Sleep(ctx, wait)
		default:
			r.set(agent.Blocked, err.Error())
			proc.Sleep(ctx, wait)
		}
	}
}

// opening opens the thread, shows it and checks the login.
func (r *resident) opening(ctx context.Context) (*appserver.Thread, error) {
	thread, err := r.session.Open(ctx)
	if err != nil {
		return nil, err
	}
	if r.tui != nil {
		r.print.mute.Store(true)
		if r.seenBy != r.session.server {
			r.seenBy, r.seen = r.session.server, r.session.server.Announced(ctx)
		}
		r.tui.show(thread.ID(), r.seen)
	}
	within, cancel := context.WithTimeout(ctx, r.session.within)
	defer cancel()
	if err := r.session.server.Account(within); err != nil {
		return nil, err
	}
	return thread, nil
}

// ready reports that mail can be accepted, unless a turn runs or the context is full.
func (r *resident) ready(t *appserver.Thread, cut, fresh bool) {
	r.mu.Lock()
	r.thread, r.handed = t, handed{}
	detail := ""
	if r.now.State == agent.Idle {
		detail = r.now.Detail
	}
	if fresh {
		r.full = time.Time{}
	}
	r.mu.Unlock()
	if t.Running() != nil {
		r.set(agent.Busy, "turn")
	} else {
		r.rest(detail)
	}
	e := courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: t.ID()}, Cut: cut}
	if fresh {
		e.Text = "clear"
	}
	r.queue.Put(e)
}

// disconnect ends the connection, and also a server that did not end a turn.
func (r *resident) disconnect() {
	r.mu.Lock()
	stuck := r.overdue != ""
	r.thread, r.overdue = nil, ""
	r.mu.Unlock()
	r.session.Close()
	if stuck {
		r.endServer()
	}
}
