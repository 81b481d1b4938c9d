package cli

import (
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/claude"
	"netsky/cli/view"
	"netsky/codex"
	"netsky/home"
	"netsky/spawn"
)

// endForFresh ends an agent and forgets its conversation. It is called once nothing
// prevents the next start.
func (a *app) endForFresh(ctx context.Context, l *spawn.Launcher, id, self agent.ID) error {
	list, err := l.Inspect(ctx)
	if err != nil {
		return err
	}
	if st := list.Find(id); st.State != agent.Down && st.Pane() != "" {
		_, err = l.Down(ctx, spawn.DownOptions{
			Agents: []agent.ID{id}, By: string(self), Keep: a.keepRunning(l.Home), Report: view.Fresh(a.printer(false), st),
		})
		if err == nil && ctx.Err() != nil {
			err = fmt.Errorf("%s: ended, and not started again: %w", id, ctx.Err())
		}
		if err != nil {
			return err
		}
	}
	return forget(l.Home, id)
}

// tellLost reports the agents whose conversations can't be continued.
func (u *upRun) tellLost(ends []spawn.Progress) {
	for _, p := range ends {
		if la, err := u.l.Home.LoadLaunch(p.Agent); err == nil && la.Lost != (agent.Lost{}) && p.Step != spawn.StepAlready {
			u.a.warn("%s: %s", p.Agent, la.Lost)
		}
	}
}

// forget removes the files that name the agent's conversation, on any runtime.
func forget(h home.Dir, id agent.ID) error {
	return errors.Join(h.Remove(codex.StateFile(id)), claude.Forget(h, id))
}
