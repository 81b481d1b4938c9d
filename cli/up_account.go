package cli

import (
	"context"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/spawn"
	"netsky/watch"
)

// tryLogins has the accounts that refuse their login tried at once: the owner may have seen
// to it.
func (a *app) tryLogins(ctx context.Context, h home.Dir) {
	list, _ := breaker.List(h) // an unreadable one stops nobody
	for _, s := range list {
		if !s.Refuses(time.Now()) {
			continue
		}
		if _, err := breaker.Of(h, s.Account).Retry(ctx); err != nil {
			a.warn("%s: %s; it is not tried again now: %v", s.Account, s.Fault, err)
			continue
		}
		a.warn("%s: %s; it is tried again now", s.Account, s.Fault)
	}
}

// served refuses to let an agent start others on an account that serves nobody; the owner
// is only told.
func (u *upRun) served(starting []spawn.Plan) error {
	told := ""
	for _, p := range starting {
		la := agent.Launch{Agent: p.Agent, Dir: p.Dir, Env: p.Environ}
		if la.Env == nil {
			la.Env = u.a.environ
		}
		why, _ := watch.MayStart(u.l.Home, p.Runtime, la, time.Now())
		switch {
		case why != "" && u.self != agent.Owner:
			return exitError{exitPartly, fmt.Errorf("%s: not started, and nothing else was: %s; ask again then", p.Agent, why)}
		case why != "" && why != told:
			told = why
			u.a.warn("%s; agents on it start, but get no mail until then", why)
		}
	}
	return nil
}
