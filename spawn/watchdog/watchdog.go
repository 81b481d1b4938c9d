// Package watchdog looks after the agents that run: it records how each ended and
// what state it reports, finishes what an interrupted down has left, tells the owner
// of dialogs nobody answers, tells a program that knows nothing of its mail that some
// waits, and starts an agent anew whose receiver has died.
//
// There is one roster, inspected when a file that it rests on has changed, and one
// loop that owns what is known of each agent. What takes long is done beside the
// loop, one thing at a time for each agent. To have one more thing done about the
// agents, add a duty.
//
// An agent is ended only to be started anew, and only if its receiver is gone, it is
// idle, and it is wanted up. Killed at any moment the watchdog harms no agent. What
// it had not recorded the next one finds and records; what it has told the owner,
// that one tells again under the same id, which has one effect. state/watchdog/
// holds the dialogs that the owner was told of and that stand.
package watchdog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"netsky/agent"
	"netsky/agent/proc"
	"netsky/bus"
	"netsky/spawn"
	"netsky/store"
)

// Options are all that a Watchdog is made of.
type Options struct {
	Launcher *spawn.Launcher
	Runtimes map[string]spawn.Runtime // by name; an agent on one that is missing here is left alone
	// Plan is how an agent would be started now, with its conversation. nil: nothing
	// is restarted.
	Plan    func(ctx context.Context, id agent.ID) (spawn.Plan, error)
	Records Records
	Log     *slog.Logger
}

// Records are where it is recorded what happened to agents.
type Records interface {
	// Record records it, or has it recorded later.
	Record(ctx context.Context, ops ...store.Op)
	// Session is what is on record of a start. Its error matches store.ErrNotFound
	// if nothing is; with any other nobody knows.
	Session(ctx context.Context, start string) (store.Session, error)
}

// A Watchdog looks after the agents of one home.
type Watchdog struct {
	o      Options
	roster *roster
	woken  chan struct{} // room for one
}

// New makes a Watchdog, which does nothing until Run.
func New(o Options) *Watchdog {
	return &Watchdog{o: o, roster: newRoster(o.Launcher), woken: make(chan struct{}, 1)}
}

// Wake has it look at all agents at once.
func (w *Watchdog) Wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Statuses is how the agents are, which the caller must not change: as they are
// known to be while no file has changed, and two seconds old at most.
func (w *Watchdog) Statuses(ctx context.Context) (spawn.Statuses, error) { return w.roster.recent(ctx) }

const (
	tickEvery  = time.Second
	lookEvery  = 2 * time.Second        // if a file has changed, and nobody woke us for it
	lookAgain  = 5 * time.Second        // if the last look failed
	lookAnyway = 30 * time.Second       // if no file has changed
	lookSoon   = 200 * time.Millisecond // while an agent is starting or ending
	atOnce     = 8                      // agents about which something is done
)

// Run looks after the agents until ctx ends. It returns once nothing is done about
// any: within three seconds and what it takes to stop a restart then.
func (w *Watchdog) Run(ctx context.Context) error {
	watcher, err := proc.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	mail, err := w.o.Launcher.Bus.Watch(ctx, bus.Spot{Place: bus.Inbox}, bus.Spot{Place: bus.Claimed}, bus.Spot{Place: bus.Outbox})
	if err != nil {
		return err
	}
	defer mail.Close()
	w.roster.heed(mail.C)
	defer w.roster.heed(nil)
	l := &loop{
		Watchdog: w, watcher: watcher, wards: make(map[agent.ID]*ward),
		done: make(chan func()), slots: make(chan struct{}, atOnce),
	}
	defer l.works.Wait()
	duties := []*duty{
		{every: attendEvery, each: l.attend, after: l.settleDialogs},
		{every: tickEvery, each: l.point},
	}
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	soon := time.NewTimer(0)
	defer soon.Stop()
	for {
		urgent := true
		select {
		case <-ctx.Done():
			return nil
		case then := <-l.done:
			then()
			continue
		case death := <-watcher.Deaths():
			urgent = l.died(ctx, death)
		case <-w.woken:
		case <-soon.C:
		case <-tick.C:
			urgent = false
		}
		if l.look(ctx, urgent) {
			soon.Reset(lookSoon)
		}
		if l.last.at.IsZero() {
			continue // nothing is known yet
		}
		for _, d := range duties {
			l.do(ctx, d)
		}
	}
}

