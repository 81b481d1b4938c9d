package demo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn/demo"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	w.play("agent1")
	for _, test := range []struct {
		name  string
		kind  envelope.Kind
		text  string
		reply envelope.Kind
		words string
	}{
		{"message", envelope.KindMessage, "hello", envelope.KindReply, "agent1 (demo) received: hello"},
		{"name", envelope.KindMessage, "What is your name?", envelope.KindReply, "My name is agent1. "},
		{"brief", envelope.KindBrief, "count to ten", envelope.KindReply, "received: count to ten"},
		{"handoff", envelope.KindHandoff, "go on", envelope.KindReply, "received: go on"},
		{"cron", envelope.KindCron, "it is nine", envelope.KindReply, "received: it is nine"},
		{"a kind nobody knows", "question", "why?", envelope.KindReply, "received: why?"},
		{"long", envelope.KindMessage, strings.Repeat("é", 5000), envelope.KindReply, strings.Repeat("é", 2000) + "…"},
		{"several lines", envelope.KindMessage, "one\ntwo", envelope.KindReply, "received: one\ntwo"},
		{"help", envelope.KindMessage, "/help", envelope.KindReply, "/delegate ADDRESS TEXT"},
		{"unknown command", envelope.KindMessage, "/dance now", envelope.KindError, "/dance: unknown command"},
		{"delegate to nobody", envelope.KindMessage, "/delegate bob hi", envelope.KindError, "no such address"},
		{"delegate nothing", envelope.KindMessage, "/delegate agent2", envelope.KindError, "no text"},
		{"delegate to one without a mailbox", envelope.KindMessage, "/delegate agent7 hi", envelope.KindError, "not sent to agent7: "},
		{"delegate to the owner", envelope.KindMessage, "/delegate owner hi", envelope.KindError, "not sent to owner: "},
		{"pingpong with the owner", envelope.KindMessage, "/pingpong owner", envelope.KindError, "no such agent"},
		{"pingpong with one without a mailbox", envelope.KindMessage, "/pingpong 7", envelope.KindError, "not sent to agent7: "},
		{"busy", envelope.KindMessage, "/busy 1ms", envelope.KindReply, "was busy for 1ms"},
		{"busy in seconds", envelope.KindMessage, "/busy 0", envelope.KindReply, "was busy for 0s"},
		{"busy for ever", envelope.KindMessage, "/busy 2h", envelope.KindError, "not a time from 0s to 1h"},
		{"busy backwards", envelope.KindMessage, "/busy -1s", envelope.KindError, "not a time"},
		{"busy without a time", envelope.KindMessage, "/busy", envelope.KindError, "/busy: not a time"},
		{"crash with no status", envelope.KindMessage, "/crash 256", envelope.KindError, "not a status from 0 to 255"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := w.send(envelope.Envelope{To: "agent1", Kind: test.kind, Text: test.text, Hops: 3, Thread: "t1"})
			e := w.answered(id, test.reply, test.words)
			if e.From != "agent1" || e.Hops != 4 || e.Thread != "t1" || e.ID != envelope.AnswerID("agent1", id, envelope.KindReply) {
				t.Errorf("the answer is %+v", e)
			}
		})
	}
	w.waitsForNothing("agent1")
}

func (w *world) waitsForNothing(id agent.ID) {
	w.Helper()
	data, err := w.home.ReadFile(home.DemoDir+"/"+string(id)+".json", 1000)
	if err != nil || strings.TrimSpace(string(data)) != "{}" {
		w.Errorf("%s still waits for answers: %s, %v", id, data, err)
	}
}

// TestNeverAnswers sends what is not to be answered, then a message: the first
// thing the owner gets must be the answer to that.
func TestNeverAnswers(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	p := w.play("agent1")
	for _, kind := range []envelope.Kind{envelope.KindReply, envelope.KindError, envelope.KindAck, envelope.KindApprovalAnswer} {
		w.send(envelope.Envelope{To: "agent1", Kind: kind, Text: "kind " + string(kind), InReplyTo: "x"})
	}
	id := w.tell("agent1", "last")
	w.answered(id, envelope.KindReply, "received: last")
	p.shows("owner, reply\n    kind reply\n")
	p.shows("owner, error\n    kind error\n")
}

