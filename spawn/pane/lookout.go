package pane

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/tmux"
)

// Look looks at the pane of an agent that has no receiver to report its state. With
// answer, which may be set only while the agent starts, a dialog whose yes the launch
// implies is answered, once under a start. Any other is recorded as the agent's state,
// waiting, until its receiver reports something else or a later look finds it gone. Look
// returns the dialog, with Keys if it was just answered or could be, and whether there is
// one; a dialog that was answered a moment ago and is then gone does not count.
func (o Lookout) Look(ctx context.Context, answer bool) (agent.Dialog, bool, error) {
	d, shown, _, err := o.look(ctx)
	if err != nil {
		return d, shown, err
	}
	if !shown {
		return d, false, o.gone()
	}
	// A screen may be half drawn, so one look is not enough.
	if proc.Sleep(ctx, dialogAgain) != nil {
		return agent.Dialog{}, false, ctx.Err()
	}
	again, shown, at, err := o.look(ctx)
	switch {
	case err != nil:
		return again, shown, err
	case !shown || !sameDialog(d, again):
		return agent.Dialog{}, false, nil // it is changing: the next look decides
	case d.Keys != nil && answer && free(at):
		_, err = o.answer(ctx, d)
		return d, true, err
	case o.going(d):
		return agent.Dialog{}, false, nil
	}
	return d, true, o.waits(d)
}

// At returns a Lookout for the pane in which the launch's program runs.
func (l *Panes) At(la agent.Launch, p tmux.Pane, r Screens) Lookout {
	return Lookout{l: l, launch: la, pane: p, r: r}
}

// Dismissing returns a Lookout whose answer is to close what the program has opened by
// itself, as its receiver would if it were there.
func (o Lookout) Dismissing() Lookout {
	if o.r != nil {
		o.r, o.answers = dismissing{o.r}, "Escape, as its receiver is gone"
	}
	return o
}

type dismissing struct{ Screens }

func (r dismissing) Dialog(screen string, l agent.Launch) (agent.Dialog, bool) {
	d, shown := r.Screens.Dialog(screen, l)
	d.Keys = nil
	if c, ok := r.Screens.(Dismissing); ok && c.Dismisses(d.Name) {
		d.Keys = []string{"Escape"}
	}
	return d, shown
}

// None returns a Lookout whose methods return err.
func None(err error) Lookout { return Lookout{err: err} }

// heard reports whether the agent's receiver is running: its reports are not overwritten.
func (o Lookout) heard() bool {
	_, held := o.l.Home.LockHolder(home.ReceiverLock(o.launch.Agent))
	return held
}

// waits records that the agent waits for a person.
func (o Lookout) waits(d agent.Dialog) error {
	if o.heard() {
		return nil
	}
	r, err := o.l.Home.LoadReport(o.launch.Agent)
	detail := d.String()
	if err == nil && r.Start == o.launch.Start && r.By == agent.ByPane && r.Detail == detail {
		return nil // the time since when it waits stays
	}
	return o.l.Home.SaveReport(o.launch.Agent, agent.Report{
		Start: o.launch.Start, State: agent.Waiting, SinceMS: time.Now().UnixMilli(), Evidence: Evidence, Detail: detail, Dialog: d.Name, By: agent.ByPane,
	})
}

// gone withdraws what a look had recorded.
func (o Lookout) gone() error {
	r, err := o.l.Home.LoadReport(o.launch.Agent)
	if err != nil || r.Start != o.launch.Start || r.By != agent.ByPane || o.heard() {
		return nil
	}
	return o.l.Home.Remove(home.ReportDir + "/" + string(o.launch.Agent) + ".json")
}

// Run looks every 250 ms until the agent has reported something itself or waits for a
// person.
func (o Lookout) Run(ctx context.Context) {
	tick := time.NewTicker(dialogEvery)
	defer tick.Stop()
	var last agent.Dialog
	for same := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r, err := o.l.Home.LoadReport(o.launch.Agent); err == nil && r.Start == o.launch.Start && r.State.Ready() {
			return
		}
		d, shown, at, err := o.look(ctx)
		if err != nil || !shown || o.going(d) {
			same = 0
			continue
		}
		if same > 0 && !sameDialog(d, last) {
			same = 0
		}
		last = d
		switch same++; {
		case same < 2:
		case d.Keys != nil && free(at):
			if yes, _ := o.answer(ctx, d); yes { // a failed answer is shown as waiting
				same = 0
			}
		case same >= dialogLooks && o.waits(d) == nil:
			return
		}
	}
}
