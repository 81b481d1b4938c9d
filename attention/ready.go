package attention

import (
	"strings"

	"netsky/work"
)

// Ready lists what the owner could do now about the agents' work, though nothing waits for it: check it, land it, or have it
// brought back from where no check and no landing looks.
func Ready(list []work.State) (ready []Command) {
	for _, st := range list {
		id := string(st.Agent)
		aside := strings.Join(st.Aside(), ", ")
		switch {
		case !st.Ready() && aside == "", st.Next == "":
		case !st.Ready():
			ready = append(ready, Command{id + " has work outside of its worktree: " + aside, st.Next})
		case st.Proof == "":
			ready = append(ready, Command{id + "'s work is committed, and no check is set", st.Next})
		case st.Proof == work.Checked:
			ready = append(ready, Command{id + "'s work is checked and can land", st.Next})
		default:
			ready = append(ready, Command{id + "'s work is committed and can be checked", st.Next})
		}
	}
	return ready
}
