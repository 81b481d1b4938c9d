// Package watch looks after running agents: it records how each ended and what state it
// reports, restarts one that has died or lost its receiver, finds one that hangs and
// dialogs on screens, finishes what an interrupted down has left, ends what is left of
// agents that are down, restarts the ticker, and tells a program that knows nothing of
// netsky that it has mail.
//
// There is one roster, inspected when a file that it depends on has changed, and one loop
// that owns what is known of each agent. Slow work runs beside the loop, one thing at a
// time for each agent. To add another task, add a duty.
//
// It is the only authority that restarts agents, and only those that are wanted up. An
// agent is ended only to be restarted: if that was asked for, if its receiver is gone and it
// is idle, or if a restart has not come to life. Killing the watchdog at any moment harms no agent. The next
// one finds and records what it had not recorded, and keeps to the back-off. state/watchdog/
// holds what is known about restarts, hangs and quiet hours. An [attention.Teller] beside the
// loop tells the owner.
package watch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/spawn"
	"netsky/store"
)

// Options configure a Watchdog.
type Options struct {
	Launcher *spawn.Launcher
	// Runtimes returns the runtimes as of now, by name; an agent whose runtime is missing there is left alone.
	Runtimes func() map[string]spawn.Runtime
	// Plan returns how an agent would be started now, with its conversation. nil: nothing
	// is restarted.
	Plan func(ctx context.Context, id agent.ID, environ []string) (spawn.Plan, error)
	// Conversation returns the conversation that a start of the agent continues; see
	// [restart.Options]. nil: none is known.
	Conversation func(id agent.ID) (string, error)
	// Hang is how long an agent with pending work may show no sign of life before the owner
	// is told; 0: for ever. Repage is when that is repeated.
	Hang, Repage time.Duration
	Tick         time.Duration // the ticker's interval
	Wakes        int           // how often agentinfinity may be woken in 24 hours
	// Setup returns commands for a tmux server that a restart has to start; may be nil.
	Setup func() []string
	// Escalate reaches the owner outside of netsky and returns how; nil: there is no way.
	Escalate func(ctx context.Context, subject, body string) (by string, err error)
	// Mistake returns what is wrong in the configuration now and what that prevents, "" for
	// nothing. nil: nothing ever is.
	Mistake func() (text, then string)
	Records Records
	Log     *slog.Logger
}

// Records stores what happened to agents.
type Records interface {
	// Record records it, now or later.
	Record(ctx context.Context, ops ...store.Op)
	// Session returns what is recorded about a start. Its error matches store.ErrNotFound
	// if nothing is; any other means that it is unknown.
	Session(ctx context.Context, start string) (store.Session, error)
}

// A Watchdog looks after the agents of one home.
type Watchdog struct {
	o      Options
	roster *roster
	woken  chan struct{} // room for one
}

// New returns a Watchdog, which does nothing until Run.
func New(o Options) *Watchdog {
	return &Watchdog{o: o, roster: newRoster(o.Launcher), woken: make(chan struct{}, 1)}
}

// Wake makes it look at all agents at once.
func (w *Watchdog) Wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Statuses returns the state of the agents, which the caller must not change. It is at
// most two seconds old.
func (w *Watchdog) Statuses(ctx context.Context) (spawn.Statuses, error) { return w.roster.recent(ctx) }

// Known returns the state of the agents at the last look, which the caller must not change,
// and the look's number, 0 if there was none yet. It causes none.
func (w *Watchdog) Known(ctx context.Context) (spawn.Statuses, uint64, error) {
	l, err := w.roster.latest(ctx)
	return l.list, l.seq, err
}

const (
	tickEvery  = time.Second
	lookEvery  = 2 * time.Second        // if a file has changed and nothing woke the loop
	lookAgain  = 5 * time.Second        // if the last look failed
	lookAnyway = 30 * time.Second       // if no file has changed
	lookSoon   = 200 * time.Millisecond // while an agent is starting or ending
	atOnce     = 8                      // agents worked on at once
)