func TestReport(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1", "agent2")
	p := w.play("agent1")
	p.shows("a demo agent")
	got := w.report("agent1")
	if got.Start != p.start || got.State != agent.Idle || got.Evidence != "demo" || time.Since(time.UnixMilli(got.SinceMS)) > time.Minute {
		t.Errorf("ready: %+v", got)
	}
	id := w.tell("agent1", "/dialog May I?")
	p.shows("May I? [y/n]")
	if got := w.report("agent1"); got.State != agent.Waiting || got.Detail != "May I?" {
		t.Errorf("at a dialog: %+v", got)
	}
	p.typeIn("what?\n")
	p.typeIn("y")
	w.answered(id, envelope.KindReply, `"May I?" was answered in the pane of agent1: yes`)
	id = w.tell("agent1", "/dialog")
	p.shows("Continue? [y/n]")
	p.typeIn("n\n")
	w.answered(id, envelope.KindReply, "no")
	w.tell("agent1", "/delegate agent2 wait for me")
	w.answered(w.tell("agent1", "there?"), envelope.KindReply, "there?")
	w.rests("agent1", "waiting for an answer from agent2")
	w.tell("agent1", "/busy 1h")
	p.shows("busy for 1h0m0s")
	if got := w.report("agent1"); got.State != agent.Busy || got.Detail != "/busy 1h0m0s" {
		t.Errorf("busy: %+v", got)
	}
	p.stop()
	testworld.ErrorIs(t, p.end(), context.Canceled, "that it was cancelled")
	p = w.play("agent1") // the message of /busy comes again
	p.shows("busy for 1h0m0s")
}

func TestDelegate(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1", "agent2")
	one, two := w.play("agent1"), w.play("agent2")
	id := w.send(envelope.Envelope{To: "agent1", Text: "/delegate 2 count\nto ten", Hops: 2, Thread: "t"})
	e := w.answered(id, envelope.KindReply, "agent2 answers: agent2 (demo) received: count\nto ten")
	if e.Hops != 5 || e.Thread != "t" {
		t.Errorf("the report is %+v, want 5 hops and the thread t", e)
	}
	two.shows("from agent1, brief\n    count\n    to ten\n")
	one.shows("to agent2, brief\n")

	id = w.tell("agent1", "/delegate 2 /dance")
	w.answered(id, envelope.KindError, "agent2 answers with an error: /dance: unknown command")

	// agent1 does not wait: with agent2 at a dialog it answers others.
	first := w.tell("agent1", "/delegate agent2 /dialog")
	two.shows("Continue? [y/n]")
	w.answered(w.tell("agent1", "hello"), envelope.KindReply, "received: hello")
	two.typeIn("y")
	w.answered(first, envelope.KindReply, "agent2 answers: \"Continue?\"")
}

// TestDelegateTakesNoOthersAnswer lets another agent answer in agent2's place.
func TestDelegateTakesNoOthersAnswer(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1", "agent2", "agent3")
	one := w.play("agent1")
	id := w.tell("agent1", "/delegate agent2 hello")
	brief := envelope.AnswerID("agent1", id, envelope.KindBrief)
	one.shows("to agent2, brief")
	w.send(envelope.Envelope{From: "agent3", To: "agent1", Kind: envelope.KindReply, Text: "lies", InReplyTo: brief})
	one.shows("lies")
	w.send(envelope.Envelope{From: "agent2", To: "agent1", Kind: envelope.KindReply, Text: "truth", InReplyTo: brief})
	w.answered(id, envelope.KindReply, "agent2 answers: truth")
	w.send(envelope.Envelope{From: "agent2", To: "agent1", Kind: envelope.KindReply, Text: "more truth", InReplyTo: brief})
	w.answered(w.tell("agent1", "last"), envelope.KindReply, "received: last")
	w.waitsForNothing("agent1")
}

func TestPingPong(t *testing.T) {
	t.Parallel()
	for _, hops := range []int{0, 1} {
		w := mustWorld(t, "agent1", "agent2")
		one, two := w.play("agent1"), w.play("agent2")
		id := w.send(envelope.Envelope{To: "agent1", Text: "/pingpong agent2", Hops: hops})
		e := w.answered(id, envelope.KindReply, "ping-pong with agent2 ended after ")
		if want := hops + 1; e.Hops != want {
			t.Errorf("the report has %d hops, want %d", e.Hops, want)
		}
		one.shows("to agent2\n    /pong 1\n")
		two.shows("to agent1\n    /pong 2\n")
		w.answered(w.tell("agent2", "still there?"), envelope.KindReply, "still there?")
		w.answered(w.tell("agent1", "still there?"), envelope.KindReply, "still there?")
		w.waitsForNothing("agent1")
	}
}

