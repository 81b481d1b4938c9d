package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/proc"
	"netsky/spawn"
	"netsky/store"
)

const (
	lookEvery  = 5 * time.Second        // for starts and states that nobody woke us for, if a file has changed
	lookAnyway = 30 * time.Second       // if none has
	lookSoon   = 200 * time.Millisecond // while one is starting or ending
	pruneEvery = time.Hour
)

// deaths watches every agent's program and puts down how each ended, with its
// last lines, and follows the states that agents report. It restarts nothing, and
// ends nothing but what a down that was interrupted has left of an agent.
func (d *daemon) deaths(ctx context.Context) error {
	w, err := proc.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	v := vigil{d: d, w: w, known: make(map[string]*watched)}
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			if !v.changed() {
				again.Reset(lookEvery)
				continue
			}
		case <-d.woken:
		case death := <-w.Deaths():
			d.o.Log.Info("death", "start", death.Key, "pid", death.Process.PID)
			v.settle(ctx, death.Key)
		}
		soon, err := v.look(ctx)
		if err != nil && ctx.Err() == nil {
			d.o.Log.Warn("look", "error", err)
		}
		if soon {
			again.Reset(lookSoon)
		} else {
			again.Reset(lookEvery)
		}
	}
}

// vigil is owned by the deaths service's goroutine.
type vigil struct {
	d     *daemon
	w     *proc.Watcher
	known map[string]*watched // by start id
	alone bool                // all sessions are gone, and that has been told

	unsettled bool                 // the last look has to be taken again
	looked    time.Time            // when last
	dirs      [len(dirs)]time.Time // when they had changed last, by then
}

// dirs are where something changes when an agent's state does: each file in
// them is replaced, never written over.
var dirs = [...]string{home.ReportDir, home.KeeperDir, home.LaunchDir, home.DesiredDir}

// changed reports whether there may be news since the last look: to look at all
// agents costs the system a thousand calls, and this four.
func (v *vigil) changed() bool {
	news := v.unsettled || time.Since(v.looked) > lookAnyway
	for i, rel := range dirs {
		info, err := os.Stat(v.d.o.Home.Path(rel))
		// A change within the clock's step would show the same time.
		if err != nil || !info.ModTime().Equal(v.dirs[i]) || v.looked.Sub(info.ModTime()) < time.Second {
			news = true
		}
	}
	return news
}

// watched is one start that has been seen alive, or the death of which is on
// record.
type watched struct {
	id      agent.ID
	state   agent.State // the last on record
	watched bool        // its death will be told
	settled bool        // it has died, and its keeper had the time to say how
	again   bool        // its session is gone too, and was looked for once more
	started bool        // its start is on record

	finished bool // what was left of it, after a down that was interrupted, was ended once
}

// look reports whether another look is worth taking soon.
func (v *vigil) look(ctx context.Context) (soon bool, err error) {
	v.looked = time.Now()
	for i, rel := range dirs {
		if info, err := os.Stat(v.d.o.Home.Path(rel)); err == nil {
			v.dirs[i] = info.ModTime()
		}
	}
	list, err := v.d.o.Launcher.Inspect(ctx)
	if err != nil {
		v.unsettled = true
		return false, err
	}
	here := make(map[string]bool)
	gone := v.gone(ctx, list)
	soon = gone && !v.alone
	for _, st := range list {
		if st.Start == "" {
			continue
		}
		here[st.Start] = true
		unsettled, err := v.follow(ctx, st, gone)
		if err != nil {
			v.d.o.Log.Warn("follow", "agent", st.Agent, "error", err)
		}
		if w := v.known[st.Start]; w != nil && st.Finished() && !w.finished {
			if w.finished, err = v.d.o.Launcher.Finish(ctx, st); err != nil {
				v.d.o.Log.Warn("finish", "agent", st.Agent, "error", err)
			}
			unsettled = unsettled || !w.finished
		}
		soon = soon || unsettled
	}
	for start := range v.known {
		if !here[start] {
			v.w.Remove(start)
			delete(v.known, start)
		}
	}
	v.unsettled = soon
	return soon, nil
}

// gone reports whether several agents are wanted up and none has a session any
// more: that is one event, which is told once, and not the death of each.
func (v *vigil) gone(ctx context.Context, list spawn.Statuses) bool {
	var names []string
	first := ""
	for _, st := range list {
		switch {
		case st.Pane() != "":
			v.alone = false
			return false
		case st.State == agent.Starting:
			return false // an up is at work
		case st.Wanted && st.Start != "":
			names = append(names, string(st.Agent))
			first = cmp.Or(first, st.Start)
		}
	}
	if len(names) < 2 {
		return false
	}
	if v.atWork() {
		return true // an up that brings them back has not come to that yet; else it is told afterwards
	}
	if !v.alone {
		v.alone = true
		v.d.record(ctx, store.AddLog{
			Key: "gone-" + first, Level: store.LevelError, Part: "daemon",
			Text: "no tmux session is left: with it went " + strings.Join(names, ", "),
		})
	}
	return true
}

