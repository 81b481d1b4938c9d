package codex

import (
	"context"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/codex/appserver"
	"netsky/internal/proc"
)

// A condition is what is known of the agent: its open thread, its state, and the login that its Codex has read.
type condition struct {
	queue *courier.Queue // told of each change of the state
	login *login

	mu      sync.Mutex        // guards the fields below
	thread  *appserver.Thread // the open one; nil: none
	now     agent.Report      // State, Detail, Fault, Attempt and Of
	full    time.Time         // until then, no mail is accepted: the context is full
	fullOf  agent.Fault       // in the words of Codex
	read    loginState        // what the running Codex has read, or something older
	refused bool              // that was not accepted
	message string            // the one the running turn took; "": a person's
	handed  handed
	overdue string // the turn that was interrupted because it ran too long
	gaveUp  abandoned
}

// An abandoned is the turn that was given up last, and why.
type abandoned struct {
	turn string
	why  agent.Fault
}

// A handed is the message submitted last.
type handed struct {
	id, turn string
	taken    bool // the thread shows it
}

// opened returns the open thread, or nil.
func (c *condition) opened() *appserver.Thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.thread
}

// set sets the agent's state.
func (c *condition) set(state agent.State, detail string) {
	c.show(agent.Report{State: state, Detail: detail})
}

// show sets the agent's state, and what keeps the model from answering.
func (c *condition) show(now agent.Report) {
	now.Detail = envelope.Line(now.Detail, maxWords)
	c.mu.Lock()
	c.now = now
	c.mu.Unlock()
	c.queue.Put(courier.Event{Event: agent.Event{Event: courier.EventState}})
}

// rest sets the state of an agent whose thread has no turn: while its context is full, it
// is blocked. What a fault of the account means is for the courier to decide.
func (c *condition) rest(detail string) {
	c.mu.Lock()
	now := agent.Report{State: agent.Idle, Detail: detail}
	if time.Now().Before(c.full) {
		now = agent.Report{State: agent.Blocked, Detail: c.fullOf.String(), Fault: c.fullOf}
	}
	c.mu.Unlock()
	c.show(now)
}

// report returns the agent's state: a full context has its time. The caller holds mu.
func (c *condition) report() agent.Report {
	if c.now.Fault.Reason == agent.ContextFull && !time.Now().Before(c.full) {
		c.now = agent.Report{State: agent.Idle, Detail: "the context was full; trying again"}
	}
	c.now.Evidence = evidence
	return c.now
}

// takes reports whether a message can be submitted. The caller holds mu.
func (c *condition) takes() bool {
	return c.thread != nil && c.report().State == agent.Idle && c.thread.Running() == nil
}

// take records which message the running turn took last.
func (c *condition) take(message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.message = message
	if message != "" && message == c.handed.id {
		c.handed.taken = true
	}
}

// fault returns the vendor's fault that an error stands for, nil if it stands for none.
func (c *condition) fault(err error) *agent.Fault {
	f := appserver.FaultOf(err)
	if f.Reason == "" {
		return nil
	}
	f = c.affects(f)
	return &f
}

// affects adds the account that a fault affects: the one that the running Codex uses.
func (c *condition) affects(f agent.Fault) agent.Fault {
	if f.Reason.OfAccount() {
		c.mu.Lock()
		f.Account = c.read.name
		c.mu.Unlock()
	}
	return f
}

// outdated reports whether a turn needs a Codex that reads its login again, and whether it
// may find another there. The caller holds mu.
func (c *condition) outdated() (now, changed bool) {
	login := c.login.state()
	now = c.refused || login.name != c.read.name
	return now, now && login != c.read
}

// renewable reports whether Codex is to be ended so that a new one reads its login:
// nothing runs that this would cut off, and the login has changed or is to be tried again.
func (c *condition) renewable(again bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	outdated, changed := c.outdated()
	return outdated && (changed || again) && c.thread != nil && c.thread.Running() == nil
}

// awaitLogin waits until Codex may be logged in: its login has changed, or enough time has
// passed to ask it once more.
func (c *condition) awaitLogin(ctx context.Context) {
	c.mu.Lock()
	read := c.read
	c.mu.Unlock()
	began := time.Now()
	for ctx.Err() == nil && c.login.state() == read && time.Since(began) < loginWait {
		proc.Sleep(ctx, beat)
	}
}
