package daemon

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/proc"
	"netsky/spawn"
	"netsky/spawn/pane"
)

const (
	attendEvery = 2 * time.Second
	attendLate  = 15 * time.Second // once an agent has been without a receiver for a while
	goneFor     = 3 * time.Second  // a receiver must be away to have gone
	sureAfter   = time.Second      // between two looks that find an agent idle
	maxBackoff  = 300 * time.Second
	healthy     = 10 * time.Minute // after which a restart counts no more
)

// attend sees to agents whose mailbox nobody holds although their program runs.
// One that has not come so far may wait at a dialog: status and the owner are
// told. One whose receiver has died is restarted as soon as it is idle, with its
// conversation; until then its mail waits, and status says so.
func (d *daemon) attend(ctx context.Context) error {
	a := attendant{d: d, launches: launches{home: d.o.Home}, cases: make(map[agent.ID]*attended), open: make(map[string]*dialogMail)}
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			a.pass(ctx)
		}
	}
}

// attendant is owned by the attend service's goroutine.
type attendant struct {
	d        *daemon
	launches launches
	cases    map[agent.ID]*attended
	open     map[string]*dialogMail // by id: the owner's mail about dialogs, until they are gone
	opened   bool                   // what earlier daemons have sent is among it
}

// A attended is what is known of one agent; restarts outlive a start.
type attended struct {
	start  string
	holder home.Holder     // of its mailbox, when last seen
	heard  bool            // a receiver has held it under this start
	since  time.Time       // when it was first seen without one; zero: it has one
	next   time.Time       // when to look again
	idle   time.Time       // since when it was found idle
	told   map[string]bool // ids of the mail about dialogs
	over   time.Time       // when its screen was looked at last
	dialog time.Time       // since when one has stood there then; zero: none did
	err    string          // told once

	failed string // why the last restart did not go

	restarts  int
	restarted time.Time
}

func (a *attendant) pass(ctx context.Context) {
	list, err := a.launches.list()
	if err != nil {
		a.d.o.Log.Warn("attend", "error", err)
		return
	}
	var states spawn.Statuses
	standing, unknown := make(map[string]bool), make(map[agent.ID]bool)
	for _, la := range list {
		r := a.d.o.Runtimes[la.Runtime]
		_, served := r.(spawn.Served)
		_, screens := r.(pane.Screens)
		if !served && !screens || ctx.Err() != nil {
			continue
		}
		c := a.caseOf(la)
		if a.held(la, c) {
			err := a.stands(ctx, la, c, &states)
			if over, ok := r.(pane.Overlaid); ok && err == nil {
				err = a.overlaid(ctx, la, c, over, &states)
			}
			if ctx.Err() == nil {
				a.note(la, c, err)
			}
			unknown[la.Agent] = err != nil || !a.stand(la, c, standing)
			continue
		}
		if time.Now().Before(c.next) {
			unknown[la.Agent] = true
			continue
		}
		if states == nil {
			if states, err = a.d.o.Launcher.Inspect(ctx); err != nil {
				return // it can't be told who runs; the vigil says so
			}
		}
		st := states.Find(la.Agent)
		if st.Start != la.Start || !st.Alive() || !st.Wanted || st.Pane() == "" || st.State == agent.Unknown {
			c.since, c.idle = time.Time{}, time.Time{}
			unknown[la.Agent] = st.State == agent.Unknown || st.Start == la.Start && st.Alive()
			continue
		}
		err := a.see(ctx, la, st, r, c)
		if ctx.Err() == nil {
			a.note(la, c, err)
		}
		unknown[la.Agent] = err != nil || !a.stand(la, c, standing)
	}
	if ctx.Err() == nil {
		a.settle(ctx, standing, unknown)
	}
}

func (a *attendant) caseOf(la agent.Launch) *attended {
	c := a.cases[la.Agent]
	if c == nil {
		c = &attended{}
		a.cases[la.Agent] = c
	}
	if c.start != la.Start {
		*c = attended{start: la.Start, told: make(map[string]bool), restarts: c.restarts, restarted: c.restarted}
	}
	return c
}

// held reports whether the mailbox has its receiver. The lock is read again only
// when the last holder has died.
func (a *attendant) held(la agent.Launch, c *attended) bool {
	if c.holder.PID == 0 || !c.holder.Alive() {
		var ok bool
		if c.holder, ok = a.d.o.Home.LockHolder(home.ReceiverLock(la.Agent)); !ok {
			c.holder = home.Holder{}
			return false
		}
	}
	// A passer-by who drains it for a moment is not its receiver.
	if !c.holder.Passing() {
		c.heard, c.since, c.idle, c.next = true, time.Time{}, time.Time{}, time.Time{}
		if c.restarts > 0 && time.Since(c.restarted) > healthy {
			c.restarts = 0
		}
	} else {
		c.holder = home.Holder{}
	}
	return true
}

