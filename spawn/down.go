package spawn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/advice"
)

// DownOptions says which agents to end and how.
type DownOptions struct {
	Agents []agent.ID // empty: agent0 and all clones
	Force  bool       // end them at once, without asking
	// Restart says that the caller starts them again: their desired states stay.
	Restart bool
	All     bool // include agentinfinity and the ticker
	By      string
	Report  func(DownProgress)
	// Within, if not nil, is called to end the agents by calling end, or those of them that it
	// names, and may end more before or after it. No up runs until it returns, unless Force did
	// not wait for that up. Down returns its error.
	Within func(end func(only ...agent.ID) error) error
	// AckWithin is how long an agent that was asked may take to ack or to exit before it is
	// ended, 0 for [DownWithin]; a caller in a hurry gives less.
	AckWithin time.Duration
}

// A DownStep is a step in ending an agent.
type DownStep string

const (
	DownAsked      DownStep = "asked"      // the shutdown request is in its inbox
	DownUnasked    DownStep = "unasked"    // it could not be asked; see Err
	DownClosed     DownStep = "closed"     // its session or program was gone before it was ended
	DownAcked      DownStep = "acked"      // it acked; its session is being ended
	DownUnfinished DownStep = "unfinished" // it acked, as a receiver does after 45 s, but its turn still runs; being ended
	DownTimeout    DownStep = "timeout"    // no ack in time; being ended
	DownLeft       DownStep = "left"       // no ack yet when down was interrupted: it runs until its turn ends
	DownEnded      DownStep = "ended"      // its session and processes are gone
	DownFailed     DownStep = "failed"     // it could not be ended; see Err
	DownWarning    DownStep = "warning"    // Err, which stopped nothing
)

// DownProgress is one step that down reports. Agent is "" for the ticker and for what
// concerns all agents.
type DownProgress struct {
	Agent agent.ID
	What  string // the session's name
	Step  DownStep
	After time.Duration // with DownUnfinished and DownTimeout
	Err   error
}

// An InterruptedError is returned by a down whose context ended while agents that it had
// asked were still working. Their desired state is down and the requests stay in force:
// each ends with its turn, and Finish ends what is left of it.
type InterruptedError struct{ Agents []agent.ID }

func (e *InterruptedError) Error() string {
	names := make([]string, len(e.Agents))
	for i, id := range e.Agents {
		names[i] = string(id)
	}
	they := "was asked to finish and is still working; it ends with its turn"
	if len(names) > 1 {
		they = "were asked to finish and are still working; each ends with its turn"
	}
	list := strings.Join(names, " ")
	return fmt.Sprintf("interrupted: %s %s; `netsky down %s --force` ends them now, `netsky up %s` cancels the request",
		strings.Join(names, ", "), they, list, list)
}

// Down ends agents: by default agent0 and the clones. It saves the desired state first, so
// nothing starts them again. All are asked before any is ended. An agent that acks, exits,
// or does not answer in time is ended with every process that it started. One failure does
// not stop the rest: the error joins them all. Requests that nobody claimed are withdrawn,
// so that a later start does not find them. When ctx ends, agents still working are left
// alone and Down returns an InterruptedError.
func (l *Launcher) Down(ctx context.Context, o DownOptions) ([]DownProgress, error) {
	d := down{l: &l.Ender, o: o}
	d.tell = func(p DownProgress) {
		d.log = append(d.log, p)
		if o.Report != nil {
			o.Report(p)
		}
	}
	// An up that has just made its sessions must be waited for; with force, an up that
	// hangs must not block the ending.
	wait := 20 * time.Second
	if o.Force {
		wait = 2 * time.Second
	}
	lctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock, err := l.Home.WaitLockAs(lctx, home.UpLock, home.Ending, nil)
	switch {
	case err == nil:
		defer lock.Unlock()
		d.locked = true
	case o.Force:
		d.tell(DownProgress{Step: DownWarning, Err: fmt.Errorf("%w; not waiting for it", err)})
	default:
		return nil, advice.With(err, "wait until it has finished, or use --force, which ends agents at once and does not wait for it")
	}
	beside := lock == nil && errors.Is(err, home.ErrLocked)
	err = d.within(ctx)
	if beside {
		err = errors.Join(err, d.again(ctx, wait))
	}
	return d.log, err
}

// within ends the agents and whatever else the caller ends with them.
func (d *down) within(ctx context.Context) error {
	if d.o.Within == nil {
		return d.run(ctx)
	}
	return d.o.Within(func(only ...agent.ID) error {
		if len(only) > 0 {
			d.o.Agents = only
		}
		return d.run(ctx)
	})
}

// again ends whatever an up that was not waited for has started since. If that up still
// runs, it may start more; another down does not.
func (d *down) again(ctx context.Context, wait time.Duration) error {
	if who, held := d.l.Home.LockHolder(home.UpLock); held && who.Role == home.Ending {
		return nil
	}
	lctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock, err := d.l.Home.WaitLockAs(lctx, home.UpLock, home.Ending, nil)
	if err != nil {
		return fmt.Errorf("an `up` is still running and may start more: %w", err)
	}
	defer lock.Unlock()
	next := down{l: d.l, o: d.o, tell: d.tell, locked: true}
	return next.within(ctx)
}

// run ends the agents.
func (d *down) run(ctx context.Context) error {
	if err := d.find(ctx); err != nil {
		return err
	}
	d.want()
	d.asked = time.Now()
	if !d.o.Force {
		d.ask(ctx)
	}
	d.settle(ctx)
	d.retract(ctx)
	if d.locked && len(d.left) == 0 {
		kept, _ := d.l.kept() // an unreadable record stays unproved
		d.l.prove(kept...)
	}
	if len(d.left) > 0 {
		d.errs = append(d.errs, &InterruptedError{d.left})
	} else if d.o.All {
		d.closeServers(context.WithoutCancel(ctx))
	}
	return d.err()
}

