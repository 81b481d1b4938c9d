package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/internal/proc"
	"netsky/spawn"
	"netsky/store"
	"netsky/watch/backoff"
	"netsky/work/record"
)

const (
	lookEvery  = time.Second      // while there is something to follow
	lookAnyway = 30 * time.Second // otherwise, if nothing wakes it
	// settles is how long a brief must have been nowhere before it counts as lost.
	settles = 10 * time.Second
)

// A Keeper follows the tasks that were given out. Its exported fields are set before Run and not
// changed afterwards.
type Keeper struct {
	Launcher *spawn.Launcher
	Database func() *store.DB // nil while it is not available
	Statuses func(ctx context.Context) (spawn.Statuses, error)
	Log      *slog.Logger
	Hold     func(ctx context.Context, db *store.DB) error // as Crew's; may be nil
	Enough   func(ctx context.Context, db *store.DB, k store.Task) bool
	Settles  time.Duration // 0 is ten seconds

	// Bring brings what an agent on another host has committed. It is repeated unless the error matches away.ErrRefused.
	Bring func(ctx context.Context, id agent.ID) error
	// Begin brings, to such an agent, what its work on a task begins at and builds on; else as Bring.
	Begin func(ctx context.Context, k store.Task) error
	// Far returns how an agent on another host is, as far as that is known here.
	Far func(id agent.ID) spawn.Status

	wake     chan struct{}
	reported map[string]string    // what was logged last of a task, so that it is once; owned by Run
	asked    map[string]time.Time // when it was last asked whether what a task needs is enough; owned by Run
	missing  map[string]time.Time // since when a brief has been nowhere, by its id; owned by Run
	told     map[string]bool      // the ids of the notices that were sent, and of briefs withdrawn; owned by Run
	brings   map[string]*bring    // by the task and the brief that was answered; owned by Run
}

// NewKeeper returns a Keeper.
func NewKeeper(l *spawn.Launcher, database func() *store.DB, statuses func(context.Context) (spawn.Statuses, error), log *slog.Logger) *Keeper {
	return &Keeper{
		Launcher: l, Database: database, Statuses: statuses, Log: log,
		wake: make(chan struct{}, 1), reported: make(map[string]string), asked: make(map[string]time.Time), missing: make(map[string]time.Time), told: make(map[string]bool),
		brings: make(map[string]*bring),
	}
}

// Wake makes Run look at once.
func (p *Keeper) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run follows the tasks until ctx ends.
func (p *Keeper) Run(ctx context.Context) error {
	for {
		wait := lookEvery
		if db := p.Database(); db != nil {
			n, err := p.Pass(ctx, db)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if n == 0 {
				wait = lookAnyway
			}
		}
		if proc.SleepUntil(ctx, wait, p.wake) != nil {
			return nil
		}
	}
}

