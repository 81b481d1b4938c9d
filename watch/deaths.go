package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/spawn"
	"netsky/store"
)

// A deathWatch says how much of a start is recorded.
type deathWatch struct {
	known   bool        // it was seen before
	state   agent.State // the last one recorded
	watched bool        // its death will be reported
	settled bool        // it has died, and its keeper had the time to record how
	again   bool        // it has died, and was looked at once more
	started bool        // its start is recorded

	finished bool // what an interrupted down left of it was ended, which is tried once
}

// deaths records the ends and the states of agents.
type deaths struct {
	*team
	restarts *restarts
}

// follow records how agents ended, with their last lines, and the states they report, and
// ends what an interrupted down left of one. It reports whether another look is needed
// soon; the error says why one of them can't be followed.
func (l *deaths) follow(ctx context.Context) (soon bool, failed error) {
	gone := l.gone(ctx)
	soon = gone && !l.alone
	for _, st := range l.last.list {
		w := l.wards[st.Agent]
		if w == nil {
			continue
		}
		if l.planned[st.Agent] {
			soon = true
			continue
		}
		unsettled, err := l.followOne(ctx, w, gone)
		if w.Died() && w.death.state == agent.Dead {
			unsettled = l.restarts.count(ctx, w, gone) || unsettled
		}
		if err != nil {
			l.o.Log.Warn("follow", "agent", st.Agent, "error", err)
			failed = cmp.Or(failed, err)
		}
		if w.death.known && st.Finished() && !w.death.finished {
			if w.death.finished, err = l.o.Launcher.Finish(ctx, st); err != nil {
				l.o.Log.Warn("finish", "agent", st.Agent, "error", err)
			}
			unsettled = unsettled || !w.death.finished
		}
		soon = soon || unsettled
	}
	return soon, failed
}

// gone reports whether several agents are wanted up and none has a session any more: that
// is recorded as one event, not as the death of each.
func (l *deaths) gone(ctx context.Context) bool {
	var names []string
	var down []Down
	first := ""
	for _, st := range l.last.list {
		switch {
		case l.planned[st.Agent]:
			return false
		case st.Pane() != "":
			l.alone = false
			return false
		case st.State == agent.Starting:
			return false // an up is running
		case st.Wanted && st.Start != "":
			names = append(names, string(st.Agent))
			down = append(down, Down{Agent: st.Agent, SinceMS: max(st.Since.UnixMilli(), 0)})
			first = cmp.Or(first, st.Start)
		}
	}
	if len(names) < 2 {
		return false
	}
	if l.atWork() {
		return true // an up that brings them back is about to start; else it is recorded later
	}
	if !l.alone {
		l.alone = true
		if err := Fell(l.o.Launcher.Home, down); err != nil {
			l.o.Log.Warn("recall", "error", err)
		}
		l.event(ctx, "gone-"+first, store.LevelError, "", "", "all tmux sessions have ended: "+strings.Join(names, ", "))
		if slices.ContainsFunc(l.last.list, l.restartable) {
			l.fell.Store(&attention.Notice{
				ID: "gone-" + first, Kind: attention.Gone, About: agent.ID(names[0]), Phone: true,
				Text: "All tmux sessions ended at once: " + strings.Join(names, ", ") + ". " + l.after(names) + "; `netsky watchdog events` shows how that went.",
			})
		}
	}
	return true
}

// after says when the agents are started again.
func (l *deaths) after(names []string) string {
	for _, st := range l.last.list {
		if why, _ := l.mayStart(st, time.Now()); why != "" && slices.Contains(names, string(st.Agent)) {
			return "They are restarted with their conversations, agent0 first, those on an account that serves nobody when it does again (" + why + ")"
		}
	}
	return "They are restarted with their conversations, agent0 first"
}

