package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"netsky/agent"
	"netsky/claude"
	"netsky/codex"
	"netsky/home"
	"netsky/spawn"
)

// Conversation returns the conversation that a start of an agent on its last runtime
// continues, "" if it has none yet. An error says why it can't be continued.
func Conversation(h home.Dir, id agent.ID) (string, error) {
	la, err := h.LoadLaunch(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	switch la.Runtime {
	case "codex":
		return codex.Conversation(h, id)
	case "claude":
		s, err := claude.LoadState(h, id)
		if err != nil || !s.Used {
			return "", err
		}
		if _, err := os.Stat(s.Transcript); err != nil {
			return "", fmt.Errorf("its conversation %s can't be continued: %w", s.Session, err)
		}
		return s.Session, nil
	}
	return "", nil
}

// Behind returns the conversation that a start of an agent leaves behind, as it was in another directory: Claude Code
// continues one only where it began. The directory is "" if there is none.
func Behind(h home.Dir, one spawn.Plan) (session, dir string) {
	s, err := claude.LoadState(h, one.Agent)
	if err != nil || one.Runtime.Name() != "claude" || !s.Used || s.Dir == one.Dir {
		return "", ""
	}
	return s.Session, s.Dir
}
