package attention_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/link/team"
	"netsky/store"
	"netsky/view"
	"netsky/work"
	"netsky/work/merge"
)

var now = time.Now()

func one(id agent.ID, state agent.State, edit func(*view.Agent)) view.Agent {
	a := view.Agent{ID: id, State: state, Start: "s-" + string(id), Runtime: "claude", Wanted: true, Since: store.At(now.Add(-time.Minute))}
	if edit != nil {
		edit(&a)
	}
	return a
}

// limited is an agent whose account does not serve anybody.
func limited(id agent.ID, r agent.Reason, account string, until time.Time) view.Agent {
	return one(id, agent.Blocked, func(a *view.Agent) {
		a.Fault = agent.Fault{Reason: r, Account: account, Text: "no"}
		if !until.IsZero() {
			a.Fault.UntilMS = until.UnixMilli()
		}
	})
}

func TestList(t *testing.T) {
	reset := now.Add(time.Hour)
	detail := func(text string, decidable bool) func(*view.Agent) {
		return func(a *view.Agent) { a.Detail, a.Decidable = text, decidable }
	}
	for name, tt := range map[string]struct {
		s    attention.Sources
		want []string // kind, who, title, text, command, otherwise
	}{
		"nothing": {attention.Sources{Agents: []view.Agent{one("agent0", agent.Idle, nil), one("agent1", agent.Busy, nil), {ID: "agent2", State: agent.Down}}}, nil},
		"a lost receiver": {
			attention.Sources{Agents: []view.Agent{one("agent1", agent.Waiting, func(a *view.Agent) {
				a.Deaf, a.Detail = true, "its receiver has exited; restarting once idle"
			})}},
			[]string{"blocked|agent1|has lost its receiver|its receiver has exited; restarting once idle|netsky restart 1|its mail waits, and it is started again once its turn has ended"},
		},
		"a start that does not get ready": {
			attention.Sources{Now: now, Agents: []view.Agent{
				one("agent1", agent.Starting, func(a *view.Agent) { a.Detail, a.Evidence = "its pane shows: hello", "no report yet" }),
				one("agent2", agent.Starting, func(a *view.Agent) { a.Since = store.At(now.Add(-30 * time.Second)) }),
			}},
			[]string{"unready|agent1|has been started, and does not report that it is ready|its pane shows: hello|netsky attach agent1|it stays so, and its mail waits"},
		},
		"approval": {
			attention.Sources{
				Approvals: []agent.Approval{{Code: "abcde", Agent: "agent1", Tool: "Bash", Text: "rm -rf x"}},
				Agents:    []view.Agent{one("agent1", agent.Waiting, nil)}, // at the same question
			},
			[]string{"approval|agent1|asks for permission to use Bash|rm -rf x|netsky approve abcde|nothing is run, and agent1 waits"},
		},
		"an answer that has not been read yet": {attention.Sources{Answered: []agent.ID{"agent1"}, Agents: []view.Agent{one("agent1", agent.Waiting, nil)}}, nil},
		"hosts that ask to join": {
			attention.Sources{Now: now, Joins: []team.Request{
				{ID: "a", Code: "1234-5678", Name: "build1", At: now, State: team.Pending}, {ID: "b", Code: "2345-6789", Name: "build2", At: now, State: team.Refused},
			}},
			[]string{"join|build1|asks to join|compare the code 1234-5678 with the one that it shows; only in a terminal|netsky link approve 1234-5678|it is not let in, and its request is over at " + agent.Clock(now.Add(team.JoinWithin), now)},
		},
		"conflicts": {
			attention.Sources{Conflicts: []merge.Known{
				{Conflict: merge.Conflict{Agents: []agent.ID{"agent1", "agent3"}, Files: []string{"a.go", "b.go"}, More: 2}},
				{Conflict: merge.Conflict{Agents: []agent.ID{"agent1", "agent3"}, Files: []string{"c.go"}}},
				{Conflict: merge.Conflict{Agents: []agent.ID{"agent2"}, Target: "main"}},
			}},
			[]string{
				"conflict|agent1, agent3|have work that conflicts in 4 files|a.go, b.go and 2 more|netsky work|whichever lands second has to resolve it; both are told",
				"conflict|agent1, agent3|have work that conflicts in 1 file|c.go|netsky work|whichever lands second has to resolve it; both are told",
				"conflict|agent2|has work that conflicts with main in directories|the names of directories|netsky ask agent2 \"merge main into your branch and resolve the conflicts\"|its work can't land; it is told",
			},
		},
		"dialogs": {
			attention.Sources{Agents: []view.Agent{
				one("agent0", agent.Waiting, detail("trust it?", true)), one("agent1", agent.Waiting, detail("log in", false)), one("agent2", agent.Waiting, detail("trust it?", true)),
			}},
			[]string{
				"dialog|agent0, agent2|wait at the same dialog|trust it?|netsky approve CODE|agent0, agent2 wait, and so does their mail",
				"dialog|agent1|waits at a dialog in its terminal|log in|netsky attach agent1|agent1 waits, and so does its mail",
			},
		},
		"unknown dialogs are not the same": {
			attention.Sources{Agents: []view.Agent{one("agent0", agent.Waiting, nil), one("agent1", agent.Waiting, nil)}},
			[]string{
				"dialog|agent0|waits at a dialog in its terminal||netsky attach agent0|agent0 waits, and so does its mail",
				"dialog|agent1|waits at a dialog in its terminal||netsky attach agent1|agent1 waits, and so does its mail",
			},
		},
		"accounts": {
			attention.Sources{Agents: []view.Agent{
				limited("agent0", agent.UsageLimit, "a", reset), limited("agent1", agent.UsageLimit, "a", reset), limited("agent2", agent.Login, "b", time.Time{}),
				limited("agent3", agent.ContextFull, "a", time.Time{}), limited("agent4", agent.Overloaded, "c", time.Time{}), one("agent5", agent.Blocked, detail("why", false)),
				limited("agent6", agent.Unasked, "", time.Time{}),
			}},
			[]string{
				"login|agent2|is not logged in|not logged in: no (b)|netsky attach agent2|its mail waits, and it continues by itself after a login",
				"limit|agent0, agent1|are not served by their vendor|usage limit until " + agent.Clock(reset, now) + ": no (a)|netsky attach agent0|their mail waits, and they continue by themselves at " + agent.Clock(reset, now),
				"limit|agent4|is not served by its vendor|vendor overloaded: no (c)|netsky attach agent4|its mail waits, and it is tried again by itself",
				"blocked|agent3|is blocked|context full: no (a)|netsky attach agent3|its mail waits",
				"blocked|agent5|is blocked|why|netsky attach agent5|its mail waits",
				"blocked|agent6|is blocked|turns that nobody asked for: no|netsky attach agent6|each turn that it begins by itself is interrupted, until a message or a typed text comes",
			},
		},
		"a limit of one model beside one of the account": {
			attention.Sources{
				Agents: []view.Agent{limited("agent0", agent.UsageLimit, "a", reset), one("agent1", agent.Blocked, func(a *view.Agent) {
					a.Fault = agent.Fault{Reason: agent.UsageLimit, Account: "a, opus", Scope: "opus", UntilMS: reset.UnixMilli(), Text: "no"}
				})},
				Now: now,
			},
			[]string{
				"limit|agent0|is not served by its vendor|usage limit until " + agent.Clock(reset, now) + ": no (a)|netsky attach agent0|its mail waits, and it continues by itself at " + agent.Clock(reset, now),
				"limit|agent1|is not served by its vendor|usage limit of opus until " + agent.Clock(reset, now) + ": no (a, opus)|netsky attach agent1|its mail waits, and it continues by itself at " + agent.Clock(reset, now),
			},
		},
		"a limit that could have been tried for long": {
			attention.Sources{
				Agents: []view.Agent{one("agent0", agent.Idle, nil)}, Now: now,
				Breakers: []breaker.State{{Account: "a, opus", By: "agent0", SinceMS: 5, RetryMS: now.Add(-time.Hour).UnixMilli(), Fault: agent.Fault{Reason: agent.UsageLimit, Scope: "opus"}}},
			},
			nil,
		},
		"budgets": {
			attention.Sources{
				Agents: []view.Agent{
					limited("agent0", agent.Budget, breaker.AllBudget, reset), limited("agent1", agent.Budget, breaker.Budget("agent1"), time.Time{}), limited("agent2", agent.Budget, breaker.Budget("agent2"), reset),
				},
				Now: now,
				Breakers: []breaker.State{
					{Account: breaker.AllBudget, By: "agent0", SinceMS: 5, RetryMS: reset.UnixMilli(), About: "day:d:", Fault: agent.Fault{Reason: agent.Budget, Text: "100 tokens"}},
					{Account: breaker.Budget("agent1"), By: "agent1", SinceMS: 6, About: "task::t", Fault: agent.Fault{Reason: agent.Budget, Text: "50 tokens"}},
					{Account: breaker.Budget("agent2"), By: "agent2", SinceMS: 7, Refused: true, Fault: agent.Fault{Reason: agent.Budget, Text: "left so"}},
				},
			},
			[]string{
				"budget|agent0 to agent2|have used up their budget|100 tokens|netsky approve CODE|nothing more is offered, and mail waits until " + agent.Clock(reset, now),
				"budget|agent1|has used up its budget|50 tokens|netsky approve CODE|nothing more is offered, and mail waits",
			},
		},
		"a tripped account": {
			attention.Sources{
				Agents: []view.Agent{one("agent0", agent.Dead, detail("killed", false)), one("agent1", agent.Idle, nil)},
				Breakers: []breaker.State{
					{Account: "a", By: "agent0", SinceMS: 5, RetryMS: reset.UnixMilli(), Fault: agent.Fault{Reason: agent.Login}},
					{Account: "b", By: "agent1", SinceMS: 5, RetryMS: 9, Fault: agent.Fault{Reason: agent.Overloaded}},            // passes in seconds
					{Account: "c", By: "agent7", SinceMS: 5, RetryMS: reset.UnixMilli(), Fault: agent.Fault{Reason: agent.Login}}, // nobody needs it
				},
			},
			[]string{
				"login|agent0|is not logged in|not logged in|netsky attach agent0|its mail waits, and it continues by itself after a login; else it is tried again at " + agent.Clock(reset, now),
				"dead|agent0|is dead|killed|netsky agent 0|it stays dead, and its mail waits",
			},
		},
		"failures": {
			attention.Sources{Daemon: attention.DaemonGone, Agents: []view.Agent{
				one("agent0", agent.Down, nil), one("agent1", agent.Dead, func(a *view.Agent) { a.Evidence, a.Restart = "exited 3", "restart in 4s (attempt 2)" }),
				one("agent2", agent.CrashLooping, func(a *view.Agent) { a.Detail, a.Restart = "exited 1", "5 deaths in 10 minutes" }),
				one("agent3", agent.Hung, detail("no sign of life for 31m", false)), one("agent4", agent.Idle, func(a *view.Agent) { a.Poison = 2 }),
			}},
			[]string{
				"hung|agent3|has work but shows no activity|no sign of life for 31m|netsky interrupt agent3|it keeps running, and you are told again",
				"looping|agent2|keeps crashing|exited 1|netsky show agent2|5 deaths in 10 minutes",
				"dead|agent1|is dead|exited 3|netsky agent 1|restart in 4s (attempt 2)",
				"down|agent0|is down and should be up||netsky agent 0|it stays down, and its mail waits",
				"daemon|the daemon|is not running, but should be||netsky up|outboxes, schedules and the records of deaths wait",
				"unreadable|agent4|received 2 unreadable messages||netsky channel poison ls|they are kept aside, and nobody reads them",
			},
		},
		"an alert that did not reach the owner": {
			attention.Sources{Failed: []attention.Failure{{MS: now.UnixMilli(), Subject: "agent1 hangs", Error: "answered 500"}}},
			[]string{"unreached|an alert|did not reach you|you could not be reached at " + now.Local().Format("15:04:05") + " about \"agent1 hangs\": answered 500|netsky escalate --clear|later alerts may not reach you either"},
		},
		"a daemon that hangs": {
			attention.Sources{Daemon: attention.DaemonHung},
			[]string{"daemon|the daemon|does not answer||netsky up|outboxes, schedules and the records of deaths wait"},
		},
		"a daemon that the ticker will replace": {
			attention.Sources{Daemon: attention.DaemonGone, Ticks: true},
			[]string{"daemon|the daemon|is not running, but should be||netsky up|outboxes, schedules and the records of deaths wait until the ticker's next tick starts another"},
		},
		"questions": {
			attention.Sources{Questions: []attention.Asked{{ID: "m-1", From: "agent2", Text: "which port?\n"}}},
			[]string{`question|agent2|waits for your answer|which port?|netsky reply m-1 "…"|agent2 waits for it`},
		},
	} {
		tt.s.Now = now
		var got []string
		list := attention.List(tt.s)
		for _, n := range list {
			got = append(got, strings.Join([]string{string(n.Kind), n.Who(), n.Title, n.Text, strings.ReplaceAll(n.Command, n.Code, "CODE"), n.Otherwise}, "|"))
			if n.Kind == attention.Approval {
				got[len(got)-1] = strings.ReplaceAll(got[len(got)-1], "CODE", n.Code)
			}
			if len(n.Code) != 5 || strings.Trim(n.Code, "abcdefghijkmnopqrstuvwxyz") != "" || len(n.Digest) != 64 || n.About == "" {
				t.Errorf("%s: %+v", name, n)
			}
			if found, ok := attention.Find(list, n.Code); !ok || found.Digest != n.Digest {
				t.Errorf("%s: %s finds %+v", name, n.Code, found)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

// A request that would run elsewhere than where its agent was started says so in a line, too.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	list := attention.List(attention.Sources{
		Approvals: []agent.Approval{
			{Code: "abcde", Agent: "agent1", Tool: "Bash", Text: "rm -rf *", Dir: "/w"}, {Code: "abcdf", Agent: "agent1", Tool: "Bash", Text: "rm -rf *", Dir: "/w/sub"},
		},
		Dirs: map[agent.ID]string{"agent1": "/w"},
	})
	for i, want := range []string{"agent1 asks for permission to use Bash: rm -rf *", "agent1 asks for permission to use Bash: rm -rf * (in /w/sub)"} {
		testworld.Equal(t, list[i].Line(), want)
	}
}

// Of a conflict between two agents, the step is one that is not refused: that of the one whose work is nearer
// to landing.
func TestAddStep(t *testing.T) {
	of := func(id agent.ID, proof, line string) work.State {
		return work.State{Agent: id, Proof: proof, Next: line, Does: "do that with " + string(id) + "'s work"}
	}
	unchecked := of("agent1", work.Unchecked, "netsky check agent1")
	for name, tt := range map[string]struct {
		list []work.State
		want string // the last command
	}{
		"not known":            {nil, "Show what agent3 has changed: netsky diff agent3"},
		"neither is checked":   {[]work.State{unchecked, of("agent3", work.Stale, "netsky check agent3")}, "First do that with agent1's work: netsky check agent1"},
		"the second is":        {[]work.State{unchecked, of("agent3", work.Checked, "netsky land agent3")}, "First do that with agent3's work: netsky land agent3"},
		"the first is dirty":   {[]work.State{of("agent1", "", "netsky diff agent1"), of("agent3", "", "netsky land agent3 --unchecked")}, "First do that with agent3's work: netsky land agent3 --unchecked"},
		"both are":             {[]work.State{of("agent1", "", "netsky diff agent1"), of("agent3", "", "netsky diff agent3")}, "Show what agent3 has changed: netsky diff agent3"},
		"the first has landed": {[]work.State{of("agent1", "", ""), of("agent3", "", "netsky ask agent3 x")}, "First do that with agent3's work: netsky ask agent3 x"},
		"another's":            {[]work.State{of("agent2", work.Checked, "netsky land agent2")}, "Show what agent3 has changed: netsky diff agent3"},
	} {
		list := attention.List(attention.Sources{Now: now, Conflicts: []merge.Known{
			{Conflict: merge.Conflict{Agents: []agent.ID{"agent1", "agent3"}, Files: []string{"a.go"}}},
			{Conflict: merge.Conflict{Agents: []agent.ID{"agent3"}, Target: "a b"}},
		}})
		for i := range list {
			list[i].AddStep(tt.list)
		}
		n := list[0]
		if last := n.Commands[len(n.Commands)-1]; last.Does+": "+last.Line != tt.want || n.Command != "netsky work" || !n.Stepwise() {
			t.Errorf("%s: %+v, want %s", name, n.Commands, tt.want)
		}
		n = list[1]
		if n.Command != "netsky ask agent3 'merge a b into your branch and resolve the conflicts'" || n.Stepwise() {
			t.Errorf("%s: with the branch: %+v", name, n.Commands)
		}
	}
}

// A code stays the same while the thing stands, whatever becomes of its words and of the
// others; a digest changes with the words.
func TestCodesAndDigests(t *testing.T) {
	asked := agent.Approval{Code: "abcde", Agent: "agent1", Tool: "Bash", Text: "ls"}
	base := []view.Agent{one("agent2", agent.Hung, func(a *view.Agent) { a.Detail = "for 30m" }), limited("agent3", agent.Login, "a", time.Time{})}
	before := attention.List(attention.Sources{Now: now, Approvals: []agent.Approval{asked}, Agents: base})
	asked.Text = "ls "
	longer := slices.Clone(base)
	longer[0].Detail = "for 31m"
	longer = append(longer, limited("agent4", agent.Login, "a", time.Time{}), one("agent5", agent.Dead, nil))
	after := attention.List(attention.Sources{Now: now.Add(time.Minute), Approvals: []agent.Approval{asked}, Agents: longer})
	for i, kind := range []attention.Kind{attention.Approval, attention.Login, attention.Hung} {
		x, y := before[i], after[i]
		if x.Kind != kind || y.Kind != kind || x.Code != y.Code || x.Digest == y.Digest {
			t.Errorf("%s: %s %s, later %s %s", kind, x.Code, x.Digest, y.Code, y.Digest)
		}
	}
	again := attention.List(attention.Sources{Now: now.Add(time.Hour), Approvals: []agent.Approval{asked}, Agents: longer})
	if !slices.EqualFunc(after, again, func(x, y attention.Need) bool { return x.Code == y.Code && x.Digest == y.Digest }) {
		t.Error("the same things have other codes or digests an hour later")
	}
	other := longer[0]
	other.Start = "another"
	if n := attention.List(attention.Sources{Now: now, Agents: []view.Agent{other}})[0]; n.Code == after[2].Code {
		t.Error("another start that hangs has the code of the first")
	}
	codes := map[string]bool{}
	var many []view.Agent
	for i := range 200 {
		many = append(many, one(agent.Clone(i+1), agent.Dead, nil))
	}
	for _, n := range attention.List(attention.Sources{Now: now, Agents: many}) {
		codes[n.Code] = true
	}
	if len(codes) != len(many) {
		t.Errorf("%d codes for %d things", len(codes), len(many))
	}
}

// Mail that asks the owner is a need until it is answered, read or not.
func TestQuestions(t *testing.T) {
	h := testworld.Home(t)
	b := testworld.Bus(t, h, "agent0", "owner")
	mail := attention.NewMail(b)
	send := func(e envelope.Envelope) {
		t.Helper()
		testworld.Got(b.Send(t.Context(), e))(t)
	}
	send(envelope.Envelope{ID: "plain", From: "agent0", To: "owner", Text: "done"})
	send(envelope.Envelope{ID: "page", From: "agent0", To: "owner", Kind: envelope.KindApproval, Text: "hangs", Via: "code"})
	send(envelope.Envelope{ID: "reply", From: "agent0", To: "owner", Kind: envelope.KindReply, Text: "yes", RequiresAck: true})
	send(envelope.Envelope{ID: "ack", From: "agent0", To: "owner", Text: "which port?", RequiresAck: true})
	send(envelope.Envelope{ID: "brief", From: "agent0", To: "owner", Kind: envelope.KindBrief, Text: "please"})
	send(envelope.Envelope{ID: "may", From: "agent0", To: "owner", Kind: envelope.KindApproval, Text: "may I?", Via: "mcp"})
	send(envelope.Envelope{ID: "word", From: "agent0", To: "owner", Kind: "question", Text: "really?"})
	for id, via := range map[string]string{"code": "code", "far": "mcp"} { // of build1's netsky, and of an agent there
		testworld.Must(t, b.Arrive(t.Context(), "build1", envelope.Envelope{ID: id, From: "agent3", To: "owner@laptop", Kind: envelope.KindApproval, Text: "may I?", Via: via, Time: time.Now()}, false))
	}
	list, err := attention.Collect(t.Context(), h, mail, attention.Sources{Now: now})
	var got []string
	for _, n := range list {
		got = append(got, n.Commands[0].Line)
	}
	if want := `[netsky reply ack "…" netsky reply brief "…" netsky reply may "…" netsky reply word "…" netsky reply far "…"]`; err != nil || fmt.Sprint(got) != want {
		t.Fatalf("%v, %v", got, err)
	}
	names, err := b.Mail("owner", false)
	if err != nil || home.ShownMail(h).Mark(names...) != nil {
		t.Fatal(err)
	}
	send(envelope.Envelope{ID: "a", From: "owner", To: "agent0", Kind: envelope.KindReply, InReplyTo: "brief", Text: "yes"})
	for range 2 { // the second time from what is remembered
		left, err := mail.Questions(t.Context())
		if err != nil || len(left) != 4 || left[0].ID != "ack" || left[2].ID != "word" {
			t.Errorf("after one answer: %+v, %v", left, err)
		}
	}
}

func TestHeadline(t *testing.T) {
	list := attention.List(attention.Sources{
		Now: now, Approvals: []agent.Approval{{Code: "abcde", Agent: "agent1"}}, Daemon: attention.DaemonGone,
		Agents: []view.Agent{one("agent2", agent.Dead, nil), one("agent3", agent.Dead, nil)},
	})
	testworld.Equal(t, attention.Headline(list), "agent1 asks for permission, 2 agents are dead")
	testworld.Equal(t, attention.Headline(list[3:]), "the daemon needs you")
}

// What to do is said in words of its own for each surface.
func TestHowAndNext(t *testing.T) {
	for _, tt := range []struct{ kind, how, next string }{
		{"approval", "`netsky approve abcde` allows this once, --deny refuses", "netsky approve abcde allows once what agent1 asks for, --deny refuses; netsky needs shows what that is"},
		{"blocked", "`netsky attach agent2`, then /compact; or `netsky agent 2 --fresh`", "netsky attach agent2, then /compact; or netsky agent 2 --fresh"},
		{"limit", "nothing to do: its mail waits, and it is tried again by itself", "nothing to do: its mail waits, and it is tried again by itself"},
		{"daemon", "`netsky up`", "netsky up starts the daemon again"},
	} {
		list := attention.List(attention.Sources{
			Now: now, Approvals: []agent.Approval{{Code: "abcde", Agent: "agent1"}}, Daemon: attention.DaemonHung,
			Agents: []view.Agent{limited("agent2", agent.ContextFull, "a", time.Time{}), limited("agent3", agent.Network, "a", time.Time{})},
		})
		i := slices.IndexFunc(list, func(n attention.Need) bool { return string(n.Kind) == tt.kind })
		if n := list[i]; n.How() != tt.how || n.Next() != tt.next {
			t.Errorf("%s:\n%s\n%s", tt.kind, n.How(), n.Next())
		}
	}
}
