// Package schedule sends the messages that the owner has scheduled: it keeps the list of
// schedules for the verbs, parses when they are due, and, in the daemon, sends them.
//
// A due time is sent at most once, whatever crashes and however the clock is set: its
// message's id is made of the schedule and the time, is recorded before it is sent, and is
// sent again under the same id if a crash has left it unknown. There are never two calls
// of a schedule at an agent: while it has not finished the last one, a due time is skipped.
// Of the times that pass while the daemon is down or the machine sleeps, one is sent, and
// a log entry says how many were missed. Nothing is sent to an agent that is down.
//
// The schedules are in the records, and a copy beside them in state/schedules.json, from which
// a database that was lost gets them back. A crash leaves at most one run in state "sending",
// which the next pass completes.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/store"
)

// Most is how many schedules there may be.
const Most = 100

const (
	look     = 30 * time.Second // between passes, at most
	late     = 2 * time.Minute  // after which a run counts as late
	maxCount = 10_000           // missed runs that are counted
	// strayed is how far in the future a last run may be before the clock must have been
	// wrong then.
	strayed = 26 * time.Hour
)

// A Keeper sends what is due. Its fields are set before Run and not changed afterwards.
type Keeper struct {
	Home    home.Dir
	Bus     *bus.Bus
	Records func() *store.DB // nil while the database is not available
	Log     *slog.Logger
	Now     func() time.Time // with the location in which times of day are meant

	wake     chan struct{}
	reported map[string]string // what was logged last of a schedule, so that it is once; owned by Run
}

// New returns a Keeper that goes by the machine's clock.
func New(h home.Dir, b *bus.Bus, records func() *store.DB, log *slog.Logger) *Keeper {
	return &Keeper{Home: h, Bus: b, Records: records, Log: log, Now: local(), wake: make(chan struct{}, 1), reported: make(map[string]string)}
}

// Wake makes Run look at once.
func (k *Keeper) Wake() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run sends what is due until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		wait := look
		if db := k.Records(); db != nil {
			next, err := k.Pass(ctx, db)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if !next.IsZero() {
				wait = min(max(next.Sub(k.Now()), 50*time.Millisecond), look)
			}
		} else {
			wait = time.Second // it is being opened
		}
		if proc.SleepUntil(ctx, wait, k.wake) != nil {
			return nil
		}
	}
}

