package claude

import "netsky/agent"

// Message is the id of the first message in the turn that the start is at, "" if that is
// not known: a person may have typed at its pane.
func (r *Runtime) Message(id agent.ID, start string) string { return r.Home.InTurn(id, start) }
