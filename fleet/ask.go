// This file sends a question to an agent and follows it to its answer: it reports
// what the agent does meanwhile, and gives up once the agent has ended. The message
// stays sent, whatever happens to the process that waits.
//
// It waits for files to change and for the keeper's process to end. Only what leaves no file
// is looked at each second: the pane of a program that reports nothing, and, for some seconds,
// whether an agent that is gone, or a message that is nowhere, comes back.

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/watch/backoff"
)

// A question is one message whose answer is waited for.
type question struct {
	Mail
	AskRequest
	up      bool   // the agent has been seen alive
	returns bool   // it has died, and is about to be started again
	start   string // its start id then

	id      string
	file    string // its file name in the agent's mailbox
	sent    time.Time
	state   agent.State
	detail  string
	taken   bool
	gone    time.Time    // when it was first seen not alive; zero while it is alive
	renewed bool         // it was started again, and nothing yet shows what that start does about the message
	rests   time.Time    // since when that start has been idle; zero while it is not
	code    string       // of its permission request reported last
	missing int          // looks at which the message was nowhere
	held    string       // why its message is held, as reported last
	stuck   string       // why it is not working: ", as it is waiting (…)"
	looked  time.Time    // when its state was last looked at
	next    time.Time    // when to look again, whatever happens; zero: when something has
	keeper  proc.Process // of the start that was looked at; its death has it looked at again
}

// ErrUnanswered is returned for a question that was sent and has no answer yet.
var ErrUnanswered = errors.New("no answer yet")

type unansweredError struct{ error }

func (unansweredError) Is(target error) bool { return target == ErrUnanswered }

func unanswered(format string, args ...any) error {
	return unansweredError{fmt.Errorf(format, args...)}
}

// put sends the question and waits for the answer.
func (p *question) put(ctx context.Context) (bus.Entry, error) {
	// The watch starts before the message is sent, so that no answer is missed.
	w, err := p.Launcher.Bus.Watch(ctx, bus.Spots(p.Actor)...)
	if err != nil {
		return bus.Entry{}, err
	}
	defer w.Close()
	p.sent = time.Now()
	r, err := p.Launcher.Bus.Send(ctx, envelope.Envelope{From: p.Actor, To: p.Agent, Text: p.Text, Via: "cli", RequiresAck: true, Time: p.sent})
	if err != nil {
		return bus.Entry{}, fmt.Errorf("not sent: %w", err)
	}
	p.id, p.file = r.ID, r.File
	p.say("sent %s to %s", r.ID, p.Agent)
	switch {
	case p.up:
	case p.returns:
		p.warn("%s has died and is about to be started again: the message %s waits in its inbox; waiting up to %v for the answer", p.Agent, p.id, p.Wait)
	default:
		p.warn("%s is down: the message %s waits in its inbox until `netsky up %[1]s`; waiting up to %[3]v for the answer (Ctrl-C stops only this wait; `netsky cancel %[2]s` cancels the message)", p.Agent, p.id, p.Wait)
	}
	return p.wait(ctx, w)
}

// say reports progress.
func (p *question) say(format string, args ...any) {
	p.UI.Step(Step{Line: fmt.Sprintf(format, args...)})
}

func note(s string) string {
	if s == "" {
		return ""
	}
	return "  " + s
}

// mourning is how long an agent has to be gone, or its new start idle, before the wait for
// its answer ends: one that is being restarted is back sooner.
const mourning = 5 * time.Second

func (p *question) wait(ctx context.Context, w *bus.Watch) (answer bus.Entry, err error) {
	wctx, cancel := context.WithTimeout(ctx, p.Wait)
	defer cancel()
	there, err := p.Launcher.Bus.Watch(wctx, append(bus.Spots(p.Agent), shows...)...) // where the message goes
	if err != nil {
		return answer, err
	}
	defer there.Close()
	deaths, err := proc.NewWatcher()
	if err != nil {
		return answer, err
	}
	defer deaths.Close()
	p.looked = time.Now()
	p.by(p.looked.Add(lookRest))
	look := time.NewTimer(lookRest)
	defer look.Stop()
	for {
		select {
		case <-wctx.Done():
			if ctx.Err() != nil {
				return answer, unanswered("interrupted; the message %s stays sent; its answer will be in `netsky inbox`", p.id)
			}
			p.progress(ctx, deaths) // stuck may be of half a minute ago
			return answer, unanswered("no answer from %s in %v%s; the message %s is %s; its answer will be in `netsky inbox`",
				p.Agent, p.Wait, p.stuck, p.id, p.whereabouts())
		case <-w.C:
			e, ok, err := p.Launcher.Bus.FindAnswer(wctx, p.Agent, p.Actor, p.id, p.sent)
			switch {
			case ok && err == nil:
				return e, nil
			case err != nil && wctx.Err() == nil:
				return answer, err
			}
		case <-there.C:
			p.arrived()
			p.by(p.looked.Add(lookRest))
		case <-deaths.Deaths():
			p.by(p.looked.Add(lookRest))
		case <-look.C:
			p.looked, p.next = time.Now(), time.Time{}
			if err := p.progress(ctx, deaths); err != nil {
				return answer, err
			}
			if err := p.cancelled(wctx); err != nil {
				return answer, err
			}
			if err := p.heldUp(wctx); err != nil {
				return answer, err
			}
		}
		look.Stop()
		if !p.next.IsZero() {
			look.Reset(time.Until(p.next))
		}
	}
}

