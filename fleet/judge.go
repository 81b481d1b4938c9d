package fleet

import (
	"fmt"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/cost/breaker"
	"netsky/internal/advice"
	"netsky/spawn"
	"netsky/store"
)

// A sighting is what is seen at one time of a message that has no answer yet, and of the agent
// that it was sent to.
type sighting struct {
	at      time.Time
	known   bool // the agent's status is
	agent   spawn.Status
	returns bool               // a start of it may be under way
	place   bus.Place          // of the message; "" if that is not known
	why     string             // it was put aside there
	nowhere bool               // it is in no place
	message courier.Message    // as the agent's courier has it; zero if it does not
	owed    bool               // the courier or the next one answers it, or gives it to the model again
	fault   agent.Fault        // why the model can't take it, or anything; zero: it can
	breaker breaker.State      // of the fault's account
	asks    *agent.Approval    // the agent's question for permission, if the sender can answer it
	link    string             // to another host: why nothing goes there now
	far     string             // why it waits there, or on its way
	need    attention.Need     // what an agent on another host asks the owner who waits, if it does
	there   bus.DeliveryReport // what that host has said last of the message
}

// A course is what was judged of a message so far.
type course struct {
	to   agent.ID
	id   string
	ends time.Time                        // the wait
	say  func(format string, args ...any) // reports progress
	warn func(format string, args ...any) // reports what a person has to do

	up      bool   // the agent has been seen alive
	start   string // its start id then
	state   agent.State
	detail  string
	left    bool // for another host
	taken   bool
	gone    time.Time // when it was first seen not alive; zero while it is alive
	renewed bool      // it was started again, and nothing yet shows what that start does about the message
	rests   time.Time // since when that start has been idle; zero while it is not
	code    string    // of its permission request reported last
	missing int       // looks at which the message was nowhere
	held    string    // why its message is held, as reported last
	far     string    // why it waits on another host, or on its way there, as reported last

	stuck string    // as of the last look, why it is not working: ", as it is waiting (…)"
	due   time.Time // when to look again, whatever happens; zero: when something has
}

// by has the agent looked at by that time.
func (c *course) by(t time.Time) {
	if c.due.IsZero() || t.Before(c.due) {
		c.due = t
	}
}

// judge decides what a look means to the wait: what is said, when the next look is due, and,
// as an error, that no answer can be expected.
func (c *course) judge(l *sighting) error {
	c.due = time.Time{}
	left := l.place == bus.Delivered && c.to.Host() != ""
	if left && !c.left {
		c.left = true
		c.say("on its way to %s: the team's server has it", c.to.Host())
	}
	if !c.taken && l.place == bus.Delivered && (!left || l.there.State == string(store.Delivered)) {
		c.taken = true
		c.say("%s has it", c.to)
	}
	if !left && l.link != "" && l.link != c.held {
		c.held = l.link
		c.warn("the message %s waits here: %s; `netsky link` shows more", c.id, l.link)
	}
	if left && !c.taken && l.far != c.far {
		if c.far = l.far; c.far != "" {
			c.warn("the message %s waits: %s", c.id, c.far)
		}
	}
	if err := c.progress(l); err != nil {
		return err
	}
	if err := c.cancelled(l); err != nil {
		return err
	}
	return c.heldUp(l)
}

// progress reports changes. It returns an error when the agent has ended, and no answer
// can be expected. It is due again in a moment while time alone, or what leaves no file, may
// change that.
func (c *course) progress(l *sighting) error {
	st := l.agent
	if !l.known || st.Silent || st.State == agent.Unknown || c.up && !st.Alive() {
		c.by(l.at.Add(lookRest))
	}
	if c.to.Host() != "" {
		c.asked(l.need)
	}
	if !l.known {
		return nil
	}
	untaken := st.Silent && !c.taken && st.Detail != "" && st.Alive()
	if st.State != c.state || untaken && st.Detail != c.detail {
		c.state, c.detail = st.State, st.Detail
		c.say("%s is %s%s", c.to, st.State, note(st.Detail))
	}
	c.stuck = ""
	if untaken || st.State == agent.Waiting || st.State == agent.Blocked || st.State == agent.Unknown {
		c.stuck = ", as it is " + st.How() + c.permission(l)
	}
	switch {
	case st.Alive():
		again := c.up && c.start != "" && c.start != st.Start
		c.up, c.start, c.gone = true, st.Start, time.Time{}
		if c.renewed = c.renewed || again; c.renewed {
			return c.restarted(l, again)
		}
	case !c.up: // --queue: it may wait
	case c.gone.IsZero() || l.returns:
		c.gone = l.at
	case l.at.Sub(c.gone) >= mourning:
		return advice.With(unanswered("%s is %s and has not answered; the message %s is %s; an answer after its next start will be in `netsky inbox`",
			c.to, st.How(), c.id, c.whereabouts(l)), "`netsky agent %s` starts it", c.to.N())
	}
	return nil
}

