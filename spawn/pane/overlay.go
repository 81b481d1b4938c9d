package pane

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
)

// Overlaid is implemented by a Screens whose agent keeps working behind a dialog of its
// program without knowing of it: its reports stay true, and only a look at its pane finds
// the dialog.
type Overlaid interface {
	Screens
	Overlaid()
}

// An overlay is state/screens/<agent>.json: the dialog on the screen of an agent that
// keeps working behind it. Each look renews it.
type overlay struct {
	Start   string `json:"start"`
	Name    string `json:"name"`
	Text    string `json:"text"`
	SinceMS int64  `json:"since_ms"`
	SeenMS  int64  `json:"seen_ms"`
}

// overlayKeeps is how long an overlay counts without being renewed.
const overlayKeeps = 30 * time.Second

// ScreensDir holds what was found in the panes of agents that don't know of it.
const ScreensDir = "state/screens"

func overlayFile(id agent.ID) string { return ScreensDir + "/" + string(id) + ".json" }

// LookOver checks whether a dialog covers the pane of an agent that reports its state
// itself, and records it for status. It reports whether one does, and never answers anything.
func (o Lookout) LookOver(ctx context.Context) (shown bool, err error) {
	if o.err != nil {
		return false, o.err
	}
	l, id, start := o.l, o.launch.Agent, o.launch.Start
	was, err := home.Load[overlay](l.Home, overlayFile(id))
	known := err == nil && was.Start == start
	d, shown, _, err := o.look(ctx)
	if err != nil {
		return false, err
	}
	if shown && !(known && was.Name == d.Name && was.Text == d.Text) {
		// A screen may be half drawn, so one look is not enough for news.
		if err := proc.Sleep(ctx, dialogAgain); err != nil {
			return false, err
		}
		again, still, _, err := o.look(ctx)
		if err != nil {
			return false, err
		}
		shown, known = still && sameDialog(d, again), false
	}
	if r, err := l.Home.LoadReport(id); err == nil && r.Start == start && r.State == agent.Waiting {
		shown = false // it is what the agent says itself that it waits at, and is gone when it says so
	}
	if !shown {
		return false, l.Home.Remove(overlayFile(id))
	}
	now := time.Now().UnixMilli()
	next := overlay{Start: start, Name: d.Name, Text: d.Text, SinceMS: now, SeenMS: now}
	if known {
		next.SinceMS = was.SinceMS
	}
	return true, l.Home.Save(overlayFile(id), next, false)
}

// Overlay returns the dialog that the last LookOver found on the screen of an agent under
// that start, and since when; ok is false if there was none, or the last look is too old.
func (l *Panes) Overlay(id agent.ID, start string) (d agent.Dialog, since time.Time, ok bool) {
	if !l.Home.Mark(overlayFile(id)).Exists() { // most have none, and this is asked often
		return d, since, false
	}
	o, err := home.Load[overlay](l.Home, overlayFile(id))
	if err != nil || o.Start != start || time.Since(time.UnixMilli(o.SeenMS)) > overlayKeeps {
		return d, since, false
	}
	return agent.Dialog{Name: o.Name, Text: o.Text}, time.UnixMilli(o.SinceMS), true
}