// lookRest is the least time between two looks at the agent.
const lookRest = time.Second

// shows are the directories in which a change shows what becomes of the agent and its messages.
var shows = []bus.Spot{
	{Dir: home.ReportDir}, {Dir: home.KeeperDir}, {Dir: home.LaunchDir}, {Dir: home.ApprovalDir}, {Dir: home.BreakersDir},
	{Dir: courier.LedgerDir}, {Dir: pane.ScreensDir},
}

// by has the agent looked at by that time.
func (p *question) by(t time.Time) {
	if p.next.IsZero() || t.Before(p.next) {
		p.next = t
	}
}

// progress reports changes. It returns an error when the agent has ended, and no answer
// can be expected. It is due again in a moment while time alone, or what leaves no file, may
// change that.
func (p *question) progress(ctx context.Context, deaths *proc.Watcher) error {
	p.arrived()
	list, err := p.Launcher.Inspect(ctx)
	if err != nil {
		p.by(p.looked.Add(lookRest))
		return nil
	}
	st := list.Find(p.Agent)
	if k, err := p.Home.LoadKeeper(p.Agent); err == nil && k.Own.Named() && k.Own != p.keeper && deaths.Add("keeper", k.Own) == nil {
		p.keeper = k.Own // the end of one that is killed is in no file
	}
	if st.Silent || st.State == agent.Unknown || p.up && !st.Alive() {
		p.by(p.looked.Add(lookRest))
	}
	untaken := st.Silent && !p.taken && st.Detail != "" && st.Alive()
	if st.State != p.state || untaken && st.Detail != p.detail {
		p.state, p.detail = st.State, st.Detail
		p.say("%s is %s%s", p.Agent, st.State, note(st.Detail))
	}
	p.stuck = ""
	if untaken || st.State == agent.Waiting || st.State == agent.Blocked || st.State == agent.Unknown {
		p.stuck = ", as it is " + st.How() + p.permission()
	}
	switch {
	case st.Alive():
		again := p.up && p.start != "" && p.start != st.Start
		p.up, p.start, p.gone = true, st.Start, time.Time{}
		if p.renewed = p.renewed || again; p.renewed {
			return p.restarted(ctx, st, again)
		}
	case !p.up: // --queue: it may wait
	case p.gone.IsZero() || p.atWork() || st.State == agent.Dead && backoff.Soon(p.Home, p.Agent, st.Start):
		p.gone = time.Now()
	case time.Since(p.gone) >= mourning:
		return advice.With(unanswered("%s is %s and has not answered; the message %s is %s; an answer after its next start will be in `netsky inbox`",
			p.Agent, st.How(), p.id, p.whereabouts()), "`netsky agent %s` starts it", p.Agent.N())
	}
	return nil
}

// heldUp reports that the message is held because the model's vendor does not serve the
// agent, or waits behind one that is. It returns an error if that lasts longer than the wait.
func (p *question) heldUp(ctx context.Context) error {
	if !p.up || !p.gone.IsZero() {
		return nil // its next start will show
	}
	m, _ := courier.ReadLedger(p.Home, p.Agent).Find(p.id)
	where, fault := "is held, and is given to it again", agent.Fault{}
	if m.State == courier.StateHeld {
		fault = m.Held.Fault
	} else {
		r, err := p.Home.LoadReport(p.Agent)
		if err != nil || r.State != agent.Blocked || !r.Fault.Reason.OfAccount() && r.Fault.Reason != agent.ContextFull {
			return nil
		}
		fault, where = r.Fault, "waits, and is given to it"
	}
	retry, known := fault.Until(), true
	if s, err := breaker.Of(p.Home, fault.Account).Load(); err == nil && s.Tripped() {
		retry, known = s.Retry(), s.RetryMS != 0
	}
	when := "in a moment"
	switch {
	case fault.Reason == agent.ContextFull:
		when = "once its conversation is compacted (`netsky attach " + string(p.Agent) + "`, then /compact), else in some minutes"
	case !known:
		when = "when that has been mended"
	case retry.After(time.Now()):
		p.by(retry)
		when, fault.UntilMS = "at "+agent.Clock(retry, time.Now()), retry.UnixMilli()
		if fault.Reason == agent.Login {
			when, fault.UntilMS = when+", or after a login", 0
		}
	}
	text := fmt.Sprintf("%s can't answer now: %s; the message %s %s %s", p.Agent, fault, p.id, where, when)
	deadline, _ := ctx.Deadline()
	if !known || retry.After(deadline) {
		return advice.With(unanswered("%s; its answer will be in `netsky inbox`", text), "`netsky cancel %s` cancels it", p.id)
	}
	if text != p.held {
		p.held = text
		p.warn("%s", text)
	}
	return nil
}