// see looks after one agent that runs without a receiver.
func (a *attendant) see(ctx context.Context, la agent.Launch, st spawn.Status, r spawn.Runtime, c *attended) error {
	if c.since.IsZero() {
		c.since = time.Now()
	}
	if time.Since(c.since) > time.Minute {
		c.next = time.Now().Add(attendLate)
	}
	c.heard = c.heard || a.d.o.Launcher.Heard(st) || a.hadReceiver(st)
	if screens, ok := r.(pane.Screens); ok {
		answer := st.State == agent.Starting
		dialog, shown, err := a.d.o.Launcher.LookForDialog(ctx, st, screens, answer)
		if err != nil {
			return err
		}
		if shown {
			c.idle = time.Time{}
			if answer && dialog.Keys != nil {
				return nil
			}
			return a.shown(ctx, st, dialog, c)
		}
	}
	served, ok := r.(spawn.Served)
	if !ok || !c.heard || time.Since(c.since) < goneFor {
		return nil
	}
	return a.orphan(ctx, la, st, served, c)
}

// hadReceiver reports whether a receiver has held the mailbox since the agent's
// program began: one may die before it is seen here and has reported anything.
func (a *attendant) hadReceiver(st spawn.Status) bool {
	last, err := a.d.o.Home.LastHolder(home.ReceiverLock(st.Agent))
	if err != nil {
		return false
	}
	program, err := proc.Find(st.PID)
	return err == nil && last.Start >= program.Start && !last.Passing()
}

// orphan brings an agent back whose receiver has died.
func (a *attendant) orphan(ctx context.Context, la agent.Launch, st spawn.Status, r spawn.Served, c *attended) error {
	c.next = time.Time{} // its turn may end at any moment
	gone := "its receiver has gone; it is restarted when idle"
	if c.failed != "" {
		gone = "its receiver has gone, and it could not be restarted: " + c.failed
	}
	la, err := a.d.o.Home.LoadLaunch(la.Agent) // with the environment, which says where the runtime keeps its state
	if err != nil || la.Start != st.Start {
		return err
	}
	idle, why := r.Idle(ctx, la, st.PID)
	if !idle {
		c.idle = time.Time{}
		if why != "" {
			why = " (" + why + ")"
		}
		return a.d.o.Launcher.ReceiverGone(st, gone+why)
	}
	if err := a.d.o.Launcher.ReceiverGone(st, gone); err != nil {
		return err
	}
	if c.idle.IsZero() {
		c.idle = time.Now()
	}
	switch {
	case time.Since(c.idle) < sureAfter, time.Since(c.restarted) < backoff(c.restarts), a.d.o.Plan == nil:
		return nil
	}
	return a.restart(ctx, st, c)
}

// backoff is the time between two restarts: none before the first, then 1 s,
// 2 s, 4 s, … up to five minutes.
func backoff(restarts int) time.Duration {
	if restarts == 0 {
		return 0
	}
	return min(time.Second<<min(restarts-1, 10), maxBackoff)
}

func (a *attendant) restart(ctx context.Context, st spawn.Status, c *attended) error {
	c.restarts, c.restarted, c.idle = c.restarts+1, time.Now(), time.Time{}
	// A daemon that is told to stop in the middle would leave the agent ended.
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(goneFor, cancel) })()
	plan, err := a.d.o.Plan(within, st.Agent)
	plan.Agent, plan.Start = st.Agent, st.Start
	var end spawn.Progress
	if err == nil {
		end, err = a.d.o.Launcher.Restart(within, plan, agent.DaemonName, nil)
	}
	if err = cmp.Or(err, end.Err); err != nil {
		c.failed = err.Error()
		return fmt.Errorf("restart: %w", err)
	}
	a.d.o.Log.Info("restart", "agent", st.Agent, "start", st.Start, "step", end.Step)
	a.d.wake()
	return nil
}

// note logs what went wrong with an agent, once.
func (a *attendant) note(la agent.Launch, c *attended, err error) {
	text := ""
	if err != nil {
		text = err.Error()
		if text != c.err {
			a.d.o.Log.Warn("attend", "agent", la.Agent, "error", err)
		}
	}
	c.err = text
}
