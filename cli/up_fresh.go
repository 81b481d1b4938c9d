package cli

import (
	"context"
	"errors"

	"netsky/agent"
	"netsky/codex"
	"netsky/spawn"
	"netsky/spawn/claude"
)

// endForFresh ends an agent whose next start is to be a clean one.
func (a *app) endForFresh(ctx context.Context, id agent.ID) error {
	l, err := a.launcher()
	if err != nil {
		return err
	}
	list, err := l.Inspect(ctx)
	if err != nil {
		return err
	}
	if err := forget(l.Home, id); err != nil {
		return err
	}
	if st := list.Find(id); st.State == agent.Down || st.Pane() == "" {
		return nil
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	_, err = l.Down(ctx, spawn.DownOptions{Agents: []agent.ID{id}, By: string(self), Keep: a.keepRunning(l.Home)})
	if err != nil {
		return err
	}
	return forget(l.Home, id) // written again as it ended
}

// forget removes what names the agent's conversation, whatever it ran on.
func forget(h agent.Home, id agent.ID) error {
	return errors.Join(h.Remove(codex.StateFile(id)), claude.Forget(h, id))
}
