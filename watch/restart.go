package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/spawn"
	"netsky/store"
	"netsky/watch/backoff"
)

const (
	checkWithin = time.Minute     // to find what prevents a start
	startWithin = time.Minute     // for tmux to make the sessions of a batch
	readyWithin = time.Second     // that the batch holds the lock "up"; the roster sees the rest
	lifeWithin  = 2 * time.Minute // for a restarted agent to report that it is ready
	togetherFor = 2 * time.Second // that a checked agent waits for others, to be started with them
	allWithin   = 8 * time.Second // the same after the death of all
)

// A restartWatch is what the loop knows of an agent's restarts, beside the record on disk.
// It outlives a start.
type restartWatch struct {
	known  bool // the record was looked for
	active bool // there is one

	checking bool
	plan     spawn.Plan // checked, and to be started with the next batch
	prep     *spawn.Preparation
	checked  time.Time // when; zero: it is not
}

// restarts counts deaths and starts agents again, those that are due together as one batch.
type restarts struct {
	*team
	launching bool        // a batch is being started
	due       *time.Timer // for revive, between ticks
	dueAt     time.Time   // when it fires; zero: at no set time
}

// restartable reports whether the watchdog starts the agent again when it dies.
func (w *Watchdog) restartable(st spawn.Status) bool {
	return w.o.Plan != nil && w.o.Runtimes()[st.Runtime] != nil && st.Wanted
}

// count counts the recorded death of an agent once, and schedules its restart. whole says
// that all agents died at once. It reports whether it has to be called again.
func (l *restarts) count(ctx context.Context, w *ward, whole bool) (again bool) {
	if !l.restartable(w.Status) {
		return false
	}
	rec, err := l.record(w)
	if err != nil || rec.Died == w.Start {
		return false
	}
	// The order matters: under the word that was just read, an up that replaces this start
	// either still runs or has written the new start.
	if l.atWork() {
		return true
	}
	if la, err := l.o.Launcher.Home.LoadLaunch(w.Agent); err == nil && la.Start != w.Start {
		return true
	}
	by := backoff.Crash
	if whole {
		by = backoff.Whole
	} else if l.outside(w) {
		by = backoff.Outside
	}
	l.ended(ctx, w, rec, cmp.Or(w.Detail, w.Evidence), by)
	return false
}

// wellAfter is how long a program must have run for a kill to be no crash of its own: one
// that grows until the system kills it does so sooner.
const wellAfter = time.Minute

// outside reports whether something else than netsky or its own fault has ended the agent: a
// signal that programs do not raise by mistake, after it had run for a while.
func (l *restarts) outside(w *ward) bool {
	h := l.o.Launcher.Home
	la, err := h.LoadLaunch(w.Agent)
	k, kerr := h.LoadKeeper(w.Agent)
	if err != nil || kerr != nil || la.Start != w.Start || k.Start != w.Start {
		return false
	}
	killed := k.Lost != "" || slices.Contains([]string{"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"}, k.Signal)
	return killed && k.EndedMS-la.StartedMS >= wellAfter.Milliseconds()
}

// ended counts a death.
func (l *restarts) ended(ctx context.Context, w *ward, rec backoff.Record, how string, by backoff.Cause) {
	if rec.Ended(w.Start, how, by, time.Now()) {
		text := fmt.Sprintf("crash loop: %d deaths within %.0f minutes, last %s; started again every %.0f minutes",
			backoff.LoopDeaths, backoff.LoopWithin.Minutes(), how, backoff.LoopEvery.Minutes())
		l.event(ctx, "loop-"+w.Start, store.LevelError, w.Agent, w.Start, text)
	}
	l.keep(w, rec)
}

// record returns the record as of now: the owner may have made it void.
func (l *restarts) record(w *ward) (backoff.Record, error) {
	r := w.restart
	rec, err := backoff.Load(l.o.Launcher.Home, w.Agent)
	if err != nil {
		return rec, err
	}
	r.known, r.active = true, !rec.Zero()
	return rec, nil
}

// keep saves the record.
func (l *restarts) keep(w *ward, rec backoff.Record) {
	w.restart.known, w.restart.active = true, !rec.Zero()
	if err := backoff.Save(l.o.Launcher.Home, w.Agent, rec); err != nil {
		l.o.Log.Warn("restarts", "agent", w.Agent, "error", err)
	}
}

// revive follows an agent that has died or was restarted: it checks what prevents its start
// once that is due, and whether a restart has brought it to life.
func (l *restarts) revive(ctx context.Context, w *ward) {
	r := w.restart
	if r.known && !r.active {
		return
	}
	rec, err := l.record(w)
	if err != nil || rec.Zero() || !l.restartable(w.Status) {
		return
	}
	now := time.Now()
	// A start that is to be replaced, as it did not come to life in time, may do so yet.
	if w.Alive() && (w.Start != rec.From || w.State.Ready()) && w.State != agent.Unknown {
		l.prove(ctx, w, rec, now)
		return
	}
	if w.Died() && w.Start == rec.Died {
		l.begin(ctx, w, rec, now)
	}
}

