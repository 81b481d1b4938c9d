package codex

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/codex/appserver"
	"netsky/store"
)

const (
	evidence = "codex thread events"
	maxWords = 200 // bytes of a detail and of a log's text
)

// works sets the state of an agent whose turn goes on. A question that is still open
// counts more than what the turn does meanwhile. What is reported of a turn that has ended
// already, as an answer to it may be, changes nothing.
func (r *resident) works(now agent.Report) {
	switch t := r.opened(); {
	case t == nil || t.Running() == nil:
	case len(r.asks) > 0:
		r.set(agent.Waiting, r.asks[0])
	default:
		r.show(now)
	}
}

// goesOn is works for a turn of which nothing more is known.
func (r *resident) goesOn() { r.works(agent.Report{State: agent.Busy, Detail: "turn"}) }

// approval is the detail of an agent that waits for an answer.
func approval(e appserver.Event) string { return "approval: " + strings.TrimSpace(e.Tool+" "+e.Text) }

// follow handles the open thread's events until ctx ends, the connection is lost or Codex
// is to read its login again; only then cut is false.
func (r *resident) follow(ctx context.Context) (cut bool) {
	look := time.NewTicker(beat)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return true
		case <-r.renew:
			if r.renewable(true) {
				return false
			}
		case <-look.C:
			if r.renewable(false) {
				return false
			}
		case e := <-r.session.events:
			switch e.Kind {
			case appserver.TurnCompleted, appserver.TurnInterrupted, appserver.TurnFailed:
				r.ended(ctx, e)
			case appserver.ThreadLost:
				r.lost(e.Err)
				return true
			default:
				r.event(ctx, e)
			}
		}
	}
}

// event handles an event that is not the end of a turn.
func (r *resident) event(ctx context.Context, e appserver.Event) {
	switch e.Kind {
	case appserver.TurnStarted:
		r.take("")
		r.spent, r.spoke, r.asked, r.asks = appserver.Usage{}, false, false, nil
		r.goesOn()
		r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: e.Turn}})
	case appserver.Accepted:
		r.asked = true
		if e.Input == "" { // a person typed it
			r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: e.Turn, Text: "typed"}})
			return
		}
		r.take(e.Input)
		r.session.accepted(ctx, e.Input)
		r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: e.Turn, IDs: []string{e.Input}}})
	case appserver.Compacted:
		r.record("the conversation was compacted")
		r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: e.Thread, Text: courier.Compacted}})
	case appserver.Message:
		r.print.heading(string(r.Agent), e.Text)
		r.unasked(e.Turn)
		if !r.spoke {
			r.spoke, r.shrunk = true, false
			r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventTool, ID: e.Turn}})
		}
	case appserver.ToolStarted:
		r.unasked(e.Turn)
		r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventTool, ID: e.Turn, Tool: e.Tool, Text: envelope.Line(e.Text, maxWords)}})
		r.print.heading(e.Tool, e.Text)
		r.works(agent.Report{State: agent.Busy, Detail: strings.TrimSpace(e.Tool + ": " + e.Text)})
		r.record(e.Tool + " started: " + e.Text)
	case appserver.ToolFinished:
		r.goesOn()
		how := " finished: "
		if e.Failed {
			how = " failed: "
		} else if r.Edited != nil {
			for _, name := range e.Files {
				r.Edited(name)
			}
		}
		r.record(e.Tool + how + e.Text)
	case appserver.ApprovalAsked:
		r.asks = append(r.asks, approval(e))
		r.goesOn()
	case appserver.ApprovalSettled:
		if i := slices.Index(r.asks, approval(e)); i >= 0 {
			r.asks = slices.Delete(r.asks, i, i+1)
		}
		r.goesOn()
	case appserver.Retrying:
		r.retrying(e)
	case appserver.Resumed:
		r.goesOn()
	case appserver.TokenUsage:
		r.count(e.Usage)
	}
}

// unasked reports a turn in which the model does something before anybody has asked for that:
// Codex has begun it by itself.
func (r *resident) unasked(turn string) {
	if !r.asked {
		r.asked = true
		r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: turn, Self: true}})
	}
}

// retrying handles a notice that Codex tries a request again by itself.
func (r *resident) retrying(e appserver.Event) {
	now := agent.Report{State: agent.Busy, Detail: "retrying", Fault: r.affects(e.Fault), Attempt: e.Attempt, Of: e.Of}
	if e.Of > 0 {
		now.Detail += fmt.Sprintf(", attempt %d of %d", e.Attempt, e.Of)
	}
	if why := e.Fault.Reason.Text(); why != "" {
		now.Detail += ": " + why
	} else {
		now.Detail += ": " + e.Text
	}
	r.works(now)
	if e.Fault.Reason == agent.Overloaded {
		r.giveUp(e.Turn, now.Fault)
	}
}

// giveUp interrupts a message's turn whose request the vendor can't serve: Codex sends each
// one five times before it says that it tries again, and says so five times. The message is
// held then, and the account's breaker decides when the next try is.
func (r *resident) giveUp(turn string, why agent.Fault) {
	r.mu.Lock()
	t := r.thread
	if r.message == "" || r.gaveUp.turn == turn || t == nil {
		t = nil
	} else {
		r.gaveUp = abandoned{turn, why}
	}
	r.mu.Unlock()
	if t == nil {
		return
	}
	if running := t.Running(); running != nil && running.ID == turn {
		r.group.Go(running.BreakOff)
	}
}

// fullTime is how long mail waits after the context was full, unless the thread is
// compacted or a turn succeeds before.
const fullTime = 10 * time.Minute