// restarted reports that the agent has been started again. It returns an error if the new
// start has been idle for some time and has done nothing about the message: one that only
// the program itself knows of is answered when that has come so far.
func (p *question) restarted(ctx context.Context, st spawn.Status, again bool) error {
	owed := courier.ReadLedger(p.Home, p.Agent).Owes(p.id) // until the answer is sent
	if place := p.whereabouts(); owed || place == waits || place == handled {
		p.renewed = false
		p.warn("%s was ended and started again; its new start answers the message, or gets it again", p.Agent)
		return nil
	}
	if _, found, err := p.Launcher.Bus.FindAnswer(ctx, p.Agent, p.Actor, p.id, p.sent); found || err != nil {
		return nil // it is read next
	}
	if again {
		p.rests = time.Time{}
		p.warn("%s was ended and started again; it may not know of the message %s any more", p.Agent, p.id)
	}
	switch {
	case st.State != agent.Idle || st.Detail != "": // as it waits for somebody else
		p.rests = time.Time{}
		return nil
	case p.rests.IsZero():
		p.rests = time.Now()
	}
	if time.Since(p.rests) < mourning {
		p.by(p.looked.Add(lookRest))
		return nil
	}
	return unanswered("%s was ended and started again, and has not answered; the message %s is %s, and its new start does not know of it",
		p.Agent, p.id, p.whereabouts())
}

// cancelled returns an error if the message is in none of the agent's places any more, or
// was taken back.
func (p *question) cancelled(ctx context.Context) error {
	e, err := p.Launcher.Bus.Find(p.Agent, p.file)
	taken := err == nil && e.Place == bus.Delivered && e.Why != ""
	if !taken && !errors.Is(err, fs.ErrNotExist) {
		p.missing = 0
		return nil
	}
	p.by(p.looked.Add(lookRest))
	if p.missing++; p.missing < 3 || courier.ReadLedger(p.Home, p.Agent).Owes(p.id) {
		return nil // it may be moving, or be held
	}
	if _, found, err := p.Launcher.Bus.FindAnswer(ctx, p.Agent, p.Actor, p.id, p.sent); found || err != nil {
		return nil // it is read next
	}
	if taken {
		return fmt.Errorf("the message %s was %s: there will be no answer", p.id, e.Why)
	}
	return fmt.Errorf("the message %s was cancelled, as its file is gone: there will be no answer", p.id)
}

// arrived reports, once, that the agent has the message.
func (p *question) arrived() {
	if !p.taken && p.whereabouts() == string(bus.Delivered) {
		p.taken = true
		p.say("%s has it", p.Agent)
	}
}

// permission names the command that answers the agent's request for permission, and
// prints it once as soon as it is asked.
func (p *question) permission() string {
	if p.Actor != agent.Owner {
		return "" // an agent can't answer
	}
	list, err := home.Approvals(p.Home).List()
	i := slices.IndexFunc(list, func(q agent.Approval) bool { return q.Agent == p.Agent })
	if err != nil || i < 0 {
		return ""
	}
	q := list[i]
	how := fmt.Sprintf("`netsky approve %s` allows it once, with --deny it denies it", q.Code)
	line, cut := q.Brief(200)
	switch {
	case q.Closed() != "":
		how = fmt.Sprintf("`netsky attach %s` opens its pane to answer it there: %s", p.Agent, q.Closed())
	case cut:
		how = fmt.Sprintf("`netsky needs %s` shows all of it, and how to answer it", q.Code)
	}
	if p.code != q.Code {
		p.code = q.Code
		p.warn("%s asks for permission to use %s: %s; %s", p.Agent, q.Tool, line, how)
	}
	return "; " + how
}

// atWork reports whether an up or a down is running.
func (p *question) atWork() bool {
	_, ok := p.Home.LockHolder(home.UpLock)
	return ok
}

const (
	waits   = "waiting in its inbox"
	handled = "in progress"
)

func (p *question) whereabouts() string {
	e, err := p.Launcher.Bus.Find(p.Agent, p.file)
	if err != nil {
		return "no longer in its mailbox"
	}
	switch e.Place {
	case bus.Inbox:
		return waits
	case bus.Claimed:
		if !p.gone.IsZero() || !p.up {
			return "not finished: its next start gets it again"
		}
		return handled
	}
	return string(e.Place)
}
