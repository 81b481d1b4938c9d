package spawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/spawn/pane"
)

// watch waits for started agents to report that they are ready, or to die.
type watch struct {
	l    *Launcher
	list []prepared
	ends []Progress
	tell func(Progress)
	dirs [2]home.Mark // of reports and keepers
}

func (w *watch) end(i int, p Progress) {
	p.Agent = w.list[i].launch.Agent
	w.ends[i] = p
	w.tell(p)
}

// wait returns when the start of each agent has ended, or after the time allowed. It looks
// when the directories of reports and keepers have changed, and every 100 ms anyway.
// (inotify is no faster, and closing its watch costs more than the polling.)
func (w *watch) wait(ctx context.Context, allowed time.Duration) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, allowed)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		open := 0
		whole := n%int(lookAnyway/lookEvery) == 0
		if whole || w.changed() {
			for i := range w.list {
				if w.ends[i].Step == "" && !((whole || w.reported(i)) && w.look(ctx, i)) {
					open++
				}
			}
			if open == 0 {
				return
			}
		}
		select {
		case <-ctx.Done():
			w.giveUp(context.WithoutCancel(ctx), time.Since(began))
			return
		case <-tick.C:
		}
	}
}

const (
	lookEvery  = 2 * time.Millisecond
	lookAnyway = 100 * time.Millisecond
)

// changed reports whether a report or a keeper's record may have arrived since the last
// call.
func (w *watch) changed() bool {
	news := false
	for i, rel := range [...]string{home.ReportDir, home.KeeperDir} { // both must be read
		now := w.l.Home.Mark(rel)
		news = news || !w.dirs[i].Same(now)
		w.dirs[i] = now
	}
	return news
}

// reported reports whether agent i has reported anything: prepare has removed the reports
// of earlier starts.
func (w *watch) reported(i int) bool {
	_, err := os.Lstat(w.l.Home.Path(home.ReportDir, string(w.list[i].launch.Agent)+".json"))
	return err == nil
}

// look reports whether the start of agent i has ended.
func (w *watch) look(ctx context.Context, i int) bool {
	la := w.list[i].launch
	alive := w.list[i].keeper.Alive() // read first: it records before it ends
	k, err := w.l.keeperOf(la.Agent, la)
	switch {
	case err == nil && k.EndedMS != 0:
		w.fail(ctx, i, errors.New(k.How()))
		return true
	case !alive:
		w.fail(ctx, i, errors.New("its pane ended at once, with the keeper in it"))
		return true
	case err != nil || !k.Alive():
		// Wait for the keeper's record: without it, a moment later nothing would show which
		// process the agent is, or how it ended.
		return false
	case la.Silent:
		if !begun(k) {
			return false
		}
		w.end(i, Progress{Step: StepReady, State: agent.Busy, Note: onlyPane})
		return true
	}
	r, err := w.l.Home.LoadReport(la.Agent)
	if err != nil || r.Start != la.Start || !r.State.Ready() {
		return false
	}
	w.end(i, Progress{Step: StepReady, State: r.State, Note: r.Detail, Dialog: r.Dialog})
	return true
}

func (w *watch) fail(ctx context.Context, i int, err error) {
	p := Progress{Step: StepFailed, Err: err}
	list, ierr := w.l.Inspect(ctx)
	if st, ok := list.find(w.list[i].launch.Agent); ierr == nil && ok && st.pane != nil {
		lines, _ := w.l.lines(ctx, st, 2000) // the verdict does not depend on them
		p.Lines = pane.Edges(lines, 20)
	}
	w.end(i, p)
}

func (w *watch) giveUp(ctx context.Context, after time.Duration) {
	list, err := w.l.Inspect(ctx)
	for i := range w.list {
		if w.ends[i].Step != "" {
			continue
		}
		st, ok := list.find(w.list[i].launch.Agent)
		switch {
		case err != nil:
			w.fail(ctx, i, err)
		case !ok || !st.Alive():
			w.fail(ctx, i, errors.New("ended while starting: "+st.Evidence))
		default:
			w.end(i, Progress{Step: StepSlow, State: st.State,
				Note: fmt.Sprintf("not ready after %v: %s", after.Round(100*time.Millisecond), st.Evidence)})
		}
	}
}
