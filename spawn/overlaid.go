package spawn

import (
	"context"
	"time"

	"netsky/agent"
)

// Overlaid is what a Screens may be whose agent works on behind a dialog of its
// program's, and knows nothing of it: what it reports is true all the same, and
// that a dialog stands there is found out by a look at its pane.
type Overlaid interface {
	Screens
	Overlaid()
}

// An overlay is state/screens/<agent>.json: the dialog that stands on the screen
// of an agent that works on behind it. Who looks renews it.
type overlay struct {
	Start   string `json:"start"`
	Name    string `json:"name"`
	Text    string `json:"text"`
	SinceMS int64  `json:"since_ms"`
	SeenMS  int64  `json:"seen_ms"`
}

// overlayKeeps is how long an overlay counts that nobody has renewed.
const overlayKeeps = 30 * time.Second

func overlayFile(id agent.ID) string { return "state/screens/" + string(id) + ".json" }

// LookOver looks whether a dialog stands in the pane of an agent that reports its
// state itself, and puts it down for status. It returns the dialog, and since
// when it stands there. Nothing is ever answered.
func (l *Launcher) LookOver(ctx context.Context, st Status, r Overlaid) (d agent.Dialog, since time.Time, err error) {
	o, err := l.lookoutAt(st, r)
	if err != nil {
		return d, since, err
	}
	was, err := load[overlay](l.Home, overlayFile(st.Agent))
	known := err == nil && was.Start == st.Start
	d, shown, _, err := o.look(ctx)
	if err != nil {
		return d, since, err
	}
	if shown && !(known && was.Name == d.Name && was.Text == d.Text) {
		// A screen may be half drawn, so nothing new rests on one look.
		select {
		case <-ctx.Done():
			return agent.Dialog{}, since, ctx.Err()
		case <-time.After(dialogAgain):
		}
		again, still, _, err := o.look(ctx)
		if err != nil {
			return d, since, err
		}
		shown, known = still && sameDialog(d, again), false
	}
	if !shown {
		return agent.Dialog{}, since, l.Home.Remove(overlayFile(st.Agent))
	}
	now := time.Now().UnixMilli()
	next := overlay{Start: st.Start, Name: d.Name, Text: d.Text, SinceMS: now, SeenMS: now}
	if known {
		next.SinceMS = was.SinceMS
	}
	return d, time.UnixMilli(next.SinceMS), save(l.Home, overlayFile(st.Agent), next)
}

// Changed is when the agent's pane has changed last, in whole seconds; zero
// without a pane.
func (s Status) Changed() time.Time {
	if s.pane == nil {
		return time.Time{}
	}
	return s.pane.Activity
}

// judgeOverlay adds to what an agent reports that a dialog stands on its screen.
func (l *Launcher) judgeOverlay(st *Status) {
	if st.State != agent.Idle && st.State != agent.Busy {
		return
	}
	o, err := load[overlay](l.Home, overlayFile(st.Agent))
	if err != nil || o.Start != st.Start || time.Since(time.UnixMilli(o.SeenMS)) > overlayKeeps {
		return
	}
	what := dialogDetail(agent.Dialog{Name: o.Name, Text: o.Text})
	if st.State == agent.Busy {
		st.Detail = joinDetail(st.Detail, "a dialog stands on its screen: "+what)
		return
	}
	st.State, st.Since, st.Evidence, st.Detail = agent.Waiting, time.UnixMilli(o.SinceMS), itsPane, what
}

func joinDetail(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