// prove looks for signs of life of a restarted agent.
func (l *restarts) prove(ctx context.Context, w *ward, rec backoff.Record, now time.Time) {
	stuck := rec.Died == w.Start // it did not come to life in time
	switch {
	case rec.Proved == w.Start:
		if !rec.Well(now) {
			return
		}
		l.event(ctx, "well-"+w.Start, store.LevelInfo, w.Agent, w.Start,
			fmt.Sprintf("healthy for %.0f minutes; its earlier deaths no longer count", backoff.Healthy.Minutes()))
		l.keep(w, backoff.Record{WordMS: rec.WordMS})
	case w.State.Ready():
		rec.Came(w.Start, now)
		if stuck {
			rec.Died = ""
		}
		text := "started again: " + w.State.Word() // by a service at the machine's start
		if rec.Tries > 0 {
			text = fmt.Sprintf("restarted: %s %s after attempt %d began", w.State.Word(), brief(now.Sub(time.UnixMilli(rec.TriedMS))), rec.Tries)
		}
		l.event(ctx, "proved-"+w.Start, store.LevelInfo, w.Agent, w.Start, text)
		l.keep(w, rec)
	case w.State != agent.Starting || rec.Tries == 0:
	case stuck:
		l.begin(ctx, w, rec, now)
	case now.Sub(time.UnixMilli(rec.TriedMS)) >= lifeWithin:
		how := fmt.Sprintf("not ready within %s", lifeWithin)
		l.event(ctx, "unproved-"+w.Start, store.LevelWarn, w.Agent, w.Start, fmt.Sprintf("restarted, but %s (attempt %d)", how, rec.Tries))
		l.ended(ctx, w, rec, how, backoff.Crash)
	}
}

// begin checks, beside the loop, what prevents the start of an agent whose restart is due.
func (l *restarts) begin(ctx context.Context, w *ward, rec backoff.Record, now time.Time) {
	r := w.restart
	if w.working || r.checking || !r.checked.IsZero() {
		return
	}
	if !rec.Due(now) {
		l.hasten(time.UnixMilli(rec.NextMS))
		return
	}
	if l.atWork() {
		return
	}
	if why, until := l.mayStart(w.Status, now); why != "" {
		if why != rec.Held {
			l.event(ctx, fmt.Sprintf("held-%s-%d", w.Start, rec.Tries), store.LevelWarn, w.Agent, w.Start, "not restarted: "+why)
		}
		rec.Hold(why, until)
		l.keep(w, rec)
		return
	}
	if w.Alive() { // it hangs in its start, which nothing but its end can undo
		rec.Begin(w.Start, now)
		l.keep(w, rec)
		l.restart(ctx, w, "it was "+rec.How)
		return
	}
	r.checking = true
	id := w.Agent
	l.work(ctx, w, func(ctx context.Context) func() {
		within, cancel := context.WithTimeout(ctx, checkWithin)
		defer cancel()
		var prep *spawn.Preparation
		plan, err := l.o.Plan(within, id, nil)
		plan.Agent = id
		if err == nil {
			prep, err = l.o.Launcher.Prepare(within, []spawn.Plan{plan})
		}
		return func() {
			r.checking = false
			l.hasten(time.Now())
			if err == nil {
				r.plan, r.prep, r.checked = plan, prep, time.Now()
				return
			}
			if rec, rerr := l.record(w); rerr == nil && rec.Died == w.Start {
				rec.Begin(w.Start, time.Now())
				l.startFailed(ctx, w, rec, err)
			}
		}
	})
}

// startFailed records why a restart that has begun started nothing.
func (l *restarts) startFailed(ctx context.Context, w *ward, rec backoff.Record, err error) {
	rec.Fail(firstLine(err), time.Now())
	l.event(ctx, fmt.Sprintf("failed-%s-%d", rec.From, rec.Tries), store.LevelWarn, w.Agent, rec.From,
		fmt.Sprintf("restart failed (attempt %d): %s; %s", rec.Tries, rec.Failed, rec.Next(time.Now())))
	l.keep(w, rec)
}

