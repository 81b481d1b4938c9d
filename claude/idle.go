package claude

import (
	"context"

	"netsky/agent"
)

// Idle reports whether the launch's Claude Code, process pid, runs no turn, asks nothing
// and has nothing running in the background; why says what it does instead, or why that is
// unknown. It relies on Claude Code's own registry.
func (r *Runtime) Idle(_ context.Context, l agent.Launch, pid int) (idle bool, why string) {
	s, err := FindSession(configDir(l.Env), pid)
	switch {
	case err != nil:
		return false, err.Error()
	case s.Status == statusIdle || s.Status == "": // "" until its first key
		return true, ""
	case s.WaitingFor != "":
		return false, s.Status + ": " + s.WaitingFor
	}
	return false, s.Status
}
