package spawn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus/envelope"
)

// DownOptions says which agents to end, and how.
type DownOptions struct {
	Agents []agent.ID // none: agent0 and all clones
	Force  bool       // end them at once, without asking
	All    bool       // agentinfinity and the ticker too
	By     string
	Keep   []int // processes that are never ended, with all below them: the daemon
	Report func(DownProgress)
	// Within is called to end the agents by end, and may end more before or after
	// it: no up is at work until it returns, unless Force has not waited for that
	// up. Its error is Down's. It may be nil.
	Within func(end func() error) error
}

// A DownStep is how far the ending of an agent has come.
type DownStep string

const (
	DownAsked   DownStep = "asked"   // the shutdown request is in its inbox
	DownUnasked DownStep = "unasked" // it could not be asked: Err
	DownClosed  DownStep = "closed"  // its session or its program was gone before it was ended
	DownAcked   DownStep = "acked"   // it acked; its session is being ended
	DownTimeout DownStep = "timeout" // neither within the time; being ended
	DownLeft    DownStep = "left"    // neither yet, and down was interrupted: it runs on until it has finished
	DownEnded   DownStep = "ended"   // session and processes are gone
	DownFailed  DownStep = "failed"  // it could not be ended: Err
	DownWarning DownStep = "warning" // Err, which stopped nothing
)

// DownProgress is one line of what down tells. Agent is "" for the ticker and
// for what concerns all.
type DownProgress struct {
	Agent agent.ID
	What  string // the session's name
	Step  DownStep
	After time.Duration // with DownTimeout
	Err   error
}

// An InterruptedError is that of a down whose context ended while agents that it
// had asked were still at work. They are wanted down and the requests stand: each
// goes when its turn ends, and Finish ends what is left of it then.
type InterruptedError struct{ Agents []agent.ID }

func (e *InterruptedError) Error() string {
	names := make([]string, len(e.Agents))
	for i, id := range e.Agents {
		names[i] = string(id)
	}
	they := "was asked to finish and has not yet; it ends when its turn does"
	if len(names) > 1 {
		they = "were asked to finish and have not yet; each ends when its turn does"
	}
	list := strings.Join(names, " ")
	return fmt.Sprintf("interrupted: %s %s; `netsky down %s --force` ends that now, `netsky up %s` takes it back",
		strings.Join(names, ", "), they, list, list)
}

// Down ends agents: by default agent0 and the clones. What is wanted is written
// down first, so nothing starts them again. Each is asked before any is ended;
// one that acks, or has gone, or does not answer in time, is ended with every
// process that it started. One failure does not stop the rest: the error joins
// them all. Requests that nobody claimed are taken back, so that a later start
// finds none. When ctx ends nobody is ended for that: the error of who is still
// at work then is an InterruptedError.
func (l *Launcher) Down(ctx context.Context, o DownOptions) ([]DownProgress, error) {
	d := down{l: l, o: o}
	d.tell = func(p DownProgress) {
		d.log = append(d.log, p)
		if o.Report != nil {
			o.Report(p)
		}
	}
	// An up that has only just made its sessions must not slip past; with force
	// an up that hangs must not stop the ending.
	wait := 20 * time.Second
	if o.Force {
		wait = 2 * time.Second
	}
	lctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock, err := l.Home.WaitLock(lctx, home.UpLock, nil)
	switch {
	case err == nil:
		defer lock.Unlock()
		d.locked = true
	case o.Force:
		d.tell(DownProgress{Step: DownWarning, Err: err})
	default:
		return nil, err
	}
	beside := lock == nil && errors.Is(err, home.ErrLocked)
	err = d.within(ctx)
	if beside {
		err = errors.Join(err, d.again(ctx, wait))
	}
	return d.log, err
}

// within ends the agents, and with them what else the caller ends.
func (d *down) within(ctx context.Context) error {
	if d.o.Within == nil {
		return d.run(ctx)
	}
	return d.o.Within(func() error { return d.run(ctx) })
}

