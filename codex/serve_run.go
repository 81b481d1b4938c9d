package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/codex/appserver"
)

const (
	// recheck is how long what stands in the way of a turn is left alone.
	recheck = 30 * time.Second
	// beat is how often we look, while we wait for something that is not told.
	beat = time.Second
)

// run takes messages until it is told to end.
func (s *sidecar) run(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if kept := s.session.Kept(); kept != nil {
		if err := s.resume(ctx, kept); err != nil {
			return err
		}
	}
	for {
		if err := s.ready(ctx); err != nil {
			return err
		}
		d, err := s.next(ctx)
		if err != nil {
			return err
		}
		if d == nil {
			continue // the server has ended
		}
		w := &work{envelope: d.Envelope(), text: d.Rendered(), delivery: d}
		if err := s.deal(ctx, w); err != nil {
			return err
		}
	}
}

// resume goes on with what an earlier process had in hand.
func (s *sidecar) resume(ctx context.Context, kept json.RawMessage) error {
	var k keep
	if err := json.Unmarshal(kept, &k); err != nil {
		s.print.say("what was in hand is unreadable: " + err.Error())
		return s.session.Settled()
	}
	return s.deal(ctx, &work{envelope: k.Envelope, text: k.Text})
}

// next waits for a message; nil if the server ended before one came.
func (s *sidecar) next(ctx context.Context) (*bus.Delivery, error) {
	if err := s.pause(ctx, time.Until(s.gate), nil); err != nil {
		return nil, err
	}
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	done := s.session.server.Done()
	s.group.Go(func() {
		select {
		case <-done:
			cancel()
		case <-short.Done():
		}
	})
	d, err := s.mail.Next(short)
	if err != nil && ctx.Err() == nil && short.Err() != nil && !errors.Is(err, bus.ErrShutdown) {
		return nil, nil
	}
	return d, err
}

// ready opens the thread and waits until a model can be asked.
func (s *sidecar) ready(ctx context.Context) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, recheck) {
		before := s.account()
		thread, err := s.session.Open(ctx)
		if err == nil {
			if old := s.thread.Swap(thread); old == nil || old.ID() != thread.ID() {
				s.board.conversation(thread.ID())
			}
			if s.tui != nil {
				s.print.mute.Store(true)
				if s.seenBy != s.session.server {
					s.seenBy, s.seen = s.session.server, s.session.server.Announced(ctx)
				}
				s.tui.show(thread.ID(), s.seen)
			}
			err = s.session.server.Account(ctx)
		}
		if err == nil {
			return s.board.ready()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.print.say(err.Error())
		switch {
		case errors.Is(err, ErrLogin):
			err = s.blocked(ctx, err.Error(), before)
		case errors.Is(err, appserver.ErrOld):
			return fmt.Errorf("update Codex: %w", err)
		default:
			if err = s.board.report(agent.Blocked, err.Error()); err == nil {
				err = s.pause(ctx, wait, nil)
			}
		}
		if err != nil {
			return err
		}
	}
}

// blocked waits until there is reason to believe that an account can be used
// again: somebody has logged in, or, after a while, a message has come. Then
// Codex is started anew, to read what it has.
func (s *sidecar) blocked(ctx context.Context, why string, before string) error {
	if err := s.board.report(agent.Blocked, why); err != nil {
		return err
	}
	s.board.hold(true)
	defer s.board.hold(false)
	began := time.Now()
	waiting, _ := s.Bus.Count(s.Agent, bus.Inbox) // if it cannot be counted, a login ends the wait
	err := s.pause(ctx, 0, func() bool {
		if s.account() != before {
			return true
		}
		if time.Since(began) < recheck {
			return false
		}
		n, err := s.Bus.Count(s.Agent, bus.Inbox)
		return err == nil && n > waiting
	})
	if err != nil {
		return err
	}
	s.session.Close()
	if s.server != nil {
		s.server.Close()
		s.server = nil
	}
	return nil
}

// account tells states of Codex's login apart by its files.
func (s *sidecar) account() (stamp string) {
	dir := getenv(s.env, "CODEX_HOME")
	if dir == "" {
		dir = filepath.Join(getenv(s.env, "HOME"), ".codex")
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

// pause waits for as long, or until the condition holds; a shutdown that is
// obeyed meanwhile ends it.
func (s *sidecar) pause(ctx context.Context, d time.Duration, until func() bool) error {
	if d <= 0 && until == nil {
		return ctx.Err()
	}
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	var late <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return nil
		case <-ticker.C:
			if s.mail.Obeyed() {
				return bus.ErrShutdown
			}
			if until != nil && until() {
				return nil
			}
		}
	}
}