// A loop is one Run. Its goroutine owns all that follows and every ward.
type loop struct {
	*Watchdog
	watcher *proc.Watcher
	wards   map[agent.ID]*ward
	last    look // that the wards are as of
	alone   bool // all sessions are gone, and that is on record

	dialogs dialogs

	done  chan func()   // what is to be done in the loop once some work is over
	slots chan struct{} // one for each work under way
	works sync.WaitGroup
}

// A ward is what is known of one agent. What belongs to a start is forgotten with it.
type ward struct {
	spawn.Status      // as of the last look
	working      bool // something is done about it, beside the loop
	problem      string

	death    deathWatch
	receiver receiverWatch
	restarts restarts // outlive a start
	mail     mailWatch
}

// A duty is something that is done about the agents, again and again. It runs in
// the loop, so what takes long is work.
type duty struct {
	every time.Duration
	each  func(ctx context.Context, w *ward) // for each agent with a start, in order
	after func(ctx context.Context)          // nil: nothing
	next  time.Time
}

func (l *loop) do(ctx context.Context, d *duty) {
	now := time.Now()
	if now.Before(d.next) {
		return
	}
	d.next = now.Add(d.every - tickEvery/2) // at a tick, a late one too
	for _, st := range l.last.list {
		if w := l.wards[st.Agent]; w != nil && ctx.Err() == nil {
			d.each(ctx, w)
		}
	}
	if d.after != nil && ctx.Err() == nil {
		d.after(ctx)
	}
}

// look inspects the agents if there may be news, and follows their states. It
// reports whether another look is worth taking soon.
func (l *loop) look(ctx context.Context, urgent bool) (soon bool) {
	next, err := l.roster.next(ctx, l.last, urgent)
	if err != nil || next.seq == l.last.seq {
		return false // ctx has ended, or nothing is new
	}
	if next.err != nil {
		l.last.seq = next.seq // what was known stays
		l.o.Log.Warn("look", "error", next.err)
		return false
	}
	l.last = next
	here := make(map[agent.ID]bool)
	for _, st := range next.list {
		if st.Start == "" {
			continue
		}
		here[st.Agent] = true
		w := l.wards[st.Agent]
		if w == nil || w.Start != st.Start {
			l.wards[st.Agent] = l.renewed(w)
			w = l.wards[st.Agent]
		}
		w.Status = st
	}
	for id, w := range l.wards {
		if !here[id] {
			l.forget(w)
			delete(l.wards, id)
		}
	}
	return l.follow(ctx)
}

// renewed is the ward of an agent that has been started again, or is new.
func (l *loop) renewed(old *ward) *ward {
	w := &ward{}
	if old != nil {
		l.forget(old)
		w.restarts = old.restarts
	}
	return w
}

// forget ends the watch over the processes of a start.
func (l *loop) forget(w *ward) {
	l.watcher.Remove(w.Start)
	l.watcher.Remove(receiverKey(w.Start))
}

// work does something about an agent beside the loop, unless something is done about
// it already. do must not touch what the loop owns; what it returns, if not nil, runs
// in the loop, unless the agent has been started again meanwhile.
func (l *loop) work(ctx context.Context, w *ward, do func(ctx context.Context) (then func())) {
	if w.working {
		return
	}
	w.working = true
	l.works.Go(func() {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		then := do(ctx)
		<-l.slots
		over := func() {
			w.working = false
			if then != nil && l.wards[w.Agent] == w {
				then()
			}
		}
		select {
		case l.done <- over:
		case <-ctx.Done():
		}
	})
}

// failed logs what went wrong with an agent, once.
func (l *loop) failed(ctx context.Context, w *ward, what string, err error) {
	text := ""
	if err != nil {
		text = what + ": " + err.Error()
	}
	if text != "" && text != w.problem && ctx.Err() == nil {
		l.o.Log.Warn(what, "agent", w.Agent, "error", err)
	}
	w.problem = text
}
