package fleet

import (
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/claude"
	"netsky/codex"
	"netsky/home"
	"netsky/spawn"
)

// endForFresh ends an agent and forgets its conversation. It is called once nothing prevents the
// next start.
func (s *starter) endForFresh(id agent.ID) error {
	list, err := s.Launcher.Inspect(s.ctx)
	if err != nil {
		return err
	}
	if st := list.Find(id); st.State != agent.Down && st.Pane() != "" {
		_, err = s.Launcher.Down(s.ctx, spawn.DownOptions{
			Agents: []agent.ID{id}, By: string(s.Actor), Report: s.ending(st),
		})
		if err == nil && s.ctx.Err() != nil {
			err = fmt.Errorf("%s: ended, and not started again: %w", id, s.ctx.Err())
		}
		if err != nil {
			return err
		}
	}
	return Forget(s.Home, id)
}

// Forget removes the files that name the agent's conversation, on any runtime.
func Forget(h home.Dir, id agent.ID) error {
	return errors.Join(h.Remove(codex.StateFile(id)), claude.Forget(h, id))
}
