package codex

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/codex/appserver"
)

const (
	// recheck is the time between checks of what prevents a turn.
	recheck = 30 * time.Second
	// beat is the interval for polling what is not reported.
	beat = time.Second
)

// keep keeps the thread open and reports its events to the courier, until ctx ends or
// it cannot continue.
func (r *resident) keep(ctx context.Context) error {
	for cut := false; ; cut = true {
		before, err := r.open(ctx, cut)
		if err != nil {
			return err
		}
		login := r.follow(ctx)
		if ctx.Err() == nil && login != nil {
			r.blocked(ctx, login, before)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.disconnect()
	}
}

// open opens the thread and waits until a model can be used. It returns the login that
// made it possible.
func (r *resident) open(ctx context.Context, cut bool) (login string, err error) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, recheck) {
		before, old := r.account(), r.session.state.Thread
		thread, err := r.session.Open(ctx)
		if err == nil {
			if r.tui != nil {
				r.print.mute.Store(true)
				if r.seenBy != r.session.server {
					r.seenBy, r.seen = r.session.server, r.session.server.Announced(ctx)
				}
				r.tui.show(thread.ID(), r.seen)
			}
			err = r.session.server.Account(ctx)
		}
		if err == nil {
			r.ready(thread, cut, old != "" && old != thread.ID())
			return before, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		r.print.say(err.Error())
		switch {
		case errors.Is(err, appserver.ErrLogin):
			r.blocked(ctx, err, before)
			r.disconnect()
		case errors.Is(err, appserver.ErrOld):
			return "", fmt.Errorf("update Codex: %w", err)
		default:
			r.set(agent.Blocked, err.Error())
			pause(ctx, wait)
		}
	}
}

// ready reports that mail can be accepted, unless a turn runs or the quota is used up.
func (r *resident) ready(t *appserver.Thread, cut, fresh bool) {
	r.mu.Lock()
	r.thread, r.handed = t, handed{}
	state, detail := r.state, r.detail
	switch {
	case t.Running() != nil:
		state, detail = agent.Busy, "turn"
	case state != agent.Idle && !(state == agent.Blocked && r.quota):
		state, detail = agent.Idle, ""
	}
	r.mu.Unlock()
	r.set(state, detail)
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

// blocked waits until an account may be usable again: someone has logged in, or, after
// a while, a message has arrived. Then Codex is ended, so that the new one reads its
// login anew.
func (r *resident) blocked(ctx context.Context, why error, before string) {
	r.mu.Lock()
	r.quota = false
	r.mu.Unlock()
	r.set(agent.Blocked, why.Error())
	began := time.Now()
	waiting, _ := r.Bus.Count(r.Agent, bus.Inbox) // if it can't be counted, only a login ends the wait
	for ctx.Err() == nil && r.account() == before {
		pause(ctx, beat)
		if time.Since(began) < recheck {
			continue
		}
		if n, err := r.Bus.Count(r.Agent, bus.Inbox); err == nil && n > waiting {
			break
		}
	}
	r.session.Close()
	r.endServer()
}

// account identifies the state of Codex's login by its files.
func (r *resident) account() (stamp string) {
	dir := getenv(r.env, "CODEX_HOME")
	if dir == "" {
		dir = filepath.Join(getenv(r.env, "HOME"), ".codex")
	}
	for _, name := range []string{"auth.json", "config.toml"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			stamp += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), " ")
		} else {
			stamp += "- "
		}
	}
	return stamp
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