// Run looks after the agents until ctx ends. It returns when no work is left: within three
// seconds, plus the time of a restart in progress. While another process runs it for the
// same home, the error matches home.ErrLocked.
func (w *Watchdog) Run(ctx context.Context) error {
	lock, err := w.o.Launcher.Home.Lock(home.WatchdogLock)
	if err != nil {
		return err
	}
	defer lock.Unlock()
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
	t := &team{
		Watchdog: w, watcher: watcher, wards: make(map[agent.ID]*ward),
		done: make(chan func()), slots: make(chan struct{}, atOnce),
	}
	defer t.works.Wait()
	r := &restarts{team: t, due: time.NewTimer(tickEvery)}
	defer r.due.Stop()
	l := &loop{team: t, deaths: deaths{t, r}, blind: blindWatch{Watchdog: w}, revival: &duty{every: tickEvery, each: r.revive, after: r.launch}}
	t.works.Go(func() { l.teller().Run(ctx) })
	p, attend := &planned{team: t}, &receivers{t, r}
	p.resumeRestarts()
	duties := []*duty{
		{every: attendEvery, each: attend.attend},
		{every: tickEvery, each: (&pointer{t}).point},
		l.revival,
		{every: tickEvery, after: p.asked},
		{every: hangEvery(l.o.Hang), each: (&hangs{t}).listen},
		{every: tickerEvery, after: (&ticker{team: t}).check},
		{every: orphansEvery, after: (&orphans{team: t}).seek},
	}
	soon := time.NewTimer(0)
	defer soon.Stop()
	for {
		urgent := true
		select {
		case <-ctx.Done():
			return nil
		case then := <-t.done:
			then()
			continue
		case death := <-watcher.Deaths():
			urgent = l.deaths.died(ctx, death)
		case <-w.woken:
		case <-soon.C:
		case <-r.due.C:
			urgent, r.dueAt, l.revival.next = false, time.Time{}, time.Time{}
		case <-time.After(proc.Tick(tickEvery)):
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

// teller returns what tells the owner of what needs them.
func (l *loop) teller() *attention.Teller {
	o := attention.TellerOptions{
		Home: l.o.Launcher.Home, Bus: l.o.Launcher.Bus, Agents: l.agents, Mistake: l.o.Mistake, Wakes: l.o.Wakes, Escalate: l.o.Escalate,
		Pressed: l.o.Launcher.Pressed, Fell: l.fell.Load,
		Record: l.o.Records.Record, Part: Part, Log: l.o.Log,
	}
	if l.o.Hang > 0 { // else nobody notices that one hangs no more
		o.Repage = l.o.Repage
	}
	return attention.NewTeller(o)
}

// agents returns the agents as of the last look, for the teller.
func (l *loop) agents() (list []attention.Seen, known bool) {
	last := l.looked.Load()
	if last == nil {
		return nil, false
	}
	runtimes := l.o.Runtimes()
	for _, st := range *last {
		if !st.Forgotten {
			list = append(list, attention.SeenOf(st, runtimes[st.Runtime]))
		}
	}
	return list, true
}

// A loop is one Run: it looks, and has the duties done.
type loop struct {
	*team
	deaths  deaths
	blind   blindWatch
	looked  atomic.Pointer[spawn.Statuses] // the agents of the last look, for the teller
	revival *duty
}

// A team is the agents that are looked after, as of the last look, and the work on them
// beside the loop. The loop's goroutine owns it and every ward.
type team struct {
	*Watchdog
	watcher *proc.Watcher
	wards   map[agent.ID]*ward
	last    look
	alone   bool                             // all sessions are gone, and that is recorded
	planned map[agent.ID]bool                // are being restarted as somebody asked
	fell    atomic.Pointer[attention.Notice] // says that all sessions ended; the teller takes it

	done  chan func()   // to run in the loop after some work
	slots chan struct{} // one for each work in progress
	works sync.WaitGroup
}

// A ward is what is known of one agent. What belongs to a start is dropped with it.
type ward struct {
	spawn.Status      // as of the last look
	working      bool // work for it runs beside the loop
	problem      string

	death    deathWatch
	receiver receiverWatch
	restart  *restartWatch // outlives a start
	mail     mailWatch
	hang     hangWatch
}

// A duty is a recurring task. It runs in the loop, so slow parts must be work.
type duty struct {
	every time.Duration
	each  func(ctx context.Context, w *ward) // for each agent with a start, in order; nil: nothing
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
		if w := l.wards[st.Agent]; w != nil && d.each != nil && ctx.Err() == nil && !l.planned[st.Agent] {
			d.each(ctx, w)
		}
	}
	if d.after != nil && ctx.Err() == nil {
		d.after(ctx)
	}
}

// look inspects the agents if there may be news, and follows their states. It reports
// whether another look is needed soon.
func (l *loop) look(ctx context.Context, urgent bool) (soon bool) {
	next, err := l.roster.next(ctx, l.last, urgent)
	if err != nil || next.seq == l.last.seq {
		return false // ctx has ended, or nothing is new
	}
	if next.err != nil {
		l.last.seq = next.seq // what was known stays
		l.o.Log.Warn("look", "error", next.err)
		l.blind.seen(ctx, next.err)
		return false
	}
	l.last = next
	l.looked.Store(&next.list)
	l.revival.next = time.Time{} // one that was started may have come to life
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
	soon, err = l.deaths.follow(ctx)
	l.blind.seen(ctx, err)
	return soon
}

// renewed returns the ward of an agent that is new or has been restarted.
func (l *team) renewed(old *ward) *ward {
	w := &ward{restart: new(restartWatch)}
	if old != nil {
		l.forget(old)
		w.restart = old.restart
	}
	return w
}

// forget stops watching the processes of a start.
func (l *team) forget(w *ward) {
	l.watcher.Remove(w.Start)
	l.watcher.Remove(receiverKey(w.Start))
}

// work runs do for an agent beside the loop, unless work for it is already running. do
// must not touch what the loop owns; the function it returns, if not nil, runs in the
// loop, unless the agent has been restarted meanwhile.
func (l *team) work(ctx context.Context, w *ward, do func(ctx context.Context) (then func())) {
	if w.working {
		return
	}
	w.working = true
	l.beside(ctx, func() func() {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return func() {}
		}
		then := do(ctx)
		<-l.slots
		return func() {
			w.working = false
			if then != nil && l.wards[w.Agent] == w {
				then()
			}
		}
	})
}

// beside runs do beside the loop, and what it returns in the loop, unless ctx has ended.
func (l *team) beside(ctx context.Context, do func() (then func())) {
	l.works.Go(func() {
		then := do()
		select {
		case l.done <- then:
		case <-ctx.Done():
		}
	})
}

// failed logs what went wrong with an agent, once.
func (l *team) failed(ctx context.Context, w *ward, what string, err error) {
	text := ""
	if err != nil {
		text = what + ": " + err.Error()
	}
	if text != "" && text != w.problem && ctx.Err() == nil {
		l.o.Log.Warn(what, "agent", w.Agent, "error", err)
	}
	w.problem = text
}
