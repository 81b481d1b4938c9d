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
	"path"
	"slices"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/link"
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

	id     string
	file   string // its file name in the agent's mailbox
	sent   time.Time
	keeper proc.Process // of the start that was looked at; its death has it looked at again
	course course
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
	case p.up, p.Agent.Host() != "":
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
	there, err := p.Launcher.Bus.Watch(wctx, append(append(bus.Spots(p.Agent), bus.Spot{Mailbox: p.Agent}, bus.Spot{Dir: path.Dir(home.Mailbox(p.Agent))}), shows...)...) // where the message goes, and what another host reports of it
	if err != nil {
		return answer, err
	}
	defer there.Close()
	deaths, err := proc.NewWatcher()
	if err != nil {
		return answer, err
	}
	defer deaths.Close()
	looked := time.Now()
	p.course = course{
		to: p.Agent, id: p.id, ends: looked.Add(p.Wait), say: p.say, warn: p.warn, up: p.up, start: p.start, due: looked.Add(lookRest),
	}
	timer := time.NewTimer(lookRest)
	defer timer.Stop()
	for {
		var l *sighting
		select {
		case <-wctx.Done():
			if ctx.Err() != nil {
				return answer, unanswered("interrupted; the message %s stays sent; its answer will be in `netsky inbox`", p.id)
			}
			l := p.look(ctx, deaths)
			p.course.progress(l) // what it is stuck at may be of half a minute ago
			return answer, unanswered("no answer from %s in %v%s; the message %s is %s; its answer will be in `netsky inbox`",
				p.Agent, p.Wait, p.course.stuck, p.id, p.course.whereabouts(l))
		case <-there.C:
			p.course.by(looked.Add(lookRest))
		case <-deaths.Deaths():
			p.course.by(looked.Add(lookRest))
		case <-w.C:
		case <-timer.C:
			looked = time.Now()
			l = p.look(ctx, deaths)
		}
		if e, ok, err := p.Launcher.Bus.FindAnswer(wctx, p.Agent, p.Actor, p.id, p.sent); err == nil && ok {
			return e, nil
		} else if err != nil && wctx.Err() == nil {
			return answer, err
		}
		if l != nil { // it is from before it was known that there is no answer
			if err := p.course.judge(l); err != nil {
				return answer, err
			}
		}
		timer.Stop()
		if due := p.course.due; !due.IsZero() {
			timer.Reset(time.Until(due))
		}
	}
}

// lookRest is the least time between two looks at the agent.
const lookRest = time.Second

// shows are the directories in which a change shows what becomes of the agent and its messages.
var shows = []bus.Spot{
	{Dir: home.ReportDir}, {Dir: home.KeeperDir}, {Dir: home.LaunchDir}, {Dir: home.ApprovalDir}, {Dir: home.BreakersDir},
	{Dir: pane.ScreensDir},
}

// far says why an agent on another host does not take its mail now, as far as that is known here, "" if it does.
func far(hosts []attention.Host, id agent.ID, r link.Report) string {
	host := id.Host()
	if t, down := r.Tunnel(host); down {
		return fmt.Sprintf("the tunnel to %s is down since %s: %s", host, t.Since.Local().Format(time.TimeOnly), t.What)
	}
	for _, o := range hosts {
		if o.Name == host && !o.Up && o.Seen != 0 {
			return fmt.Sprintf("nothing is heard of %s since %s", host, o.Seen.Time().Local().Format(time.TimeOnly))
		}
	}
	if stateOf(hosts, id) == agent.Down {
		return fmt.Sprintf("%s is down, as %s has told; `netsky up %s` starts it", id, host, id.N())
	}
	return ""
}

// look reads what a judgement needs. The death of the keeper, which may leave no file, is
// watched from now on.
func (p *question) look(ctx context.Context, deaths *proc.Watcher) *sighting {
	h, l := p.Launcher.Home, &sighting{at: time.Now()}
	e, err := p.Launcher.Bus.Find(p.Agent, p.file)
	l.place, l.why, l.nowhere = e.Place, e.Why, errors.Is(err, fs.ErrNotExist)
	if p.Agent.Host() != "" {
		hosts, _ := attention.Hosts(h, l.at) // `netsky needs` says what can't be read
		l.there, _, _ = p.Launcher.Bus.LastReport(p.Agent, p.Actor, p.id)
		if r, err := link.LoadReport(h); err != nil {
			l.link = "the link has not run here yet"
		} else {
			l.link, l.far = r.Down(l.at), far(hosts, p.Agent, r)
		}
		if p.Actor == agent.Owner {
			for _, n := range attention.List(attention.Sources{Hosts: hosts}) {
				if (n.Kind == attention.Approval || n.Kind == attention.Dialog) && slices.Contains(n.Agents, p.Agent) {
					l.need = n
				}
			}
		}
		return l
	}
	if k, err := h.LoadKeeper(p.Agent); err == nil && k.Own.Named() && k.Own != p.keeper && deaths.Add("keeper", k.Own) == nil {
		p.keeper = k.Own
	}
	list, err := p.Launcher.Inspect(ctx)
	if err == nil {
		l.known, l.agent = true, list.Find(p.Agent)
		_, working := h.LockHolder(home.UpLock)
		l.returns = working || l.agent.State == agent.Dead && backoff.Soon(h, p.Agent, l.agent.Start)
	}
	ledger := courier.ReadLedger(h, p.Agent)
	l.message, _ = ledger.Find(p.id)
	l.owed = ledger.Owes(p.id)
	if l.message.State == courier.StateHeld {
		l.fault = l.message.Held.Fault
	} else if r, err := h.LoadReport(p.Agent); err == nil && r.State == agent.Blocked {
		l.fault = r.Fault
	}
	if s, err := breaker.Of(h, l.fault.Account).Load(); err == nil && l.fault.Account != "" {
		l.breaker = s
	}
	if p.Actor == agent.Owner { // an agent can't answer
		if list, err := home.Approvals(h).List(); err == nil {
			if i := slices.IndexFunc(list, func(q agent.Approval) bool { return q.Agent == p.Agent }); i >= 0 {
				l.asks = &list[i]
			}
		}
	}
	return l
}
