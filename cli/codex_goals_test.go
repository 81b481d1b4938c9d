//go:build live

package cli_test

import (
	"slices"
	"strings"
	"testing"

	"netsky/internal/loopmodel/openai"
)

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