// Pass brings every task on by what has happened, and returns how many there are to look at again
// soon. What fails about one task is logged, and tried again by the next pass.
func (p *Keeper) Pass(ctx context.Context, db *store.DB) (n int, err error) {
	ids, waiting, err := record.Records{DB: db}.Followed(ctx)
	if err != nil || len(ids) == 0 {
		clear(p.missing)
		clear(p.told)
		clear(p.brings)
		return waiting, err
	}
	states, err := p.Statuses(ctx)
	if err != nil {
		states = nil // nobody is taken for dead
	}
	for _, id := range ids {
		k, err := db.Task(ctx, id)
		if k.State == store.TaskInProgress || time.Since(k.Updated.Time()) < lookAnyway {
			n++ // of others only an answer is awaited, which may take days
		}
		if err == nil {
			err = p.follow(ctx, look{Keeper: p, db: db, states: states}, k)
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		switch {
		case err == nil || errors.Is(err, store.ErrNotFound):
			delete(p.reported, id)
		case p.reported[id] != err.Error():
			p.reported[id] = err.Error()
			p.Log.Warn("task", "id", id, "error", err)
		}
	}
	return waiting + n, nil
}

// A look is one pass at the tasks.
type look struct {
	*Keeper
	db     *store.DB
	states spawn.Statuses // nil: unknown
}

// direct writes to the open database.
type direct struct{ *store.DB }

func (d direct) Record(ctx context.Context, ops ...store.Op) error { return d.Apply(ctx, ops...) }

// as returns the crew on behalf of an address.
func (l look) as(id agent.ID) Crew {
	c := Crew{Home: l.Launcher.Home, Bus: l.Launcher.Bus, Records: direct{l.db}, By: id, Environ: l.Launcher.Environ}
	if l.Hold != nil {
		c.Hold = func(ctx context.Context) error { return l.Hold(ctx, l.db) }
	}
	if l.Enough != nil {
		c.Enough = func(ctx context.Context, k store.Task) bool { return l.Enough(ctx, l.db, k) }
	}
	return c
}

// follow brings one task on.
func (p *Keeper) follow(ctx context.Context, l look, k store.Task) error {
	if k.Brief == "" {
		return l.startIfReady(ctx, k)
	}
	if k.Briefed == 0 && k.State == store.TaskInProgress {
		if err := l.as(k.Starter).give(ctx, k, ""); err != nil {
			return err
		}
		p.Log.Info("task", "id", k.ID, "given to", k.Assignee)
		return nil
	}
	answered, err := l.answered(ctx, k)
	if answered || err != nil {
		return err
	}
	return l.missed(ctx, k)
}

// startIfReady starts a task that waits for other tasks, once they are done.
func (l look) startIfReady(ctx context.Context, k store.Task) error {
	if k.State != store.TaskOpen || k.Starter == "" {
		return nil
	}
	if time.Since(l.asked[k.ID]) < cmp.Or(l.Settles, settles) { // git is asked much
		return nil
	}
	c := l.as(k.Starter)
	left, err := c.Book().Unfinished(ctx, k.ID)
	if err != nil {
		return err
	}
	for _, n := range left {
		if n.State == store.TaskCancelled {
			return l.block(ctx, k, "needs-"+n.ID, fmt.Sprintf("it needs %s (%s), which was cancelled; `netsky task start %s --anyway` starts it without", n.ID, envelope.Line(n.Title, 60), Short(k.ID)))
		}
	}
	if len(left) > 0 {
		l.asked[k.ID] = time.Now()
		return nil
	}
	if still, err := l.prepare(ctx, k); still {
		return err
	} else if err != nil {
		return l.block(ctx, k, "unprepared", err.Error())
	}
	delete(l.asked, k.ID)
	if k, err = c.begin(ctx, k, k.Assignee, k.Starter, false); err != nil || k.Brief == "" {
		return err
	}
	return c.give(ctx, k, "")
}

func logged(k store.Task, key, text string) store.AddLog {
	return store.AddLog{Key: key, Part: Part, Actor: k.Assignee, About: k.ID, Text: text}
}

// block ends the wait of a task. Who asked for it is told first: a crash in between has it told once
// all the same.
func (l look) block(ctx context.Context, k store.Task, key, why string) error {
	if err := l.tell(ctx, k, key, "is blocked: "+why); err != nil {
		return err
	}
	step()
	defer step()
	_, err := l.as(k.Starter).Book().Alter(ctx, k.ID, func(now *store.Task) ([]store.Op, error) {
		if now.State != store.TaskOpen || now.Starter == "" {
			return nil, nil
		}
		now.State, now.Starter = store.TaskBlocked, ""
		return []store.Op{
			store.AddNote{About: k.ID, Author: "netsky", Text: why}.Because(),
			logged(*now, fmt.Sprintf("%s-blocked-%d", k.ID, now.Updated), "blocked: "+why),
		}, nil
	})
	return err
}

// tell sends who asked for the task to be started, once by the key, what became of it.
func (l look) tell(ctx context.Context, k store.Task, key, what string) error {
	to, from := cmp.Or(k.Starter, k.AskedBy), k.Assignee
	if to == agent.Infinity || !from.IsAgent() {
		from = agent.Root
	}
	if to == "" || to == from || to == k.Assignee {
		return nil
	}
	id := fmt.Sprintf("task-%s-%d-%s", k.ID, k.Starts, key)
	if l.told[id] {
		return nil
	}
	// Sent again, one that still waits there would be there twice.
	list, err := l.Launcher.Bus.Received(ctx, to, id)
	if err == nil && len(list) == 0 {
		_, _, err = l.Launcher.Bus.SendOnce(ctx, envelope.Envelope{
			ID: id, From: from, To: to, Kind: envelope.KindNotice, Via: "code", Thread: k.ID,
			Text: envelope.SafeText(fmt.Sprintf("The task %s (%s) %s", Short(k.ID), envelope.Line(k.Title, 80), what)), Time: time.Now(),
		})
	}
	if err != nil && !errors.Is(err, bus.ErrUsed) {
		return err
	}
	l.told[id] = true
	return nil
}

// missed looks whether the worker still has the brief.
func (l look) missed(ctx context.Context, k store.Task) error {
	if !expected(k) {
		return l.unwanted(ctx, k)
	}
	if l.states == nil || k.State != store.TaskInProgress {
		return nil
	}
	if k.Assignee.Host() != "" {
		return l.missedAfar(ctx, k)
	}
	h, st := l.Launcher.Home, l.states.Find(k.Assignee)
	if why := Stalled(st, backoff.Soon(h, k.Assignee, st.Start)); why != "" {
		delete(l.missing, k.Brief)
		if !st.Wanted && st.By == string(k.Starter) || k.Starter.IsAgent() && !l.states.Find(k.Starter).Alive() {
			return nil // who ended it knows; what is still so when the asker is up again is told then
		}
		return l.tell(ctx, k, "stalled-"+cmp.Or(st.Start, "down"), fmt.Sprintf("waits: %s. `netsky agent %s` starts it again, and it goes on; `netsky task start %s --agent N` gives the task to another.",
			why, k.Assignee.N(), Short(k.ID)))
	}
	// A busy one has it, or has not come to it.
	if st.State != agent.Idle || courier.ReadLedger(h, k.Assignee).Owes(k.Brief) {
		delete(l.missing, k.Brief)
		return nil
	}
	since, again := l.missing[k.Brief]
	if !again {
		l.missing[k.Brief] = time.Now()
		return nil
	}
	if time.Since(since) < cmp.Or(l.Settles, settles) {
		return nil
	}
	return l.lost(ctx, k, st.Silent)
}

// unwanted withdraws the unread brief of a task that was taken back: whoever did that may have been
// killed in between.
func (l look) unwanted(ctx context.Context, k store.Task) error {
	if l.told[k.Brief] {
		return nil
	}
	n, err := l.Launcher.Bus.Retract(ctx, k.Assignee, func(e envelope.Envelope) bool { return e.ID == k.Brief })
	if err != nil && !errors.Is(err, bus.ErrNoMailbox) {
		return err
	}
	if l.told[k.Brief] = true; n > 0 {
		l.Log.Info("task", "id", k.ID, "withdrawn from", k.Assignee)
	}
	return nil
}

// lost handles a brief that an idle worker has had and does not owe an answer to: one that was
// started since gets the task again, with what it needs to know; any other has ended its turn
// without an answer. A silent one reports no turns: as long as it runs, it may be at the task.
func (l look) lost(ctx context.Context, k store.Task, silent bool) error {
	b := l.Launcher.Bus
	list, err := b.Received(ctx, k.Assignee, k.Brief)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Envelope.ID == k.Brief && e.Envelope.From == k.Starter && e.Place != bus.Delivered { // it is about to get it
			delete(l.missing, k.Brief)
			return nil
		}
	}
	a, found, err := b.FindAnswer(ctx, k.Assignee, k.Starter, k.Brief, k.Briefed.Time())
	if err != nil && !errors.Is(err, bus.ErrNoMailbox) {
		return err
	}
	if found { // the records do not have it yet
		v := a.Envelope
		return l.close(ctx, k, v.From, v.Kind != envelope.KindError, v.Text, store.At(v.Time))
	}
	kept, err := l.Launcher.Home.LoadKeeper(k.Assignee)
	if err != nil {
		return err
	}
	delete(l.missing, k.Brief)
	had := k.Briefed
	if silent { // it may have taken the brief long after it was sent, and be at it still
		if had, err = l.taken(ctx, k); err != nil || had == 0 || kept.StartedMS <= int64(had) {
			return err
		}
	} else if kept.StartedMS <= int64(had) {
		return l.unanswered(ctx, k)
	}
	c := l.as(k.Starter)
	if k, err = c.begin(ctx, k, k.Assignee, k.Starter, false); err != nil {
		return err
	}
	return c.give(ctx, k, k.Assignee)
}

// Stalled says why nobody works on a task of that agent's, "" if it is alive or, soon, about to be
// started again.
func Stalled(st spawn.Status, soon bool) string {
	if st.Alive() || soon {
		return ""
	}
	return fmt.Sprintf("%s is %s", st.Agent, st.State)
}
