package courier_test

import (
	"fmt"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// begin begins a turn of the program's own, with the results of these works. over is closed
// when it is interrupted.
func (p *post) begin(number string, results ...agent.Work) (over chan struct{}) {
	p.Helper()
	over = make(chan struct{})
	p.program.set(func() { p.program.state, p.program.breakOff = agent.Busy, over })
	p.program.mustNote(p, agent.Event{Event: agent.EventPrompt, ID: number, Text: "<result>", Self: true, Background: results})
	return over
}

// finish ends it.
func (p *post) finish(number, text string) {
	p.Helper()
	p.program.end(number, text, nil)
	p.program.set(func() { p.program.state, p.program.breakOff = agent.Idle, nil })
}

// mustTurn waits until the program has ended the turn that took a message.
func (p *post) mustTurn(id string) {
	p.Helper()
	testworld.Wait(p, "the turn of "+id+" has ended", func() bool {
		_, ok, err := p.program.Ended(p.Context(), id, "")
		return err == nil && ok && p.program.State(p.Context()).State == agent.Idle
	})
}

// mustBreak waits until a turn is interrupted.
func (p *post) mustBreak(over chan struct{}) {
	p.Helper()
	testworld.Wait(p, "the turn is interrupted", func() bool {
		select {
		case <-over:
			p.program.set(func() { p.program.state, p.program.breakOff = agent.Idle, nil })
			return true
		default:
			return false
		}
	})
}

func (p *post) mustWait(id string) {
	p.Helper()
	testworld.Wait(p, "an answer to "+id, func() bool { return len(p.answers(agent.Owner, id)) == 1 })
}

func (p *post) mustReport(state agent.State, why agent.Reason) {
	p.Helper()
	testworld.Wait(p, fmt.Sprintf("reported as %s %s", state, why), func() bool {
		r, err := p.home.LoadReport(p.id)
		return err == nil && r.State == state && r.Fault.Reason == why
	})
}

func (p *post) notices() (n int) {
	p.Helper()
	list, err := p.bus.List(agent.Owner, bus.Inbox, 0)
	if err != nil {
		p.Fatal(err)
	}
	for _, e := range list {
		if e.Envelope.Kind == envelope.KindNotice {
			n++
		}
	}
	return n
}

// TestAlone: a program that begins turn after turn by itself is interrupted, and its owner
// told once; a message lets it go on. Results of what a message has begun don't count.
func TestAlone(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.mustStart(t)
	p.run()
	var works []agent.Work
	for i := range 5 {
		works = append(works, agent.Work{ID: fmt.Sprint("work-", i), Kind: "subagent"})
	}
	p.program.set(func() { p.program.left = works })
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "begin them"})
	p.mustTurn("owner-0")
	for i, w := range works {
		p.begin(fmt.Sprint("result-", i), w)
		p.program.set(func() { p.program.left = works[i+1:] })
		p.finish(fmt.Sprint("result-", i), "the result")
	}
	p.mustWait("owner-0")
	for i := range courier.MostAlone {
		p.begin(fmt.Sprint("own-", i))
		p.finish(fmt.Sprint("own-", i), "on and on")
	}
	p.mustReport(agent.Idle, "")
	if n := p.notices(); n != 0 {
		t.Errorf("%d notices before the last turn that is allowed", n)
	}
	for i := range 2 {
		p.mustBreak(p.begin(fmt.Sprint("more-", i)))
		p.mustReport(agent.Blocked, agent.Unasked)
		testworld.Wait(t, "one notice", func() bool { return p.notices() == 1 })
	}
	p.drop(envelope.Envelope{ID: "owner-1", From: agent.Owner, To: me, Text: "go on"})
	p.mustWait("owner-1")
	p.mustReport(agent.Idle, "")
	over := p.begin("again")
	p.finish("again", "once")
	p.drop(envelope.Envelope{ID: "owner-2", From: agent.Owner, To: me, Text: "?"})
	p.mustWait("owner-2")
	select {
	case <-over:
		t.Error("the first turn of its own after a message was interrupted")
	default:
	}
	if n := p.notices(); n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
}

// TestAloneAnswers: a message that waited for work in the background is answered when the turn
// with the result is interrupted as one too many.
func TestAloneAnswers(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.mustStart(t)
	p.run()
	watch := agent.Work{ID: "watch", Kind: "monitor"}
	p.program.set(func() { p.program.left = []agent.Work{watch} })
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "watch it"})
	p.mustTurn("owner-0")
	for i := range 1 + courier.MostAlone { // the first is asked for
		p.begin(fmt.Sprint("own-", i), watch)
		p.finish(fmt.Sprint("own-", i), "a line")
	}
	p.mustBreak(p.begin("more", watch))
	p.mustReport(agent.Blocked, agent.Unasked)
	p.mustWait("owner-0")
	if a := p.answers(agent.Owner, "owner-0")[0]; a.Kind != envelope.KindReply || !strings.HasPrefix(a.Text, "a line\n\n[netsky] ") {
		t.Errorf("the answer: %+v", a)
	}
}

// TestBackgroundOfTwo: of two messages whose turns have left work in the background, each is
// answered with the result of its own.
func TestBackgroundOfTwo(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.mustStart(t)
	p.run()
	one, two := agent.Work{ID: "one", Kind: "subagent"}, agent.Work{ID: "two", Kind: "subagent"}
	for i, left := range [][]agent.Work{{one}, {one, two}} {
		p.program.set(func() { p.program.left = left })
		p.drop(envelope.Envelope{ID: fmt.Sprint("owner-", i), From: agent.Owner, To: me, Text: "begin"})
		p.mustTurn(fmt.Sprint("owner-", i))
	}
	p.begin("of two", two)
	p.program.set(func() { p.program.left = []agent.Work{one} })
	p.finish("of two", "the second")
	p.mustWait("owner-1")
	if n := len(p.answers(agent.Owner, "owner-0")); n != 0 {
		t.Errorf("%d answers to the first, whose work goes on", n)
	}
	p.begin("of one", one)
	p.program.set(func() { p.program.left = nil })
	p.finish("of one", "the first")
	p.mustWait("owner-0")
	for i, want := range []string{"the first", "the second"} {
		if list := p.answers(agent.Owner, fmt.Sprint("owner-", i)); len(list) != 1 || list[0].Text != want {
			t.Errorf("owner-%d: %+v, want %q", i, list, want)
		}
	}
}

// TestEndedDuringLook: a turn with the result of work in the background that begins and ends
// while the program's state is asked for is the answer, not what was said before that work.
func TestEndedDuringLook(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.mustStart(t)
	p.run()
	work := agent.Work{ID: "work", Kind: "subagent"}
	p.program.set(func() { p.program.left = []agent.Work{work} })
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "begin"})
	p.mustTurn("owner-0")
	p.mustReport(agent.Busy, "")
	looks := 0
	p.program.set(func() { looks = p.program.looks })
	testworld.Wait(p, "the program is idle for long enough to be taken for abandoned", func() (long bool) {
		p.program.set(func() { long = p.program.looks > looks+30 })
		return long
	})
	p.program.set(func() {
		p.program.asked = func() {
			p.begin("the result", work)
			p.program.set(func() { p.program.left = nil })
			p.finish("the result", "it is done")
		}
	})
	p.mustWait("owner-0")
	if a := p.answers(agent.Owner, "owner-0")[0]; a.Text != "it is done" {
		t.Errorf("the answer: %+v", a)
	}
}
