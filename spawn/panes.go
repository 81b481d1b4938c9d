package spawn

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/spawn/pane"
	"netsky/tmux"
	"netsky/watch/backoff"
	"netsky/watch/hang"
)

// panes returns the panes of this home.
func (l *Site) panes() *pane.Panes {
	return &pane.Panes{Home: l.Home, Tmux: l.Tmux, Bus: l.Bus, Record: l.record}
}

// Lookout returns the lookout for an agent's pane. Without a pane, or if another start is
// running in it, all of the lookout's methods return that as an error.
func (l *Site) Lookout(st Status, r pane.Screens) pane.Lookout {
	if st.pane == nil {
		return pane.None(fmt.Errorf("%s: no tmux session: %w", st.Agent, fs.ErrNotExist))
	}
	la, err := l.Home.LoadLaunch(st.Agent)
	if err == nil && la.Start != st.Start {
		err = fmt.Errorf("%s: %w", st.Agent, ErrOtherStart)
	}
	if err != nil {
		return pane.None(err)
	}
	return l.panes().At(la, *st.pane, r)
}

// Pressed calls [pane.Panes.Pressed].
func (l *Site) Pressed(id agent.ID, start, name string) bool {
	return l.panes().Pressed(id, start, name)
}

// Point calls [pane.Panes.Point] for a running silent agent.
func (l *Site) Point(ctx context.Context, id agent.ID) (pane.Pointed, error) {
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

// Deaf reports whether the receiver of a running agent has exited.
func (s Status) Deaf() bool { return s.State == agent.Waiting && s.Report.By == agent.ByWatchdog }

// behindIt is between a dialog and what the agent does meanwhile.
const behindIt = "; behind it: "

// Shown returns the dialog in the agent's pane at which it waits, without Keys.
func (s Status) Shown() agent.Dialog {
	text, _, _ := strings.Cut(s.Detail, behindIt)
	return agent.Report{Dialog: s.Dialog, Detail: text}.Shown()
}

// judgeOverlay adds to an agent's report that its pane shows a dialog: a person is asked
// something, even if a turn runs behind it.
func (f files) judgeOverlay(st *Status) {
	if st.State != agent.Idle && st.State != agent.Busy {
		return
	}
	d, since, ok := f.l.panes().Overlay(st.Agent, st.Start)
	if !ok {
		return
	}
	behind := ""
	if st.State == agent.Busy {
		behind = behindIt + cmp.Or(st.Detail, "busy")
	}
	st.State, st.Since, st.Evidence, st.Detail, st.Dialog = agent.Waiting, since, pane.Evidence, d.String()+behind, d.Name
}

// lookouts watches the panes of the started agents whose programs can show dialogs, until
// stop is called, which waits.
func (u *up) lookouts(ctx context.Context, list []prepared, panes []tmux.Pane) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, p := range list {
		r, ok := p.plan.Runtime.(pane.Screens)
		at := slices.IndexFunc(panes, func(q tmux.Pane) bool { return q.Tags[TagStart] == p.launch.Start })
		if !ok || p.err != nil || at < 0 {
			continue
		}
		all.Go(func() { u.panes().At(p.launch, panes[at], r).Run(ctx) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// judgeWatched adds what the watchdog has found and decided.
func (f files) judgeWatched(st *Status) {
	if st.State == agent.Dead {
		loops := false
		if st.Restart, loops = backoff.Shown(f.l.Home, st.Agent, st.Start); loops {
			st.State = agent.CrashLooping
		}
	} else if words, since, hung := hang.Shown(f.l.Home, st.Agent, st.Start); hung && st.Alive() && !st.Asks() {
		st.State, st.Detail, st.Since = agent.Hung, words, since
	}
}

// Heard reports whether a receiver has reported for the agent under its start.
func (l *Site) Heard(st Status) bool {
	r, err := l.Home.LoadReport(st.Agent)
	return err == nil && st.Start != "" && r.Start == st.Start && r.State.Ready() && r.By != agent.ByPane
}

// Greeted reports whether a silent agent has taken mail under this start: before that,
// nothing has told it who it is.
func (l *Site) Greeted(id agent.ID, start string) bool { return pane.Greeted(l.Home, id, start) }

// Greet records that it has.
func (l *Site) Greet(id agent.ID, start string) error { return pane.Greet(l.Home, id, start) }

// RunningLaunch returns the launch of an agent whose program is running, by its keeper's
// record; the error matches fs.ErrNotExist if none is.
func (l *Site) RunningLaunch(id agent.ID) (agent.Launch, error) {
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

// SilentLaunch returns the RunningLaunch of a silent agent.
func (l *Site) SilentLaunch(id agent.ID) (agent.Launch, error) {
	la, err := l.RunningLaunch(id)
	if err == nil && !la.Silent {
		err = fmt.Errorf("%s: no silent program is running: %w", id, fs.ErrNotExist)
	}
	return la, err
}