func TestCrash(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	p := w.play("agent1")
	id := w.tell("agent1", "/crash 3")
	w.answered(id, envelope.KindReply, "crashing with status 3")
	var crash demo.Crash
	if err := p.end(); !errors.As(err, &crash) || crash.Status != 3 {
		t.Errorf("Run = %v, want a Crash with status 3", err)
	}
	p = w.play("agent1")
	w.answered(w.tell("agent1", "well again?"), envelope.KindReply, "well again?")
	if strings.Contains(p.pane.String(), "/crash") {
		t.Error("it was told to crash a second time")
	}
}

func TestHang(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	p := w.play("agent1")
	hung := w.tell("agent1", "/hang")
	p.shows("hanging from now on")
	if got := w.report("agent1"); got.State != agent.Busy || got.Detail != "/hang" {
		t.Errorf("hanging: %+v", got)
	}
	w.shutdown("agent1", p.start)
	unread := w.tell("agent1", "hello?")
	p.stop()
	testworld.ErrorIs(t, p.end(), context.Canceled, "that it was cancelled")
	p = w.play("agent1")
	w.answered(hung, envelope.KindError, "was ended while it hung")
	w.answered(unread, envelope.KindReply, "hello?")
	p.stop()
	p.end()
	w.play("agent1")
	w.answered(w.tell("agent1", "once more"), envelope.KindReply, "once more") // and nothing before it
}

// shutdown asks one start of an agent to end, as `netsky down` does.
func (w *world) shutdown(id agent.ID, start string) string {
	w.Helper()
	return w.send(envelope.Envelope{From: agent.Root, To: id, Kind: envelope.KindShutdown, Text: "please end", Start: start, RequiresAck: true})
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	p := w.play("agent1")
	w.shutdown("agent1", "another")
	w.answered(w.tell("agent1", "hello"), envelope.KindReply, "hello")
	id := w.shutdown("agent1", p.start)
	testworld.Equal(t, p.end(), nil, "Run")
	p.shows("asked to shut down")
	if _, found, err := w.bus.FindAnswer(w.ctx, "", agent.Root, id, time.Time{}); err != nil || !found {
		t.Errorf("no ack in agent0's mailbox: %v", err)
	}
}

func TestSecondDemoIsRefused(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	p := w.play("agent1")
	p.shows("a demo agent")
	before := w.report("agent1")
	err := demo.Run(w.ctx, demo.Options{Home: w.home, Agent: "agent1", Start: "other", Bus: w.bus, Out: newScreen()})
	testworld.ErrorIs(t, err, home.ErrLocked, "that the mailbox is held")
	testworld.Equal(t, w.report("agent1"), before, "the second one wrote")
}

// TestStateThatIsNoJSON starts with a broken file of delegations.
func TestStateThatIsNoJSON(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"garbage": "{\"a", "null": "null", "a list": "[]"} {
		t.Run(name, func(t *testing.T) {
			w := mustWorld(t, "agent1", "agent2")
			testworld.Must(t, w.home.WriteFile(home.DemoDir+"/agent1.json", []byte(text), false))
			p := w.play("agent1")
			w.play("agent2")
			w.answered(w.tell("agent1", "/delegate agent2 hi"), envelope.KindReply, "agent2 answers: ")
			if name == "null" {
				return
			}
			p.shows("moved to")
			if data, err := w.home.ReadFile(home.DemoDir+"/agent1.json.bad", 100); err != nil || string(data) != text {
				t.Errorf("the broken file is %q, %v", data, err)
			}
		})
	}
}

// A limit that is from the future, as the clock has been set back, keeps no demo from
// answering.
func TestLimitOfAnotherClock(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	hour := time.Now().Add(time.Hour).UnixMilli()
	limit := map[string]any{"fault": agent.Fault{Reason: agent.UsageLimit, Account: "demo"}, "since_ms": hour - 15_000, "end_ms": hour - 1000}
	testworld.Must(t, w.home.Save("state/demo/limit.json", limit, false))
	w.play("agent1")
	w.answered(w.tell("agent1", "hello"), envelope.KindReply, "received: hello")
}
