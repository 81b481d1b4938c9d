package spawn

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"netsky/agent"
	"netsky/spawn/pane"
	"netsky/tmux"
)

// A Silent runtime's program knows nothing of netsky: it reports no state, takes
// no mail by itself and acks nothing. It counts as ready once it has lived for a
// moment, is told of its mail by a line typed into its pane (Point), and is
// ended without being asked.
type Silent interface {
	Runtime
	Silent()
}

// livesFor is how long a silent program must have run to count as started: a wrong
// flag ends most within that.
const livesFor = time.Second

// onlyPane is what is known of a silent program that runs.
const onlyPane = "runs; nothing is known of it but its pane"

// begun reports whether a silent program has lived for long enough.
func begun(k agent.Keeper) bool { return time.Since(time.UnixMilli(k.StartedMS)) >= livesFor }

// judgeSilent tells a silent program's state by its pane, at this moment: there
// is nobody whose word could grow old.
func (l *Launcher) judgeSilent(st *Status, pane *tmux.Pane, k agent.Keeper) {
	switch {
	case pane == nil:
		st.State, st.Evidence = agent.Unknown, fmt.Sprintf("process %d runs", k.PID)
	case !begun(k):
		st.State, st.Since = agent.Starting, time.UnixMilli(k.StartedMS)
		st.Evidence = fmt.Sprintf("process %d runs since a moment ago", k.PID)
	case time.Since(pane.Activity) < l.times.Calm():
		st.State, st.Since = agent.Busy, time.Time{}
		st.Evidence = "its pane changes; no more is known"
	default:
		st.State, st.Since = agent.Idle, pane.Activity
		st.Evidence = "its pane is quiet; no more is known" // since when is Since: what counts time would be news each second
	}
	if st.Inbox+st.Claimed > 0 {
		st.Detail = l.panes().Told(st.Agent, st.Start)
	}
}

// Greeted reports whether a silent agent has taken mail under this start already:
// before it has, nothing has told it who it is.
func (l *Launcher) Greeted(id agent.ID, start string) bool { return pane.Greeted(l.Home, id, start) }

// Greet notes that it has.
func (l *Launcher) Greet(id agent.ID, start string) error { return pane.Greet(l.Home, id, start) }

// RunningLaunch is the launch of an agent whose program is running now, by its
// keeper's word; the error matches fs.ErrNotExist if there is none.
func (l *Launcher) RunningLaunch(id agent.ID) (agent.Launch, error) {
	la, err := l.Home.LoadLaunch(id)
	if err != nil {
		return la, err
	}
	k, err := l.keeperOf(id, la)
	if err == nil && (k.EndedMS != 0 || !k.Alive()) {
		err = fmt.Errorf("%s: its program is not running: %w", id, fs.ErrNotExist)
	}
	return la, err
}

// SilentLaunch is the RunningLaunch of a silent agent.
func (l *Launcher) SilentLaunch(id agent.ID) (agent.Launch, error) {
	la, err := l.RunningLaunch(id)
	if err == nil && !la.Silent {
		err = fmt.Errorf("%s: no silent program is running: %w", id, fs.ErrNotExist)
	}
	return la, err
}

// errSilent is why a silent agent is not asked to finish.
func errSilent(runtime string) error {
	return fmt.Errorf("its program (runtime %s) takes no requests", runtime)
}

var errNobody = errors.New("nobody takes its mail")