// Pass sends what is due now, and returns when something is due next; zero for never.
func (k *Keeper) Pass(ctx context.Context, db *store.DB) (next time.Time, err error) {
	list, err := db.Schedules(ctx, false)
	if err != nil {
		return next, err
	}
	for _, s := range list {
		w, err := Parse(s.Spec)
		if err != nil { // of a newer netsky
			k.once(s.ID, "parse", func() { k.Log.Warn("schedule", "id", s.ID, "error", err) })
			continue
		}
		due, err := k.one(ctx, db, s, w)
		if err != nil {
			k.once(s.ID, err.Error(), func() { k.Log.Warn("schedule", "id", s.ID, "error", err) })
			continue // the next pass tries again
		}
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	if list, err = db.Schedules(ctx, false); err == nil {
		err = store.KeepSchedules(k.Home, list)
	}
	if err != nil {
		k.once("", err.Error(), func() { k.Log.Warn("copy the schedules", "error", err) })
	}
	return next, ctx.Err()
}

func (k *Keeper) once(id, what string, tell func()) {
	if k.reported[id] != what {
		k.reported[id] = what
		tell()
	}
}

// one handles one schedule, and returns when it is due next.
func (k *Keeper) one(ctx context.Context, db *store.DB, s store.Schedule, w When) (time.Time, error) {
	now := k.Now()
	if s.Last.Result == store.RunSending { // left by a crash, or by a send that failed
		if err := k.again(ctx, db, s); err != nil {
			return time.Time{}, err
		}
		s.Last.Result = store.RunSent
	}
	ahead := strayed
	if w.every > 0 {
		ahead = min(ahead, w.every)
	}
	if last := max(s.First, s.Last.Due).Time(); last.Sub(now) > ahead {
		err := db.Apply(ctx, k.ran(s, now, s.Last.Result, s.Last.Note, ""), store.AddLog{
			Key: key(s.ID, last, "strayed"), Part: "cron", Level: store.LevelWarn, Actor: s.Target, About: s.ID,
			Text: fmt.Sprintf("%s: the clock was set back from %s; runs continue from now", s.ID, stamp(last.In(now.Location()))),
		})
		if err != nil {
			return time.Time{}, err
		}
		s.First, s.Last.Due, s.Last.Wall = 0, store.At(now), store.At(wall(now))
	}
	if s.Times > 0 && s.Sent >= s.Times {
		return time.Time{}, db.Apply(ctx, store.EndSchedule{ID: s.ID, Why: fmt.Sprintf("finished: sent %d times", s.Sent), At: store.At(now)})
	}
	dues := w.dues(s, now)
	if dues.count > 0 {
		if err := k.run(ctx, db, s, dues); err != nil {
			return time.Time{}, err
		}
		delete(k.reported, s.ID)
	}
	switch {
	case dues.count > 0 && s.Times > 0:
		return now, nil // it may have been the last
	case dues.next.IsZero():
		return dues.next, nil
	case s.Until != 0 && dues.next.After(s.Until.Time()):
		return time.Time{}, db.Apply(ctx, store.EndSchedule{ID: s.ID, Why: "finished: its time is over", At: store.At(now)})
	}
	return dues.next, nil
}

// dues are the times of a schedule since its last run.
type dues struct {
	first, last time.Time // that have passed
	count       int
	next        time.Time
}

// dues returns what is due until now. A time of day counts once for each day, wherever the
// clock on the wall is moved.
func (w When) dues(s store.Schedule, now time.Time) (d dues) {
	t, shown := after(s, now)
	for t = w.following(t, shown); !t.IsZero() && !t.After(now); t = w.following(t, shown) {
		if s.Until != 0 && t.After(s.Until.Time()) {
			break
		}
		if d.count == 0 {
			d.first = t
		}
		d.last = t
		if d.count++; d.count == maxCount { // a machine that slept for months
			t, d.last = now, now
		}
	}
	d.next = t
	return d
}

// after returns the time from which the next one is looked for, and what the wall showed
// at the last run.
func after(s store.Schedule, now time.Time) (t, shown time.Time) {
	if s.Last.Due != 0 {
		return s.Last.Due.Time().In(now.Location()), s.Last.Wall.Time()
	}
	return s.First.Time().In(now.Location()), shown
}

// following returns the next due time after t.
func (w When) following(t, shown time.Time) time.Time {
	if w.every > 0 {
		return t.Add(w.every)
	}
	for t = w.Next(t); !t.IsZero() && !w.anyHour && !shown.IsZero() && !wall(t).After(shown); {
		t = w.Next(t)
	}
	return t
}

// run sends the latest of the times that have passed, unless the agent is down or has not
// finished the one before.
func (k *Keeper) run(ctx context.Context, db *store.DB, s store.Schedule, d dues) error {
	now := k.Now()
	due := d.last
	if missed := d.count - 1; missed > 0 || now.Sub(due) > late {
		text := fmt.Sprintf("%s: the run of %s is late: the daemon was not running, or the machine slept", s.ID, stamp(due))
		if missed > 0 {
			text = fmt.Sprintf("%s: %d runs missed between %s and %s; at most one is sent now", s.ID, d.count, stamp(d.first), stamp(due))
		}
		err := db.Apply(ctx, store.AddLog{Key: key(s.ID, due, "missed"), Part: "cron", Level: store.LevelWarn, Actor: s.Target, About: s.ID, Text: text})
		if err != nil {
			return err
		}
	}
	result, note := store.RunSending, ""
	switch want, err := home.Desired(k.Home).Load(string(s.Target)); {
	case err != nil || !want.Up:
		result, note = store.RunDown, string(s.Target)+" is down"
	default:
		if note, err = k.unfinished(ctx, s); err != nil {
			return err
		}
		if note != "" {
			result = store.RunSkipped
		}
	}
	if result == store.RunSending {
		return k.send(ctx, db, s, due, key(s.ID, due, ""))
	}
	ops := []store.Op{k.ran(s, due, result, note, "")}
	if result != s.Last.Result || result == store.RunSkipped { // one that stays down is told once
		ops = append(ops, store.AddLog{Key: key(s.ID, due, string(result)), Part: "cron", Actor: s.Target, About: s.ID,
			Text: fmt.Sprintf("%s: the run of %s was not sent: %s", s.ID, stamp(due), note)})
	}
	return db.Apply(ctx, ops...)
}

func (k *Keeper) ran(s store.Schedule, due time.Time, result store.RunResult, note, message string) store.RunSchedule {
	now := k.Now()
	at := max(store.At(now), s.Last.At) // the clock may have been set back
	return store.RunSchedule{ID: s.ID, Message: message, Wall: store.At(wall(due.In(now.Location()))), Run: store.Run{Due: store.At(due), At: at, Result: result, Note: note}}
}

// again completes a run of which only the intent is recorded, unless it was not sent and
// its agent is down by now.
func (k *Keeper) again(ctx context.Context, db *store.DB, s store.Schedule) error {
	if want, err := home.Desired(k.Home).Load(string(s.Target)); err != nil || !want.Up {
		if list, err := k.Bus.Received(ctx, s.Target, s.Message); err != nil || len(list) == 0 {
			return db.Apply(ctx, k.ran(s, s.Last.Due.Time(), store.RunDown, string(s.Target)+" is down", ""))
		}
	}
	return k.send(ctx, db, s, s.Last.Due.Time(), "")
}

// unfinished returns why the agent has not finished the last call, "" if it has.
func (k *Keeper) unfinished(ctx context.Context, s store.Schedule) (string, error) {
	if s.Message == "" {
		return "", nil
	}
	if courier.ReadLedger(k.Home, s.Target).Owes(s.Message) {
		return fmt.Sprintf("%s has not finished %s", s.Target, s.Message), nil
	}
	list, err := k.Bus.Received(ctx, s.Target, s.Message)
	if err != nil {
		return "", err
	}
	for _, e := range list {
		if e.Place != bus.Delivered {
			return fmt.Sprintf("%s still waits in the mailbox of %s", s.Message, s.Target), nil
		}
	}
	return "", nil
}

// send sends the call of a due time. message is its id, which is recorded first; "" if it
// is recorded, as the message of s.
func (k *Keeper) send(ctx context.Context, db *store.DB, s store.Schedule, due time.Time, message string) error {
	if message != "" {
		if err := db.Apply(ctx, k.ran(s, due, store.RunSending, "", message)); err != nil {
			return err
		}
		s.Message = message
	}
	_, _, err := k.Bus.SendOnce(ctx, envelope.Envelope{
		ID: s.Message, From: agent.Owner, To: s.Target, Kind: envelope.KindCron, Via: "cron", Thread: s.ID, Text: text(s), Time: k.Now(),
	})
	if err != nil && !errors.Is(err, bus.ErrUsed) { // which was sent, and read meanwhile
		return fmt.Errorf("%s: %w", s.Target, err)
	}
	return db.Apply(ctx, k.ran(s, due, store.RunSent, "", ""), store.AddLog{
		Key: key(s.ID, due, "sent"), Part: "cron", Actor: s.Target, About: s.Message, Text: fmt.Sprintf("%s: sent the run of %s", s.ID, stamp(due)),
	})
}

// text returns what the agent is sent: the owner's words, or who else chose them.
func text(s store.Schedule) string {
	if s.Who == string(agent.Owner) {
		return s.Text
	}
	return "[scheduled by " + s.Who + "] " + s.Text
}

func key(id string, due time.Time, what string) string {
	return strings.TrimSuffix(fmt.Sprintf("cron-%s-%d-%s", id, due.Unix(), what), "-")
}

func stamp(t time.Time) string { return t.Format("2006-01-02 15:04") }

// Next returns when a schedule is due next; zero if it has ended or never is.
func Next(s store.Schedule, now time.Time) time.Time {
	w, err := Parse(s.Spec)
	if err != nil || s.Ended != 0 {
		return time.Time{}
	}
	d := w.dues(s, now)
	if d.count > 0 {
		return d.last // it is about to be handled
	}
	if s.Until != 0 && d.next.After(s.Until.Time()) {
		return time.Time{}
	}
	return d.next
}