// ended handles the end of a turn.
func (r *resident) ended(ctx context.Context, e appserver.Event) {
	r.offering.Lock() // by then the id of a turn that has just started is known
	r.mu.Lock()
	h, overdue, gave := r.handed, r.overdue == e.Turn, r.gaveUp
	if overdue {
		r.overdue = ""
	}
	r.mu.Unlock()
	r.offering.Unlock()
	stop := courier.Event{Event: agent.Event{Event: agent.EventStop, ID: e.Turn, Session: e.Thread, Usage: usage(r.spent), Self: !r.asked}}
	detail, failed := "", agent.Reason("")
	switch {
	case e.Kind == appserver.TurnCompleted:
		stop.Text = ExtractReply(e.Text)
	case overdue:
		stop.Event.Event, stop.Text = agent.EventStopFailed, r.tooLong()
		detail = "last turn interrupted: " + stop.Text
	case e.Kind == appserver.TurnInterrupted && gave.turn == e.Turn:
		stop.Event.Event, stop.Text, stop.Fault = agent.EventStopFailed, gave.why.String(), &gave.why
		detail = "last turn failed: " + stop.Text
	case e.Kind == appserver.TurnInterrupted:
		if r.ending(ctx) {
			return // cut off by the shutdown; the next process continues it
		}
		stop.Event.Event, stop.Error = agent.EventStopFailed, courier.Interrupted
		detail = "last turn interrupted"
	default:
		r.print.say("the turn failed: " + e.Err.Error())
		stop.Event.Event, stop.Text, stop.Fault = agent.EventStopFailed, e.Err.Error(), r.fault(e.Err)
		if stop.Fault != nil {
			failed = stop.Fault.Reason
		}
		detail = "last turn failed: " + e.Err.Error()
	}
	r.mu.Lock()
	switch {
	case failed == agent.ContextFull:
		r.full, r.fullOf = time.Now().Add(fullTime), *stop.Fault
	case failed == agent.Login:
		r.refused = true
	case e.Kind == appserver.TurnCompleted:
		r.full, r.refused = time.Time{}, false
	}
	r.mu.Unlock()
	told := []courier.Event{stop}
	if h.turn == e.Turn && !h.taken { // Codex accepted the turn but not the text: that is not retried forever
		prompt := courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: e.Turn, IDs: []string{h.id}}}
		told = []courier.Event{prompt, stop}
	}
	r.queue.Put(told...) // before the agent takes mail again: a fault may mean that there is to be none
	r.rest(detail)
	if failed == agent.ContextFull && r.Compact && !r.shrunk {
		r.shrunk = true
		r.group.Go(func() { r.compact(ctx) })
	}
	r.goesOn() // if the next one has begun
}

// compact has Codex compact its full thread; if it can't, the agent stays blocked.
func (r *resident) compact(ctx context.Context) {
	t := r.opened()
	if t == nil {
		return
	}
	r.record("the context is full: compacting the conversation")
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := t.Compact(ctx); err != nil {
		r.print.say("compact the thread: " + err.Error())
	}
}

// tooLong is the error for the sender of a message whose turn exceeded the limit.
func (r *resident) tooLong() string {
	return fmt.Errorf("%w: over %v", appserver.ErrTimeout, r.Limit).Error()
}

// ending reports whether the server is shutting down: it interrupts its turns before.
func (r *resident) ending(ctx context.Context) bool {
	timer := time.NewTimer(grace / 20)
	defer timer.Stop()
	select {
	case <-r.session.server.Done():
		return true
	case <-ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// lost handles the end of the connection. A turn that was to be interrupted and had not
// ended is reported as ended.
func (r *resident) lost(why error) {
	r.print.say(why.Error() + "; restarting it")
	r.mu.Lock()
	overdue, running := r.overdue, r.now.State == agent.Busy || r.now.State == agent.Waiting
	r.thread, r.asks = nil, nil
	r.mu.Unlock()
	if running {
		r.set(agent.Busy, "codex is being restarted")
	}
	if overdue != "" {
		r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventStopFailed, ID: overdue, Text: r.tooLong()}})
	}
}

// count adds up the running turn's tokens. Codex reports those of the whole thread,
// also when nothing has been spent.
func (r *resident) count(u *appserver.Usage) {
	if r.before != nil && u.Total >= r.before.Total {
		r.spent.Input += u.Input - r.before.Input
		r.spent.CachedInput += u.CachedInput - r.before.CachedInput
		r.spent.Output += u.Output - r.before.Output
	} else if u.Total == u.Last { // the thread's first
		r.spent.Input += u.Input
		r.spent.CachedInput += u.CachedInput
		r.spent.Output += u.Output
	}
	r.spent.Last = u.Last
	r.before = u
}

// usage returns a turn's usage in the form of all runtimes.
func usage(u appserver.Usage) *agent.Usage {
	return &agent.Usage{Input: u.Input - u.CachedInput, CacheRead: u.CachedInput, Output: u.Output, ContextNow: u.Last}
}

// record adds a log entry about the running turn's message, or else the thread.
func (r *resident) record(text string) {
	if r.Records == nil {
		return
	}
	r.mu.Lock()
	about := r.message
	if about == "" && r.thread != nil {
		about = r.thread.ID()
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	// A record that the database does not accept waits in the spool, which is reported
	// elsewhere.
	r.Records.Record(ctx, store.AddLog{
		Part: "codex", Actor: r.Agent, About: about, Text: envelope.Line(text, maxWords), Time: store.At(time.Now()),
	})
}
