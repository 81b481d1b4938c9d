package claude

import (
	"netsky/agent"
	"netsky/home"
)

// Message returns the id of the first message in the turn that the start works on, ""
// if that is unknown: a person may have typed at its pane.
func (r *Runtime) Message(id agent.ID, start string) string {
	return home.Events(r.Home).InTurn(id, start)
}
