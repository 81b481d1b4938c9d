//go:build live

package cli_test

import (
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
)

// A dialog on Codex's screen is a state, though the agent works on behind it: it
// is named in status, told to the owner while nobody is at the pane, and answered
// by nobody else.
func TestCodexDialog(t *testing.T) {
	t.Parallel()
	w, _ := mustCodex(t)
	w.mustUp(t, "up", "1", "--type", "codex", "--yes")
	testworld.Wait(t, "Codex's screen", func() bool {
		return strings.Contains(w.must(t, "netsky", "peek", "agent1"), "Ask Codex to do anything")
	})
	w.pane(t, "send-keys", "-t", "=agent1:", "-l", "/model")
	testworld.Wait(t, "the command on it", func() bool { return strings.Contains(w.must(t, "netsky", "peek", "agent1"), "/model") })
	w.pane(t, "send-keys", "-t", "=agent1:", "Enter")
	testworld.Wait(t, "the list of models", func() bool { return strings.Contains(w.must(t, "netsky", "peek", "agent1"), "Select Model") })
	w.mustShow(t, "status", "agent1", "waiting", "model: Select Model")
	w.mustShow(t, "inbox", "agent1 is waiting at a dialog in its pane (model): Select Model", "netsky attach agent1")

	// Mail goes on behind it, and the dialog stays a person's.
	testworld.Contains(t, w.must(t, "netsky", "ask", "agent1", "loop: say behind it"), "behind it", "answer")
	testworld.Contains(t, w.must(t, "netsky", "peek", "agent1"), "Select Model", "the dialog was answered")
	waitState(t, w, "agent1", agent.Idle)
	mustContain(t, "interrupt", w.must(t, "netsky", "interrupt", "agent1"), "agent1: is waiting (model: Select Model", "no turn is running: nothing to interrupt")
	w.pane(t, "send-keys", "-t", "=agent1:", "Escape")
	waitState(t, w, "agent1", agent.Idle)
	testworld.Wait(t, "no dialog in status", func() bool { return !strings.Contains(w.must(t, "netsky", "status"), "model: ") })
}

// A Codex agent can set itself a goal, on which Codex then begins turn after turn unasked, only if
// the owner allows that. One from before is not worked on when it is no longer allowed.
func TestCodexGoals(t *testing.T) {
	t.Parallel()
	w, model := mustCodex(t)
	offered := func(may string) {
		t.Helper()
		w.config(t, "[codex]\nsandbox = \"danger-full-access\"\napproval = \"never\"\n"+may)
		w.must(t, "netsky", "agent", "1", "--type", "codex")
		w.must(t, "netsky", "ask", "agent1", "hello")
		list := model.Requests()
		tools := list[len(list)-1].Tools
		if got := slices.Contains(tools, "create_goal"); got != (may != "") {
			t.Errorf("with %q a goal is offered: %v, among the tools %q", may, got, tools)
		}
	}
	offered("")
	w.must(t, "netsky", "down", "1")
	offered("goals = true\n")
	model.Handle(func(q openai.Request) *openai.Reply {
		if len(q.Outputs) == 0 && strings.Contains(q.Last(), "set it") {
			return &openai.Reply{Calls: []openai.Call{{Name: "create_goal", Arguments: map[string]any{"objective": "count for ever"}}}}
		}
		return nil
	})
	w.mustOne(t, w.mustSend(t, "agent1", "set it"))
	w.must(t, "netsky", "down", "1", "--force")
	before := len(model.Requests())
	offered("")
	w.must(t, "netsky", "ask", "agent1", "hello again")
	if n := len(model.Requests()) - before; n != 2 {
		t.Errorf("two messages made %d requests: the goal is still worked on", n)
	}
}

// A goal that a Codex agent may set itself goes on turn after turn: one too many is interrupted,
// the owner is told, and a message lets the agent go on.
func TestCodexAlone(t *testing.T) {
	t.Parallel()
	w, model := mustCodex(t)
	w.config(t, "[codex]\nsandbox = \"danger-full-access\"\napproval = \"never\"\ngoals = true\n")
	w.must(t, "netsky", "agent", "1", "--type", "codex")
	model.Handle(func(q openai.Request) *openai.Reply {
		if len(q.Outputs) == 0 && strings.Contains(q.Last(), "set it") {
			return &openai.Reply{Calls: []openai.Call{{Name: "create_goal", Arguments: map[string]any{"objective": "count for ever"}}}}
		}
		return nil
	})
	w.mustOne(t, w.mustSend(t, "agent1", "set it"))
	w.mustShow(t, "status", "blocked", "turns that nobody asked for")
	w.mustShow(t, "needs", "nobody asked for", "netsky attach agent1")
	w.mustShow(t, "inbox", "50 turns in a row")
	n := len(model.Requests())
	w.must(t, "netsky", "ask", "agent1", "loop: say still here")
	if n > 70 {
		t.Errorf("%d requests before the brake", n)
	}
	t.Logf("%d requests before the brake, %d after a message", n, len(model.Requests()))
}

// A Codex agent whose shell may write nothing answers by its tool, without anybody
// being asked, and that is the one answer.
func TestCodexRepliesFromItsSandbox(t *testing.T) {
	t.Parallel()
	w, _ := mustCodex(t)
	w.config(t, "[codex]\nsandbox = \"read-only\"\napproval = \"untrusted\"\n")
	w.must(t, "netsky", "agent", "1", "--type", "codex")
	id := w.mustSend(t, "agent1", "--id", "q-1", `loop: call mcp__agent reply {"id":"q-1","text":"by the tool"}`)
	if l := w.mustOne(t, id); l.Kind != "reply" || l.Text != "by the tool" || l.Implicit {
		t.Errorf("the answer is %+v", l)
	}
	w.mustBe(t, "idle")
	if l := w.mustOne(t, id); l.Text != "by the tool" {
		t.Errorf("after the turn the answer is %+v", l)
	}
	mustContain(t, "approvals", w.must(t, "netsky", "approvals"), "nothing waits for your approval")
}