// again ends, once more, what an up has started that was not waited for. One that
// is still at work may start more.
func (d *down) again(ctx context.Context, wait time.Duration) error {
	lctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock, err := d.l.Home.WaitLock(lctx, home.UpLock, nil)
	if err != nil {
		return fmt.Errorf("not known to be all: %w, and may start more", err)
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
		kept, _ := d.l.kept() // what can't be read stays unproved
		d.l.prove(kept...)
	}
	if len(d.left) > 0 {
		d.errs = append(d.errs, &InterruptedError{d.left})
	} else if d.o.All {
		// A daemon that was killed leaves its hub, which keeps the server alive.
		d.closeHubs(context.WithoutCancel(ctx))
		d.removeSocket(context.WithoutCancel(ctx))
	}
	return errors.Join(append(d.errs, d.failures()...)...)
}

// failures are the errors of those that were not ended, one for each reason.
func (d *down) failures() (errs []error) {
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
	return errs
}

type down struct {
	l       *Launcher
	o       DownOptions
	tell    func(DownProgress)
	targets []*target
	wanted  []agent.ID // whose desired state becomes down
	log     []DownProgress
	errs    []error
	failed  []DownProgress // with DownFailed
	acks    *acks
	asked   time.Time
	hidden  bool       // tmux does not tell what is there
	locked  bool       // no up is at work
	left    []agent.ID // still at work when down was interrupted
}

func (d *down) say(t *target, step DownStep, err error) {
	t.step = step
	p := DownProgress{Agent: t.id, What: t.name, Step: step, Err: err}
	if step == DownFailed {
		d.failed = append(d.failed, p)
	}
	if step == DownTimeout {
		p.After = time.Since(d.asked).Round(100 * time.Millisecond)
	}
	d.tell(p)
}

func (d *down) warn(id agent.ID, err error) {
	if err != nil {
		d.tell(DownProgress{Agent: id, What: string(id), Step: DownWarning, Err: err})
	}
}

// want writes down that they shall be down. A home that cannot be written, or
// is full, stops nothing: the owner said down. But it is no success: they are
// still wanted up.
func (d *down) want() {
	if err := d.l.Home.SetAllDesired(d.wanted, false, d.o.By); err != nil {
		d.errs = append(d.errs, fmt.Errorf("not written down that they shall stay down: %w", err))
	}
}

// by says who wants them down. The requests are agent0's, whoever that is: so is
// their format, and the acks are counted in agent0's mailbox.
func (d *down) by() string {
	switch d.o.By {
	case "":
		return ""
	case string(agent.Owner):
		return " (asked by the owner, with netsky down)"
	}
	return " (asked by " + d.o.By + ", with netsky down)"
}

// ask sends every request before anything is ended, also when ctx ends meanwhile:
// who was not asked would be ended.
func (d *down) ask(ctx context.Context) {
	var err error
	if d.acks, err = newAcks(d.l.Bus); err != nil {
		d.warn(agent.Root, err)
	}
	for _, t := range d.targets {
		if t.dead || t.id == "" {
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

// downReasons say on record how an agent came to be ended.
var downReasons = map[DownStep]string{
	DownAsked:   "asked to finish",
	DownUnasked: "could not be asked to finish",
	DownClosed:  "closed by itself",
	DownAcked:   "finished",
	DownTimeout: "no answer in time",
}

// retract takes back the requests that nobody claimed, and files the acks that
// agent0 did not live to take: they have been counted.
func (d *down) retract(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	asked := make(map[string]bool)
	for _, t := range d.targets {
		if t.req == "" || t.step == DownLeft {
			continue
		}
		asked[t.req] = true
		if _, err := d.l.Bus.Retract(ctx, t.id, func(e envelope.Envelope) bool { return e.ID == t.req }); err != nil {
			d.warn(t.id, fmt.Errorf("taking back the shutdown request: %w", err))
		}
	}
	if len(asked) == 0 {
		return
	}
	_, err := d.l.Bus.Retract(ctx, agent.Root, func(e envelope.Envelope) bool {
		return e.Kind == envelope.KindShutdownAck && asked[e.InReplyTo]
	})
	if err != nil {
		d.warn(agent.Root, fmt.Errorf("filing the acks: %w", err))
	}
}