// launch starts the agents that were checked, agent0 first, as one batch. One batch is
// started at a time, and it takes a second longer than tmux at most: whether they come to
// life is seen by revive.
func (l *restarts) launch(ctx context.Context) {
	var list []*ward
	var first time.Time
	more := false
	for _, w := range l.wards {
		r := w.restart
		switch {
		case r.checking:
			more = true
		case r.checked.IsZero():
			more = more || l.alone && w.Wanted && w.Pane() == "" && l.restartable(w.Status)
		case !w.Died() || l.planned[w.Agent]:
			r.checked = time.Time{}
		default:
			list = append(list, w)
			if first.IsZero() || r.checked.Before(first) {
				first = r.checked
			}
		}
	}
	wait := togetherFor
	if l.alone {
		wait = allWithin
	}
	if len(list) == 0 || l.launching || more && time.Since(first) < wait {
		return
	}
	slices.SortFunc(list, func(a, b *ward) int { return agent.Compare(a.Agent, b.Agent) })
	o := spawn.UpOptions{By: agent.DaemonName, Wanted: true, Ticker: l.ticked(), ReadyWithin: readyWithin}
	for _, w := range list {
		r := w.restart
		r.checked = time.Time{}
		rec, err := l.record(w)
		if err != nil || rec.Died != w.Start {
			continue // the owner has acted
		}
		rec.Begin(w.Start, time.Now())
		l.keep(w, rec)
		l.event(ctx, fmt.Sprintf("restart-%s-%d", w.Start, rec.Tries), store.LevelInfo, w.Agent, w.Start,
			fmt.Sprintf("restarting (attempt %d): %s", rec.Tries, rec.How))
		if !l.alone || w.Agent.IsClone() { // the others are told that all died
			if err := Died(l.o.Launcher.Home, w.Agent, w.Start, rec.How); err != nil {
				l.o.Log.Warn("recall", "agent", w.Agent, "error", err)
			}
		}
		o.Plans = append(o.Plans, r.plan)
		if o.Prepared == nil {
			o.Prepared = r.prep
		} else {
			o.Prepared.Add(r.prep)
		}
	}
	if len(o.Plans) == 0 {
		return
	}
	if l.o.Setup != nil {
		o.Setup = l.o.Setup()
	}
	l.launching = true
	l.beside(ctx, func() func() {
		within, cancel := outlive(ctx, startWithin)
		defer cancel()
		ends, err := l.o.Launcher.Up(within, o)
		return func() { l.launched(ctx, o.Plans, ends, err) }
	})
}

// ticked reports whether this home has had a ticker, which is then wanted as long as a
// daemon is.
func (w *Watchdog) ticked() bool {
	_, err := w.o.Launcher.Home.LoadTicker()
	return err == nil
}

// launched records which restarts of a batch failed.
func (l *restarts) launched(ctx context.Context, plans []spawn.Plan, ends []spawn.Progress, err error) {
	l.launching = false
	l.Wake() // to see whether they live
	for i, p := range plans {
		w := l.wards[p.Agent]
		cause := err
		if i < len(ends) {
			if ends[i].Step != spawn.StepFailed && ends[i].Step != spawn.StepUnknown && ends[i].Step != "" {
				continue
			}
			cause = cmp.Or(ends[i].Err, err)
		}
		if w == nil || cause == nil || errors.Is(cause, spawn.ErrUnwanted) {
			continue
		}
		if rec, rerr := l.record(w); rerr == nil && rec.Died == rec.From && rec.Tries > 0 {
			l.startFailed(ctx, w, rec, cause)
		}
	}
}

// outlive returns a context for work that must not be left half done when the watchdog
// stops: it ends after that time, or three seconds after ctx.
func outlive(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(goneFor, cancel) })
	return longer, func() { stop(); cancel() }
}

// restart ends a start that is of no use and begins another; why is for the record, ""
// if it has lost its receiver.
func (l *restarts) restart(ctx context.Context, w *ward, why string) {
	w.receiver.idle = time.Time{}
	id, start := w.Agent, w.Start
	l.work(ctx, w, func(ctx context.Context) func() {
		within, cancel := outlive(ctx, checkWithin+startWithin)
		defer cancel()
		plan, err := l.o.Plan(within, id, nil)
		plan.Agent, plan.Start, plan.Why = id, start, why
		var end spawn.Progress
		if err == nil {
			end, err = l.o.Launcher.Restart(within, plan, agent.DaemonName, nil)
		}
		if err = cmp.Or(err, end.Err); err == nil {
			l.o.Log.Info("restart", "agent", id, "start", start, "step", end.Step)
			l.Wake()
			return nil
		}
		return func() {
			w.receiver.failed = firstLine(err)
			l.failed(ctx, w, "attend", fmt.Errorf("restart: %w", err))
		}
	})
}

// hasten has the restarts attended to at a time that need not be a tick's.
func (l *restarts) hasten(at time.Time) {
	if l.dueAt.IsZero() || at.Before(l.dueAt) {
		l.dueAt = at
		l.due.Reset(time.Until(at))
	}
}
