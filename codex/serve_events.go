package codex

import (
	"context"
	"errors"
	"fmt"
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

// set sets the agent's state.
func (r *resident) set(state agent.State, detail string) {
	r.mu.Lock()
	r.state, r.detail = state, envelope.Line(detail, maxWords)
	r.mu.Unlock()
	r.queue.Put(courier.Event{Event: agent.Event{Event: courier.EventState}})
}

// follow handles the open thread's events, until ctx ends or the connection is lost, or
// returns the error of a turn for which there was no login.
func (r *resident) follow(ctx context.Context) (login error) {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-r.session.events:
			switch e.Kind {
			case appserver.TurnCompleted, appserver.TurnInterrupted, appserver.TurnFailed:
				if login := r.ended(ctx, e); login != nil {
					return login
				}
			case appserver.ThreadLost:
				r.lost(e.Err)
				return nil
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
		r.spent = appserver.Usage{}
		r.set(agent.Busy, "turn")
		r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: e.Turn}})
	case appserver.Accepted:
		if e.Input == "" {
			return // a person typed it
		}
		r.take(e.Input)
		r.session.accepted(ctx, e.Input)
		r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: e.Turn, IDs: []string{e.Input}}})
	case appserver.Message:
		r.print.heading(string(r.Agent), e.Text)
	case appserver.ToolStarted:
		r.print.heading(e.Tool, e.Text)
		r.set(agent.Busy, strings.TrimSpace(e.Tool+": "+e.Text))
		r.record(e.Tool + " started: " + e.Text)
	case appserver.ToolFinished:
		r.set(agent.Busy, "turn")
		how := " finished: "
		if e.Failed {
			how = " failed: "
		}
		r.record(e.Tool + how + e.Text)
	case appserver.ApprovalAsked:
		r.set(agent.Waiting, "approval: "+strings.TrimSpace(e.Tool+" "+e.Text))
	case appserver.ApprovalSettled:
		r.set(agent.Busy, "turn")
	case appserver.Retrying:
		r.set(agent.Busy, "turn; retrying: "+e.Text)
	case appserver.TokenUsage:
		r.count(e.Usage)
	}
}

// take records which message the running turn took last.
func (r *resident) take(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.message = message
	if message != "" && message == r.handed.id {
		r.handed.taken = true
	}
}

// ended handles the end of a turn.
func (r *resident) ended(ctx context.Context, e appserver.Event) (login error) {
	r.offering.Lock() // by then the id of a turn that has just started is known
	r.mu.Lock()
	h, overdue := r.handed, r.overdue == e.Turn
	if overdue {
		r.overdue = ""
	}
	r.mu.Unlock()
	r.offering.Unlock()
	stop := courier.Event{Event: agent.Event{Event: agent.EventStop, ID: e.Turn, Session: e.Thread, Usage: usage(r.spent)}}
	state, detail := agent.Idle, ""
	trouble := troubleOf(e.Err)
	switch {
	case e.Kind == appserver.TurnCompleted:
		stop.Text = ExtractReply(e.Text)
	case overdue:
		stop.Event.Event, stop.Text = agent.EventStopFailed, r.tooLong()
		detail = "last turn interrupted: " + stop.Text
	case e.Kind == appserver.TurnInterrupted:
		if r.ending(ctx) {
			return nil // cut off by the shutdown; the next process continues it
		}
		stop.Event.Event, stop.Error = agent.EventStopFailed, courier.Interrupted
		detail = "last turn interrupted"
	default:
		r.print.say("the turn failed: " + e.Err.Error())
		stop.Event.Event, stop.Text, stop.Again = agent.EventStopFailed, e.Err.Error(), trouble == appserver.TroubleLogin
		detail = "last turn failed: " + e.Err.Error()
	}
	r.mu.Lock()
	r.quota = trouble == appserver.TroubleQuota || r.quota && e.Kind != appserver.TurnCompleted
	if trouble == appserver.TroubleQuota {
		r.gate = time.Now().Add(recheck)
	}
	r.mu.Unlock()
	switch trouble {
	case appserver.TroubleQuota:
		state, detail = agent.Blocked, "quota: "+e.Err.Error()
	case appserver.TroubleLogin:
		state, detail, login = agent.Blocked, e.Err.Error(), e.Err
	}
	r.set(state, detail)
	switch {
	case h.turn != e.Turn || h.taken:
		r.queue.Put(stop)
	case login == nil: // Codex accepted the turn but not the text: don't retry that forever
		prompt := courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: e.Turn, IDs: []string{h.id}}}
		r.queue.Put(prompt, stop)
	} // otherwise the text is offered again
	return login
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
	overdue, running := r.overdue, r.state == agent.Busy || r.state == agent.Waiting
	r.thread = nil
	r.mu.Unlock()
	if running {
		r.set(agent.Busy, "codex is being restarted")
	}
	if overdue != "" {
		r.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventStopFailed, ID: overdue, Text: r.tooLong()}})
	}
}

// troubleOf returns what a turn failed of, or "" if that is unknown.
func troubleOf(err error) appserver.Trouble {
	var e *appserver.TurnError
	if errors.As(err, &e) {
		return e.Trouble
	}
	return ""
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
