package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/cost/breaker"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// TestJudge: what a sequence of looks, one each second, makes the asker read, how the wait
// ends, and when the agent is looked at again though nothing happens.
func TestJudge(t *testing.T) {
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.Local)
	at := func(s int) int64 { return start.Add(time.Duration(s) * time.Second).UnixMilli() }
	st := func(state agent.State, id string) spawn.Status {
		return spawn.Status{Agent: agent.Clone(1), State: state, Start: id}
	}
	limit := agent.Fault{Reason: agent.UsageLimit, Account: "vendor you"}
	until := func(s int) string {
		f := limit
		f.UntilMS = at(s)
		return f.String()
	}
	held := courier.Message{State: courier.StateHeld, Held: &courier.Hold{Fault: limit}}
	idle := &sighting{known: true, agent: st(agent.Idle, "a"), place: bus.Inbox}
	busy := &sighting{known: true, agent: st(agent.Busy, "a"), place: bus.Delivered, owed: true}
	dead := &sighting{known: true, agent: st(agent.Dead, "a"), place: bus.Claimed, owed: true}
	back := &sighting{known: true, agent: st(agent.Dead, "a"), place: bus.Claimed, returns: true}
	lost := &sighting{known: true, agent: st(agent.Idle, "b"), place: bus.Delivered}
	works := &sighting{known: true, agent: st(agent.Busy, "b"), place: bus.Delivered}
	nowhere := &sighting{known: true, agent: st(agent.Idle, "a"), nowhere: true}
	barred := func(retry int) *sighting {
		return &sighting{
			known: true, agent: st(agent.Blocked, "a"), place: bus.Delivered, owed: true, message: held, fault: limit,
			breaker: breaker.State{SinceMS: at(0), TripMS: at(0), RetryMS: at(retry), Fault: limit},
		}
	}
	asks := &sighting{
		known: true, agent: spawn.Status{Agent: agent.Clone(1), State: agent.Waiting, Start: "a", Detail: "permission"}, place: bus.Delivered,
		asks: &agent.Approval{Code: "abcde", Agent: agent.Clone(1), Tool: "Bash", Text: "ls"},
	}
	for _, tt := range []struct {
		name  string
		looks []*sighting
		said  string // all of it
		end   string // the error's words; "" if the wait goes on
		again int    // seconds until the next look; -1: when something happens
	}{
		{"taken", []*sighting{idle, busy, busy}, "agent1 is idle|agent1 has it|agent1 is busy", "", -1},
		{"an agent that can't be looked at", []*sighting{{}}, "", "", 1},
		{"a program that reports nothing", []*sighting{{known: true, agent: spawn.Status{Agent: agent.Clone(1), State: agent.Idle, Start: "a", Silent: true}, place: bus.Inbox}},
			"agent1 is idle", "", 1},
		{"dead for too short a time", []*sighting{busy, dead, dead, dead}, "agent1 has it|agent1 is busy|agent1 is dead", "", 1},
		{"dead", []*sighting{busy, dead, dead, dead, dead, dead, dead}, "agent1 has it|agent1 is busy|agent1 is dead",
			"has not answered; the message m is not finished: its next start gets it again; an answer after its next start", 1},
		{"about to be started again", []*sighting{busy, dead, dead, dead, back, dead, dead, dead, dead}, "agent1 has it|agent1 is busy|agent1 is dead", "", 1},
		{"started again, and owes the answer", []*sighting{busy, dead, {known: true, agent: st(agent.Idle, "b"), place: bus.Delivered, owed: true}},
			"agent1 has it|agent1 is busy|agent1 is dead|agent1 is idle|! agent1 was ended and started again; its new start answers the message, or gets it again", "", -1},
		{"started again, and works on something", []*sighting{busy, works, works, works, works, works, works, works, works},
			"agent1 has it|agent1 is busy|! agent1 was ended and started again; it may not know of the message m any more", "", -1},
		{"started again, and knows nothing", []*sighting{busy, lost, lost, lost, lost, lost, lost},
			"agent1 has it|agent1 is busy|agent1 is idle|! agent1 was ended and started again; it may not know of the message m any more",
			"and has not answered; the message m is delivered, and its new start does not know of it", -1},
		{"moving", []*sighting{idle, nowhere, nowhere, idle, nowhere}, "agent1 is idle", "", 1},
		{"gone", []*sighting{idle, nowhere, nowhere, nowhere}, "agent1 is idle", "the message m was cancelled, as its file is gone: there will be no answer", 1},
		{"gone, and held", []*sighting{{known: true, agent: st(agent.Idle, "a"), nowhere: true, owed: true}, nowhere, {known: true, agent: st(agent.Idle, "a"), nowhere: true, owed: true}},
			"agent1 is idle", "", 1},
		{"put aside", []*sighting{idle, {known: true, agent: st(agent.Idle, "a"), place: bus.Delivered, why: "retracted"}, {known: true, agent: st(agent.Idle, "a"), place: bus.Delivered, why: "retracted"},
			{known: true, agent: st(agent.Idle, "a"), place: bus.Delivered, why: "retracted"}}, "agent1 is idle|agent1 has it", "the message m was retracted: there will be no answer", 1},
		{"held for a time", []*sighting{busy, barred(30), barred(30)}, "agent1 has it|agent1 is busy|agent1 is blocked|" +
			"! agent1 can't answer now: " + until(30) + "; the message m is held, and is given to it again at 12:00:30", "", 28},
		{"held for longer than the wait", []*sighting{busy, barred(300)}, "agent1 has it|agent1 is busy|agent1 is blocked",
			"agent1 can't answer now: " + until(300) + "; the message m is held, and is given to it again at 12:05:00; its answer will be in `netsky inbox`", 299},
		{"behind one that is held, until the owner acts", []*sighting{{known: true, agent: st(agent.Blocked, "a"), place: bus.Inbox, fault: limit, breaker: breaker.State{SinceMS: at(0), TripMS: at(0)}}},
			"agent1 is blocked", "the message m waits, and is given to it when that has been mended", -1},
		{"a question for permission", []*sighting{asks, asks}, "agent1 has it|agent1 is waiting  permission|! agent1 asks for permission to use Bash: ls; `netsky approve abcde` allows it once, with --deny it denies it", "", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said []string
			c := course{
				to: agent.Clone(1), id: "m", ends: start.Add(time.Minute), up: true, start: "a",
				say:  func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) },
				warn: func(format string, args ...any) { said = append(said, "! "+fmt.Sprintf(format, args...)) },
			}
			var err error
			for i, l := range tt.looks {
				testworld.Must(t, err, "the wait ended at look %d", i)
				one := *l
				one.at = start.Add(time.Duration(i) * time.Second)
				err = c.judge(&one)
			}
			testworld.Equal(t, strings.Join(said, "|"), tt.said, "said")
			if got := fmt.Sprint(err); tt.end == "" && err != nil || !strings.Contains(got, tt.end) {
				t.Errorf("the wait ends with %v, want %s", err, tt.end)
			}
			last := start.Add(time.Duration(len(tt.looks)-1) * time.Second)
			if got := int(c.due.Sub(last) / time.Second); c.due.IsZero() != (tt.again < 0) || tt.again >= 0 && got != tt.again {
				t.Errorf("due at %v, want %d s after the last look", c.due, tt.again)
			}
		})
	}
}

// Who waits for an agent on another host is told once what that asks, and until it is answered how to answer it.
func TestJudgeElsewhere(t *testing.T) {
	var said []string
	c := course{to: "agent1@build1", id: "m", say: t.Logf, warn: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	asks := &sighting{place: bus.Delivered, need: attention.Need{
		Code: "abcde@build1", Kind: attention.Approval, Host: "build1", Agents: []agent.ID{"agent1@build1"}, Title: "asks for permission to use Bash", Text: "ls",
		Options: []string{attention.Allow, attention.Deny}, Command: "netsky approve abcde@build1",
	}}
	for range 2 {
		testworld.Must(t, c.judge(asks))
		testworld.Equal(t, c.stuck, "; `netsky approve abcde@build1` says yes, --deny refuses", "what it waits for")
	}
	testworld.EqualList(t, said, []string{"agent1@build1 asks for permission to use Bash: ls; `netsky approve abcde@build1` says yes, --deny refuses"}, "said")
	testworld.Must(t, c.judge(&sighting{place: bus.Delivered}))
	testworld.Equal(t, c.stuck, "", "what it waits for once that is answered")
}
