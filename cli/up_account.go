package cli

import (
	"fmt"
	"time"

	"netsky/agent"
	"netsky/spawn"
	"netsky/spawn/watchdog"
)

// served refuses to let an agent start others on an account that serves nobody; the owner
// is only told.
func (u *upRun) served(starting []spawn.Plan) error {
	told := ""
	for _, p := range starting {
		la := agent.Launch{Agent: p.Agent, Dir: p.Dir, Env: p.Environ}
		if la.Env == nil {
			la.Env = u.a.environ
		}
		why, _ := watchdog.MayStart(u.l.Home, p.Runtime, la, time.Now())
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
