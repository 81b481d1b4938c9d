package spawn

import (
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/spawn/pane"
	"netsky/tmux"
)

// A Silent runtime's program knows nothing of netsky: it reports no state, takes no
// mail by itself and acks nothing. It counts as ready once it has run for a moment,
// learns of its mail from a line typed into its pane (Point), and is ended without
// being asked.
type Silent interface {
	Runtime
	Silent()
}

// livesFor is how long a silent program must have run to count as started: a wrong flag
// ends most programs within that time.
const livesFor = time.Second

// onlyPane is the detail of a running silent program.
const onlyPane = "running; reports nothing to netsky"

// begun reports whether a silent program has run for livesFor.
func begun(k agent.Keeper) bool { return time.Since(time.UnixMilli(k.StartedMS)) >= livesFor }

// judgeSilent infers a silent program's state from its pane as it is now; there is no
// report that could be stale.
func (f files) judgeSilent(st *Status, p *tmux.Pane, k agent.Keeper) {
	switch {
	case p == nil:
		st.State, st.Evidence = agent.Unknown, fmt.Sprintf("process %d runs", k.PID)
	case !begun(k):
		st.State, st.Since = agent.Starting, time.UnixMilli(k.StartedMS)
		st.Evidence = fmt.Sprintf("process %d has just started", k.PID)
	case f.l.Bus.Now().Sub(p.Activity) < pane.Calm:
		st.State, st.Since = agent.Busy, time.Time{}
		st.Evidence = "its pane is changing"
	default:
		st.State, st.Since = agent.Idle, p.Activity
		st.Evidence = "its pane is quiet" // since when is Since: what counts time would be news each second
	}
	if st.Inbox+st.Claimed <= 0 {
		return
	}
	st.Detail = f.l.panes().Told(st.Agent, st.Start)
	if why, since := f.l.panes().Ignored(st.Agent, st.Start); why != "" && st.State == agent.Idle {
		st.State, st.Since, st.Detail = agent.Blocked, since, why
	}
}

// errSilent reports why a silent agent is not asked to finish.
func errSilent(runtime string) error {
	return fmt.Errorf("its program (runtime %s) takes no requests", runtime)
}

var errNobody = errors.New("no process of it is reading its mail")