// followOne watches the agent's program and records a change of its state. It reports
// whether another look is needed soon.
func (l *deaths) followOne(ctx context.Context, w *ward, gone bool) (unsettled bool, err error) {
	d := &w.death
	if !d.known {
		if w.Alive() {
			k, err := l.o.Launcher.Home.LoadKeeper(w.Agent)
			if err != nil || k.Start != w.Start {
				return w.State == agent.Starting, nil
			}
			if err := l.watcher.Add(w.Start, k.Process); err != nil {
				return false, err
			}
			d.watched = true
		}
		d.known = true
	}
	if d.watched && !d.started {
		d.started = l.recordStart(ctx, w.Status)
	}
	state := w.State
	if w.Died() {
		state = agent.Dead
	}
	if w.Lost && w.Died() {
		noted, err := l.o.Launcher.NoteLost(w.Agent, w.Start)
		if noted || errors.Is(err, home.ErrLocked) {
			return true, nil // the next look shows it
		}
		if err != nil { // it is recorded anyway
			l.o.Log.Warn("its keeper was killed", "agent", w.Agent, "error", err)
		}
	}
	if d.state == state {
		return false, nil
	}
	if w.State == agent.Down && !l.recordEnd(ctx, w.Status) {
		return false, nil
	}
	if state == agent.Dead && w.Detail == "" && !d.settled {
		d.settled = !d.watched // the keeper has until the next look
		return true, nil
	}
	if state == agent.Dead && !gone && !d.again {
		d.again = true // the other sessions may be ending too, one after another; with a pane it was seen before that
		return true, nil
	}
	d.state = state
	switch state {
	case agent.Dead:
		if s, err := l.o.Records.Session(ctx, w.Start); err == nil && s.State == agent.Down && s.Ended != 0 {
			break // a down has ended it, and an up wants it again but has not started it yet
		}
		end, log := l.o.Launcher.Death(ctx, w.Status)
		ops := []store.Op{end}
		if !gone {
			ops = append(ops, log)
		}
		l.o.Records.Record(ctx, ops...)
	case agent.Down:
	default:
		l.o.Records.Record(ctx, store.SessionState{Start: w.Start, Actor: w.Agent, State: w.State, PID: w.PID})
	}
	return false, nil
}

// atWork reports whether an up or a down is running, which records what it starts and
// ends. It is called only when something is not recorded.
func (w *Watchdog) atWork() bool {
	held, err := w.o.Launcher.Home.Locked(home.UpLock)
	return err != nil || held
}

// recordStart records a start that the up which made it did not live to record, or did not
// learn of because tmux answered too late. It reports whether the start is recorded.
func (l *deaths) recordStart(ctx context.Context, st spawn.Status) bool {
	if s, err := l.o.Records.Session(ctx, st.Start); err == nil && s.Runtime != "" {
		return true
	} else if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false
	}
	if l.atWork() {
		return false
	}
	la, err := l.o.Launcher.Home.LoadLaunch(st.Agent)
	if err != nil || la.Start != st.Start {
		return true // nothing more is known of it
	}
	l.o.Records.Record(ctx, spawn.Started(la, "", string(st.Agent), st.PID)...)
	return true
}

// recordEnd records the end of an agent that is down as wanted if the down that ended it
// did not. It reports whether the end is recorded.
func (l *deaths) recordEnd(ctx context.Context, st spawn.Status) bool {
	switch s, err := l.o.Records.Session(ctx, st.Start); {
	case errors.Is(err, store.ErrNotFound), err == nil && s.Ended != 0:
		return true
	case err != nil:
		return false
	}
	if l.atWork() {
		return false
	}
	end := store.EndSession{Start: st.Start, Actor: st.Agent, State: agent.Down, Reason: "down"}
	if k, err := l.o.Launcher.Home.LoadKeeper(st.Agent); err == nil && k.Start == st.Start && k.EndedMS != 0 {
		end.Time, end.Status, end.Signal = store.Time(k.EndedMS), k.Status, k.Signal
	}
	l.o.Records.Record(ctx, end, store.AddLog{
		Key: "ended-" + st.Start, Part: "down", Actor: st.Agent, About: st.Start,
		Text: "down: found ended; the down that ended it did not record it",
	})
	return true
}

// died handles the death of a watched process, and reports whether to look at the agents:
// yes for a program once its keeper has recorded the end, which takes milliseconds.
// Otherwise the next look decides.
func (l *deaths) died(ctx context.Context, death proc.Death) (urgent bool) {
	for _, w := range l.wards {
		switch death.Key {
		case receiverKey(w.Start):
			w.receiver.holder = home.Holder{}
			return false
		case w.Start:
			l.o.Log.Info("death", "start", death.Key, "pid", death.Process.PID)
			w.death.settled = true
			for range 100 {
				k, err := l.o.Launcher.Home.LoadKeeper(w.Agent)
				if err != nil || k.Start != w.Start || k.EndedMS != 0 {
					return true
				}
				if proc.Sleep(ctx, 10*time.Millisecond) != nil {
					return true
				}
			}
			return true
		}
	}
	return false
}
