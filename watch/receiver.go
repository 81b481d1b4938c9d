package watch

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/spawn"
	"netsky/spawn/pane"
)

const (
	attendEvery = 2 * time.Second
	attendLate  = 15 * time.Second // once an agent has had no receiver for a while
	goneFor     = 3 * time.Second  // how long a receiver must be away to count as gone
	sureAfter   = time.Second      // between two looks that find an agent idle
)

// A receiverWatch is what is known of an agent's receiver.
type receiverWatch struct {
	holder home.Holder // of its mailbox, while the holder lives
	heard  bool        // a receiver has held it under this start
	since  time.Time   // when it was first seen without one; zero: it has one
	next   time.Time   // when to look again
	idle   time.Time   // since when it has been idle
	failed string      // why the last restart failed

	dialogWatch
}

func receiverKey(start string) string { return "receiver " + start }

// receivers looks after agents whose programs run: their receivers and their dialogs.
type receivers struct {
	*team
	restarts *restarts
}

// attend looks after an agent whose program runs. What dialog its screen shows is found, which
// status shows. If its receiver has died, it is restarted as
// soon as it is idle, with its conversation; until then its mail waits, and status shows
// that.
func (l *receivers) attend(ctx context.Context, w *ward) {
	r := l.o.Runtimes()[w.Runtime]
	served, _ := r.(spawn.Served)
	screens, _ := r.(pane.Screens)
	if served == nil && screens == nil {
		return
	}
	c := &w.receiver
	switch {
	case w.working:
	case !w.Alive():
		c.since, c.idle = time.Time{}, time.Time{}
	case l.held(w):
		l.overlaid(ctx, w, r)
	case time.Now().Before(c.next):
	case !needsReceiver(w.Status):
		c.since, c.idle = time.Time{}, time.Time{}
	default:
		l.work(ctx, w, l.seek(w, screens, served))
	}
}

// needsReceiver reports whether to act on an agent without a receiver.
func needsReceiver(st spawn.Status) bool {
	return st.Alive() && st.Wanted && st.Pane() != "" && (st.State != agent.Unknown || st.Report.Start != "") // of which its receiver has reported
}

// held reports whether the mailbox has its receiver. The lock is read only until a
// receiver holds it, and after its death.
func (l *receivers) held(w *ward) bool {
	c := &w.receiver
	if c.holder.PID == 0 {
		who, ok := l.o.Launcher.Home.LockHolder(home.ReceiverLock(w.Agent))
		if !ok {
			return false
		}
		if who.Passing() {
			return true // without evidence of a receiver
		}
		if l.watcher.Add(receiverKey(w.Start), who.Process) == nil {
			c.holder = who
		}
	}
	c.heard, c.since, c.idle, c.next = true, time.Time{}, time.Time{}, time.Time{}
	return true
}

// seek returns the work for an agent that seems to run without a receiver: it looks at its
// pane and asks its runtime whether it may be ended.
func (l *receivers) seek(w *ward, screens pane.Screens, served spawn.Served) func(context.Context) func() {
	id, start, asked := w.Agent, w.Start, time.Now()
	c := w.receiver // a copy
	return func(ctx context.Context) func() {
		now, err := l.roster.since(ctx, asked)
		if err != nil || now.err != nil {
			return nil // if it is unknown what runs, look reports that
		}
		st := now.list.Find(id)
		if st.Start != start || !needsReceiver(st) {
			return func() { w.receiver.since, w.receiver.idle = time.Time{}, time.Time{} }
		}
		found := findings{heard: c.heard || l.o.Launcher.Heard(st) || l.hadReceiver(st)}
		gone := !c.since.IsZero() && time.Since(c.since) >= goneFor
		if screens != nil {
			lookout := l.o.Launcher.Lookout(st, screens)
			answer := st.State == agent.Starting
			if !answer && found.heard && gone {
				lookout, answer = lookout.Dismissing(), true
			}
			_, found.shown, err = lookout.Look(ctx, answer)
		}
		if err == nil && !found.shown && served != nil && found.heard && gone {
			found.orphan = true
			found.idle, err = l.orphan(ctx, st, served, c.failed)
		}
		if late := st.State == agent.Starting && time.Since(st.Since) >= agent.StartsWithin; late && err == nil && !found.shown {
			err = l.mute(ctx, st)
		}
		return func() { l.found(ctx, w, found, err) }
	}
}

// findings are the results of seek.
type findings struct {
	heard  bool
	shown  bool // a dialog is on the screen
	orphan bool // its receiver is gone
	idle   bool
}

// found acts on the results of seek.
func (l *receivers) found(ctx context.Context, w *ward, f findings, err error) {
	c := &w.receiver
	if c.since.IsZero() {
		c.since = time.Now()
	}
	if time.Since(c.since) > time.Minute && !f.orphan { // the turn of an orphan may end at any moment
		c.next = time.Now().Add(attendLate)
	}
	l.failed(ctx, w, "attend", err)
	if err != nil {
		return
	}
	c.heard = f.heard
	if f.shown || !f.idle {
		c.idle = time.Time{}
	}
	if f.orphan && f.idle {
		if c.idle.IsZero() {
			c.idle = time.Now()
		}
		if time.Since(c.idle) >= sureAfter && l.o.Plan != nil {
			l.replace(ctx, w)
		}
	}
}