// follow watches the agent's program and records a change of its state. It
// reports whether it has to be asked again soon.
func (v *vigil) follow(ctx context.Context, st spawn.Status, gone bool) (unsettled bool, err error) {
	w := v.known[st.Start]
	if w == nil {
		w = &watched{id: st.Agent}
		if st.Alive() {
			k, err := v.d.o.Home.LoadKeeper(st.Agent)
			if err != nil || k.Start != st.Start {
				return st.State == agent.Starting, nil
			}
			if err := v.w.Add(st.Start, k.Process); err != nil {
				return false, err
			}
			w.watched = true
		}
		v.known[st.Start] = w
	}
	if w.watched && !w.started {
		w.started = v.recordStart(ctx, st)
	}
	if st.Lost && st.State == agent.Dead {
		noted, err := v.d.o.Launcher.NoteLost(st.Agent, st.Start)
		if noted || errors.Is(err, home.ErrLocked) {
			return true, nil // the next look shows it
		}
		if err != nil { // on record it comes all the same
			v.d.o.Log.Warn("its keeper was killed", "agent", st.Agent, "error", err)
		}
	}
	if w.state == st.State {
		return false, nil
	}
	if st.State == agent.Down && !v.recordEnd(ctx, st) {
		return false, nil
	}
	if st.State == agent.Dead && st.Detail == "" && !w.settled {
		w.settled = !w.watched // the keeper has until the next look
		return true, nil
	}
	if st.State == agent.Dead && st.Pane() == "" && !gone && !w.again {
		w.again = true // the other sessions may be going too, one after another
		return true, nil
	}
	w.state = st.State
	switch st.State {
	case agent.Dead:
		end, log := v.d.o.Launcher.Death(ctx, st)
		ops := []store.Op{end}
		if !gone {
			ops = append(ops, log)
		}
		v.d.record(ctx, ops...)
	case agent.Down:
	default:
		v.d.record(ctx, store.SessionState{Start: st.Start, Actor: st.Agent, State: st.State, PID: st.PID})
	}
	return false, nil
}

// atWork reports whether an up or a down is under way, which records what it starts
// and ends. It is asked only when something is not on record.
func (v *vigil) atWork() bool {
	held, err := v.d.o.Home.Locked(home.UpLock)
	return err != nil || held
}

// recordStart records a start that the up which made it did not live to record, or
// did not get to know of, as tmux answered too late. It reports whether the start is
// on record.
func (v *vigil) recordStart(ctx context.Context, st spawn.Status) bool {
	db := v.d.database()
	if db == nil {
		return false
	}
	if s, err := db.Session(ctx, st.Start); err == nil && s.Runtime != "" {
		return true
	} else if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false
	}
	if v.atWork() {
		return false
	}
	la, err := v.d.o.Home.LoadLaunch(st.Agent)
	if err != nil || la.Start != st.Start {
		return true // nothing more is known of it
	}
	v.d.record(ctx, spawn.Started(la, "", string(st.Agent), st.PID)...)
	return true
}

// recordEnd records the end of an agent that is down as was wanted, where the down
// that ended it did not. It reports whether the end is on record.
func (v *vigil) recordEnd(ctx context.Context, st spawn.Status) bool {
	db := v.d.database()
	if db == nil {
		return false
	}
	switch s, err := db.Session(ctx, st.Start); {
	case errors.Is(err, store.ErrNotFound), err == nil && s.Ended != 0:
		return true
	case err != nil:
		return false
	}
	if v.atWork() {
		return false
	}
	end := store.EndSession{Start: st.Start, Actor: st.Agent, State: agent.Down, Reason: "down"}
	if k, err := v.d.o.Home.LoadKeeper(st.Agent); err == nil && k.Start == st.Start && k.EndedMS != 0 {
		end.Time, end.Status, end.Signal = store.Time(k.EndedMS), k.Status, k.Signal
	}
	v.d.record(ctx, end, store.AddLog{
		Key: "ended-" + st.Start, Part: "down", Actor: st.Agent, About: st.Start,
		Text: "down: seen to have ended; the down that ended it did not record it",
	})
	return true
}

// settle waits a moment for the keeper's word on a program that has died: it
// comes within milliseconds. Without it the next look judges what there is.
func (v *vigil) settle(ctx context.Context, start string) {
	w := v.known[start]
	if w == nil {
		return
	}
	w.settled = true
	for range 100 {
		k, err := v.d.o.Home.LoadKeeper(w.id)
		if err != nil || k.Start != start || k.EndedMS != 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// upkeep takes in the spool now and whenever something has been spooled, and
// prunes the bus of what is past its keep and on record.
func (d *daemon) upkeep(ctx context.Context, db *store.DB) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	var pruned time.Time
	for {
		if n, err := db.ReplaySpool(ctx); err != nil {
			d.o.Log.Warn("spool", "error", err)
		} else if n > 0 {
			d.o.Log.Info("spool", "replayed", n)
		}
		if time.Since(pruned) > pruneEvery {
			pruned = time.Now()
			n, err := d.o.Bus.Prune(ctx, func(id string) bool { return db.Recorded(ctx, id) })
			if err != nil {
				d.o.Log.Warn("prune", "error", err)
			}
			if n > 0 {
				d.o.Log.Info("prune", "files", n)
				d.record(ctx, store.AddLog{Part: "daemon", Text: fmt.Sprintf(
					"removed the files of %s past [bus] keep, delivered or sent and on record; unread mail of the owner's stays", messages(n))})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func messages(n int) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}