// err joins what went wrong; agents that were not ended for one reason are named together.
func (d *down) err() error {
	errs := d.errs
	who := make(map[string][]agent.ID)
	for _, f := range d.failed {
		who[f.Err.Error()] = append(who[f.Err.Error()], agent.ID(f.What))
	}
	for _, f := range d.failed {
		if names := who[f.Err.Error()]; names != nil {
			errs = append(errs, fmt.Errorf("%s: %w", agent.Span(names), f.Err))
			delete(who, f.Err.Error())
		}
	}
	return errors.Join(errs...)
}

// A down ends sessions. It is the only thing that ends any: what an interrupted down has left, what
// a new start replaces, and an old ticker too.
type down struct {
	l       *Ender
	o       DownOptions
	tell    func(DownProgress)
	targets []*target
	wanted  []agent.ID // their desired state becomes down
	log     []DownProgress
	errs    []error
	failed  []DownProgress // with DownFailed
	acks    *AckWatch
	asked   time.Time
	hidden  bool       // tmux does not report its sessions
	locked  bool       // no up is running
	left    []agent.ID // still working when down was interrupted

	// why is recorded as the reason, "" for what has become of the request. A replaced start's end is on
	// record, and a new one takes the place of its proof.
	why      string
	replaced bool
}

// now ends sessions that nobody has to be asked about. No up runs.
func (d *down) now(ctx context.Context, list ...*target) error {
	d.tell = func(DownProgress) {}
	return errors.Join(d.end(ctx, list), d.err())
}

func (d *down) say(t *target, step DownStep, err error) {
	t.step = step
	p := DownProgress{Agent: t.id, What: t.name, Step: step, Err: err}
	if step == DownFailed {
		d.failed = append(d.failed, p)
	}
	if step == DownTimeout || step == DownUnfinished {
		p.After = time.Since(d.asked).Round(100 * time.Millisecond)
	}
	d.tell(p)
}

func (d *down) warn(id agent.ID, err error) {
	if err != nil {
		d.tell(DownProgress{Agent: id, What: string(id), Step: DownWarning, Err: err})
	}
}

// want saves the desired state down. A home that can't be written, or is full, does not
// stop the down, but makes it fail: the agents are still wanted up.
func (d *down) want() {
	if err := home.Desired(d.l.Home).SetAll(d.wanted, false, d.o.By); err != nil {
		d.errs = append(d.errs, fmt.Errorf("could not save desired state; agents may be started again: %w", err))
	}
}

// by names who wants them down. Requests come from agent0 whoever asked, because their
// format is agent0's and the acks are counted in agent0's mailbox.
func (d *down) by() string {
	by := d.o.By
	switch by {
	case "":
		return ""
	case string(agent.Owner):
		by = "the owner"
	}
	return " (asked by " + by + ", with netsky " + d.o.verb() + ")"
}

func (o DownOptions) verb() string {
	if o.Restart {
		return "restart"
	}
	return "down"
}

// ask sends every request before any agent is ended, even when ctx ends meanwhile: an
// agent that was not asked would be ended.
func (d *down) ask(ctx context.Context) {
	answers := func(t *target) bool { return !t.dead && t.id != "" }
	if !slices.ContainsFunc(d.targets, answers) {
		return
	}
	var err error
	if d.acks, err = NewAckWatch(d.l.Bus); err != nil {
		d.warn(agent.Root, err)
	}
	for _, t := range d.targets {
		if !answers(t) {
			continue
		}
		if t.deaf != nil {
			d.say(t, DownUnasked, t.deaf)
			continue
		}
		e := envelope.Envelope{
			ID:   fmt.Sprintf("shutdown-%s-%d", t.id, time.Now().UnixNano()),
			From: agent.Root, To: t.id, Kind: envelope.KindShutdown, Start: t.kin.start, RequiresAck: true, Via: "cli",
			Text: "shutdown: finish the running turn and say so" + d.by(),
			Time: time.Now(),
		}
		if _, err := d.l.Bus.Send(context.WithoutCancel(ctx), e); err != nil {
			d.say(t, DownUnasked, err)
			continue
		}
		t.req = e.ID
		d.say(t, DownAsked, nil)
	}
}

// downReasons are recorded as the reason why an agent ended.
var downReasons = map[DownStep]string{
	DownAsked:      "asked to finish",
	DownUnasked:    "could not be asked to finish",
	DownClosed:     "closed by itself",
	DownAcked:      "finished",
	DownUnfinished: "not finished in time",
	DownTimeout:    "did not answer in time",
}

// retract withdraws the requests that nobody claimed, and files the acks that agent0 did
// not live to take; they have been counted.
func (d *down) retract(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	asked := make(map[string]bool)
	for _, t := range d.targets {
		if t.req == "" || t.step == DownLeft {
			continue
		}
		asked[t.req] = true
		if _, err := d.l.Bus.Retract(ctx, t.id, func(e envelope.Envelope) bool { return e.ID == t.req }); err != nil {
			d.warn(t.id, fmt.Errorf("withdraw the shutdown request: %w", err))
		}
	}
	if len(asked) == 0 {
		return
	}
	_, err := d.l.Bus.Retract(ctx, agent.Root, func(e envelope.Envelope) bool {
		return e.Kind == envelope.KindShutdownAck && asked[e.InReplyTo]
	})
	if err != nil {
		d.warn(agent.Root, fmt.Errorf("file the acks: %w", err))
	}
}
