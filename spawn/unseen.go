package spawn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
)

// orphaned is how long a program whose session is gone may take to end: its keeper kills
// it after 5 s.
const orphaned = 7 * time.Second

// ErrUnknown is returned for an agent that can't be started because something of it runs,
// and can't be called up either.
var ErrUnknown = errors.New("neither up nor down")

// settled returns the tmux server's view and the agents' states, after waiting for
// programs of planned agents that are ending because their sessions have gone.
func (l *Launcher) settled(ctx context.Context, plans []Plan) (view, Statuses, error) {
	for end := time.Now().Add(orphaned); ; {
		v, err := l.view(ctx)
		if err != nil {
			return v, nil, err
		}
		states, err := l.inspect(v, nil)
		ending := slices.ContainsFunc(plans, func(p Plan) bool {
			st := states.Find(p.Agent)
			return st.State == agent.Unknown && st.pane == nil && !l.elsewhere(st.socket)
		})
		if err != nil || !ending || time.Now().After(end) {
			return v, states, err
		}
		select {
		case <-ctx.Done():
			return v, nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// wasUp returns the last step of an agent that is not started because it runs.
func wasUp(st Status) Progress {
	if st.State == agent.Unknown && st.Report.Start == "" {
		return Progress{Agent: st.Agent, Step: StepFailed, Err: fmt.Errorf("%w: %s", ErrUnknown, st.Evidence)}
	}
	return Progress{Agent: st.Agent, Step: StepAlready, State: st.State, Note: st.Detail, Dialog: st.Dialog, Runtime: st.Runtime, Dir: st.Dir}
}
