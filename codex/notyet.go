package codex

import (
	"context"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/codex/appserver"
	"netsky/cost/breaker"
	"netsky/internal/advice"
)

// breaker returns that of the account that a Codex started now would use, and when its
// credentials were changed.
func (w *once) breaker() (b breaker.Breaker, name string, changed time.Time) {
	name, changed, _ = readAccount(childEnv(w.Env, w.Agent, w.Home))
	return breaker.Of(w.Home, name), name, changed
}

// closed returns an error that matches ErrNotYet if a budget of the owner's is used up, or the
// account can't be used yet. A login that was not accepted is tried again at once if its
// credentials have changed.
func (w *once) closed(ctx context.Context) error {
	for _, name := range []string{breaker.AllBudget, breaker.Budget(w.Agent)} {
		if s, err := breaker.Of(w.Home, name).Load(); err == nil && s.Tripped() {
			return w.notYet(s.Fault, s.Retry())
		}
	}
	b, _, changed := w.breaker()
	s, err := b.Load()
	switch {
	case err != nil, !s.Tripped(): // an unreadable breaker is replaced by the next change
		return nil
	case s.Acted(time.Now(), changed):
		_, err := b.Retry(ctx)
		return err
	case time.Now().Before(s.Retry()):
		return w.notYet(s.Fault, s.Retry())
	}
	return nil
}

// allowed asks for the account to be used now.
func (w *once) allowed(ctx context.Context) error {
	if err := w.closed(ctx); err != nil {
		return err
	}
	b, _, _ := w.breaker()
	for {
		pass, err := b.Allow(ctx, w.Agent)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", w.Agent, err)
		case pass.OK:
			return nil
		case pass.State.Tripped():
			return w.notYet(pass.State.Fault, pass.Again)
		}
		select { // it serves again, and others go on just before
		case <-time.After(time.Until(pass.Again)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// account records what the turn showed of the account, and explains why it failed. If the
// account can't be used now, the error matches ErrNotYet.
func (w *once) account(ctx context.Context, began time.Time, a Answer, failed error) error {
	ctx = context.WithoutCancel(ctx)
	b, name, _ := w.breaker()
	if failed == nil {
		if a.Recovered {
			return nil // an earlier turn's
		}
		if _, err := b.Answered(ctx, w.Agent, began); err != nil {
			w.say(err.Error())
		}
		return nil
	}
	f := appserver.FaultOf(failed)
	switch {
	case f.Reason == agent.ContextFull:
		return advice.With(fmt.Errorf("%s: %w", w.Agent, failed), "--fresh starts a new thread")
	case !f.Reason.OfAccount():
		return nil
	}
	f.Account = name
	s, _, err := b.Trip(ctx, w.Agent, f)
	if err != nil {
		w.say(err.Error())
	}
	return w.notYet(f, s.Retry())
}

// notYet is the error for a message that the account's fault keeps from an answer.
func (w *once) notYet(f agent.Fault, retry time.Time) error {
	stays := "the prompt was not answered; give it again then"
	if w.Drain {
		stays = "the message stays"
	}
	err := fmt.Errorf("%s: %w: %s; %s", w.Agent, ErrNotYet, f, stays)
	switch {
	case f.Reason == agent.Budget:
		return advice.With(err, "`netsky needs` has the code with which its owner allows more")
	case f.Reason == agent.Login:
		next := "log in with `codex login`, then try again"
		if !retry.IsZero() {
			next += "; if you are logged in, try again at " + agent.Clock(retry.Add(time.Second), time.Now())
		}
		return advice.With(err, "%s", next)
	case f.UntilMS == 0 && !retry.IsZero():
		return advice.With(err, "try again at %s", agent.Clock(retry.Add(time.Second), time.Now()))
	}
	return err
}