// heldUp reports that the message is held because the model's vendor does not serve the
// agent, or waits behind one that is. It returns an error if that lasts longer than the wait.
func (c *course) heldUp(l *sighting) error {
	fault, held := l.fault, l.message.State == courier.StateHeld
	if !c.up || !c.gone.IsZero() || !held && !fault.Reason.OfAccount() && fault.Reason != agent.ContextFull {
		return nil // if it is gone, its next start will show
	}
	where := "waits, and is given to it"
	if held {
		where = "is held, and is given to it again"
	}
	retry, known := fault.Until(), true
	if l.breaker.Tripped() {
		retry, known = l.breaker.Retry(), l.breaker.RetryMS != 0
	}
	when := "in a moment"
	switch {
	case fault.Reason == agent.ContextFull:
		when = "once its conversation is compacted (`netsky attach " + string(c.to) + "`, then /compact), else in some minutes"
	case !known:
		when = "when that has been mended"
	case retry.After(l.at):
		c.by(retry)
		when, fault.UntilMS = "at "+agent.Clock(retry, l.at), retry.UnixMilli()
		if fault.Reason == agent.Login {
			when, fault.UntilMS = when+", or after a login", 0
		}
	}
	text := fmt.Sprintf("%s can't answer now: %s; the message %s %s %s", c.to, fault, c.id, where, when)
	if !known || retry.After(c.ends) {
		return advice.With(unanswered("%s; its answer will be in `netsky inbox`", text), "`netsky cancel %s` cancels it", c.id)
	}
	if text != c.held {
		c.held = text
		c.warn("%s", text)
	}
	return nil
}

// restarted reports that the agent has been started again. It returns an error if the new
// start has been idle for some time and has done nothing about the message: one that only
// the program itself knows of is answered when that has come so far.
func (c *course) restarted(l *sighting, again bool) error {
	if l.owed || l.place == bus.Inbox || l.place == bus.Claimed {
		c.renewed = false
		c.warn("%s was ended and started again; its new start answers the message, or gets it again", c.to)
		return nil
	}
	if again {
		c.rests = time.Time{}
		c.warn("%s was ended and started again; it may not know of the message %s any more", c.to, c.id)
	}
	switch {
	case l.agent.State != agent.Idle || l.agent.Detail != "": // as it waits for somebody else
		c.rests = time.Time{}
		return nil
	case c.rests.IsZero():
		c.rests = l.at
	}
	if l.at.Sub(c.rests) < mourning {
		c.by(l.at.Add(lookRest))
		return nil
	}
	return unanswered("%s was ended and started again, and has not answered; the message %s is %s, and its new start does not know of it",
		c.to, c.id, c.whereabouts(l))
}

// cancelled returns an error if the message is in none of the agent's places any more, or
// was taken back.
func (c *course) cancelled(l *sighting) error {
	if l.there.State == string(store.Cancelled) {
		return fmt.Errorf("the message %s was cancelled on %s (%s): there will be no answer", c.id, c.to.Host(), l.there.Reason)
	}
	aside := l.place == bus.Delivered && l.why != ""
	if !aside && !l.nowhere {
		c.missing = 0
		return nil
	}
	c.by(l.at.Add(lookRest))
	if c.missing++; c.missing < 3 || l.owed {
		return nil // it may be moving, or be held
	}
	if aside {
		return fmt.Errorf("the message %s was %s: there will be no answer", c.id, l.why)
	}
	return fmt.Errorf("the message %s was cancelled, as its file is gone: there will be no answer", c.id)
}

// permission names the command that answers the agent's request for permission, and
// says it once as soon as it is asked.
func (c *course) permission(l *sighting) string {
	q := l.asks
	if q == nil {
		return ""
	}
	how := fmt.Sprintf("`netsky approve %s` allows it once, with --deny it denies it", q.Code)
	line, cut := q.Brief(200)
	switch {
	case q.Closed() != "":
		how = fmt.Sprintf("`netsky attach %s` opens its pane to answer it there: %s", c.to, q.Closed())
	case cut:
		how = fmt.Sprintf("`netsky needs %s` shows all of it, and how to answer it", q.Code)
	}
	if c.code != q.Code {
		c.code = q.Code
		c.warn("%s asks for permission to use %s: %s; %s", c.to, q.Tool, line, how)
	}
	return "; " + how
}

// asked is permission for an agent on another host.
func (c *course) asked(n attention.Need) {
	c.stuck = ""
	if n.Code == "" {
		return
	}
	c.stuck = "; " + n.How()
	if c.code != n.Code {
		c.code = n.Code
		c.warn("%s%s", n.Line(), c.stuck)
	}
}

func (c *course) whereabouts(l *sighting) string {
	switch host := c.to.Host(); {
	case l.place == "":
		return "no longer in its mailbox"
	case host != "":
		return elsewhere(host, l.place, l.there)
	case l.place == bus.Inbox:
		return "waiting in its inbox"
	case l.place == bus.Claimed && (!c.gone.IsZero() || !c.up):
		return "not finished: its next start gets it again"
	case l.place == bus.Claimed:
		return "in progress"
	}
	return string(l.place)
}
