package spawn

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"netsky/agent"
	"netsky/spawn/pane"
	"netsky/tmux"
)

// panes returns the panes of this home.
func (l *Launcher) panes() *pane.Panes {
	return &pane.Panes{Home: l.Home, Tmux: l.Tmux, Bus: l.Bus, Record: l.record}
}

// at returns the launch that runs in the pane of st.
func (l *Launcher) at(st Status) (agent.Launch, tmux.Pane, error) {
	if st.pane == nil {
		return agent.Launch{}, tmux.Pane{}, fmt.Errorf("%s: no tmux session: %w", st.Agent, fs.ErrNotExist)
	}
	la, err := l.Home.LoadLaunch(st.Agent)
	if err == nil && la.Start != st.Start {
		err = fmt.Errorf("%s: %w", st.Agent, ErrOtherStart)
	}
	return la, *st.pane, err
}

// LookForDialog calls [pane.Lookout.Look] for an agent's pane.
func (l *Launcher) LookForDialog(ctx context.Context, st Status, r pane.Screens, answer bool) (agent.Dialog, bool, error) {
	la, p, err := l.at(st)
	if err != nil {
		return agent.Dialog{}, false, err
	}
	return l.panes().At(la, p, r).Look(ctx, answer)
}

// LookOver calls [pane.Lookout.LookOver] for an agent's pane.
func (l *Launcher) LookOver(ctx context.Context, st Status, r pane.Overlaid) (agent.Dialog, time.Time, error) {
	la, p, err := l.at(st)
	if err != nil {
		return agent.Dialog{}, time.Time{}, err
	}
	return l.panes().At(la, p, r).LookOver(ctx)
}

// Question calls [pane.Panes.Question] for an agent's pane.
func (l *Launcher) Question(ctx context.Context, st Status, r pane.Deciding) (agent.Dialog, bool, error) {
	la, p, err := l.at(st)
	if err != nil {
		return agent.Dialog{}, false, err
	}
	return l.panes().Question(ctx, la, p, r)
}

// Decide calls [pane.Panes.Decide] for an agent's pane.
func (l *Launcher) Decide(ctx context.Context, st Status, r pane.Deciding, want agent.Dialog, allow bool) error {
	la, p, err := l.at(st)
	if err != nil {
		return err
	}
	return l.panes().Decide(ctx, la, p, r, want, allow)
}

// Pressed calls [pane.Panes.Pressed].
func (l *Launcher) Pressed(id agent.ID, start, name string) bool {
	return l.panes().Pressed(id, start, name)
}

// Point calls [pane.Panes.Point] for a running silent agent.
func (l *Launcher) Point(ctx context.Context, id agent.ID) (pane.Pointed, error) {
	la, err := l.SilentLaunch(id)
	if err != nil {
		return pane.Pointed{Again: pane.LookAgain}, err
	}
	return l.panes().Point(ctx, la, func(ctx context.Context) (tmux.Pane, bool, error) {
		v, err := l.view(ctx)
		s, ok := v.agents[id]
		return s.Pane, ok && s.start == la.Start, err
	})
}

// Changed returns when the agent's pane last changed, in whole seconds; zero without a
// pane.
func (s Status) Changed() time.Time {
	if s.pane == nil {
		return time.Time{}
	}
	return s.pane.Activity
}

// judgeOverlay adds to an agent's report that its pane shows a dialog.
func (l *Launcher) judgeOverlay(st *Status) {
	if st.State != agent.Idle && st.State != agent.Busy {
		return
	}
	d, since, ok := l.panes().Overlay(st.Agent, st.Start)
	switch {
	case !ok:
	case st.State == agent.Busy:
		st.Detail = joinDetail(st.Detail, "its pane shows a dialog: "+d.String())
	default:
		st.State, st.Since, st.Evidence, st.Detail, st.Dialog = agent.Waiting, since, pane.Evidence, d.String(), d.Name
	}
}

func joinDetail(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// lookouts watches the panes of the started agents whose programs can show dialogs, until
// stop is called, which waits.
func (l *Launcher) lookouts(ctx context.Context, list []prepared, panes []tmux.Pane) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, p := range list {
		r, ok := p.plan.Runtime.(pane.Screens)
		at := slices.IndexFunc(panes, func(q tmux.Pane) bool { return q.Tags[TagStart] == p.launch.Start })
		if !ok || p.err != nil || at < 0 {
			continue
		}
		all.Go(func() { l.panes().At(p.launch, panes[at], r).Run(ctx) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}