// hadReceiver reports whether a receiver has held the mailbox since the agent's program
// started: one may die before it is seen here or has reported anything.
func (l *receivers) hadReceiver(st spawn.Status) bool {
	last, err := l.o.Launcher.Home.LastHolder(home.ReceiverLock(st.Agent))
	if err != nil || last.Passing() {
		return false
	}
	program, err := proc.Find(st.PID)
	return err == nil && last.Start >= program.Start
}

// orphan makes status show that an agent's receiver is gone, and reports whether the agent
// is idle.
func (l *receivers) orphan(ctx context.Context, st spawn.Status, r spawn.Served, failed string) (idle bool, err error) {
	gone := "its receiver has exited; restarting once idle"
	if failed != "" {
		gone = "its receiver has exited and the restart failed: " + failed
	}
	la, err := l.o.Launcher.Home.LoadLaunch(st.Agent) // with the environment, which names the runtime's state directory
	if err != nil || la.Start != st.Start {
		return false, err
	}
	idle, why := r.Idle(ctx, la, st.PID)
	if !idle && why != "" {
		gone += " (" + why + ")"
	}
	return idle, noteGone(l.o.Launcher.Home, st, gone)
}

// replace restarts an idle agent that has no receiver, unless it was restarted just now
// or may not be started.
func (l *receivers) replace(ctx context.Context, w *ward) {
	now := time.Now()
	rec, err := l.restarts.record(w)
	if err != nil || rec.Tries > 0 && !rec.Due(now) {
		return
	}
	if why, _ := l.mayStart(w.Status, now); why != "" {
		w.receiver.failed = why
		return
	}
	rec.Begin(w.Start, now)
	l.restarts.keep(w, rec)
	l.restarts.restart(ctx, w, "")
}

// nobodys is the evidence of a report about an agent whose receiver has gone.
const nobodys = "no receiver holds its mailbox"

// mute makes status show what is in the pane of a start that has not reported for a while.
func (l *receivers) mute(ctx context.Context, st spawn.Status) error {
	lines, err := l.o.Launcher.LastLines(ctx, st, 2000)
	if err != nil {
		return err
	}
	lines = slices.DeleteFunc(lines, func(s string) bool { return !strings.ContainsFunc(s, unicode.IsLetter) })
	shows := "its pane shows nothing"
	if len(lines) > 0 {
		shows = "its pane shows: " + envelope.Line(strings.Join(pane.Edges(lines, 6), " / "), 300)
	}
	return note(l.o.Launcher.Home, st, agent.Report{State: agent.Starting, SinceMS: st.Since.UnixMilli(), Evidence: st.Evidence, Detail: shows})
}

// noteGone records that the agent's program runs without its receiver, and what is done
// about it.
func noteGone(h home.Dir, st spawn.Status, what string) error {
	return note(h, st, agent.Report{State: agent.Waiting, SinceMS: time.Now().UnixMilli(), Evidence: nobodys, Detail: what})
}

// note records what the watchdog has found of an agent whose program runs without a
// receiver. It does not overwrite the report of one that runs.
func note(h home.Dir, st spawn.Status, r agent.Report) error {
	if _, held := h.LockHolder(home.ReceiverLock(st.Agent)); held {
		return nil
	}
	before, err := h.LoadReport(st.Agent)
	if err == nil && before.Start == st.Start && before.By == agent.ByWatchdog && before.State == r.State {
		if before.Detail == r.Detail {
			return nil
		}
		r.SinceMS = before.SinceMS
	}
	r.Start, r.By = st.Start, agent.ByWatchdog
	return h.SaveReport(st.Agent, r)
}

// overlaidEvery is how often the screen of an agent that keeps working behind a dialog
// is looked at.
const overlaidEvery = 5 * time.Second

// A dialogWatch is what is known of the dialogs of an agent that does not know of them.
type dialogWatch struct {
	over    time.Time // when the screen was last checked
	overlay bool      // one was there
}

// overlaid looks at the screen of an agent with a receiver for a dialog that covers it
// without the agent knowing of it, which status shows then.
func (l *receivers) overlaid(ctx context.Context, w *ward, r spawn.Runtime) {
	overlaid, _ := r.(pane.Overlaid)
	last, stood := w.receiver.over, w.receiver.overlay
	if overlaid == nil || time.Since(last) < overlaidEvery {
		return
	}
	id, start, asked := w.Agent, w.Start, time.Now()
	l.work(ctx, w, func(ctx context.Context) func() {
		now, err := l.roster.since(ctx, asked)
		st := now.list.Find(id)
		if err != nil || now.err != nil || st.Start != start || !st.Alive() {
			return nil // if it is unknown what runs, look reports that
		}
		// tmux reports whole seconds.
		if st.Pane() != "" && (stood || !st.Changed().Before(last.Add(-2*time.Second))) {
			if shown, lerr := l.o.Launcher.Lookout(st, overlaid).LookOver(ctx); lerr == nil {
				stood = shown
			} else {
				err = lerr
			}
		}
		return func() {
			w.receiver.over, w.receiver.overlay = asked, stood
			l.failed(ctx, w, "attend", err)
		}
	})
}
