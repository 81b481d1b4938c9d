//go:build live

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/loopmodel"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// What a turn has left in the background, a command or a subagent, is work: the message is
// answered with its result, and until then the agent is busy.
func TestClaudeBackground(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	w.config(t, freely)
	gate := func(what string) string { return filepath.Join(w.dir, "src", "gate-"+what) }
	model.Handle(func(q anthropic.Request) *anthropic.Reply {
		last := q.Last()
		if q.Fresh == 0 && len(q.Outputs) == 0 && bytes.Contains(q.Body, []byte("SYSTEM NOTIFICATION")) { // nobody has said anything
			return &anthropic.Reply{Text: "the result is in"}
		}
		if len(q.Outputs) > 0 {
			return nil
		}
		wait := func(what string) string { return "until test -e " + gate(what) + "; do sleep 0.1; done" }
		switch {
		case strings.Contains(last, "in the background: command"):
			return &anthropic.Reply{Calls: []loopmodel.Call{{Name: "Bash", Arguments: map[string]any{"command": wait("command"), "run_in_background": true}}}}
		case strings.Contains(last, "in the background: subagent"):
			return &anthropic.Reply{Calls: []loopmodel.Call{{Name: "Agent", Arguments: map[string]any{"description": "count", "prompt": "loop: shell " + wait("subagent"), "subagent_type": "general-purpose"}}}}
		}
		return nil
	})
	w.up1(t)
	for _, what := range []string{"command", "subagent"} {
		id := w.mustSend(t, "agent1", "in the background: "+what)
		w.mustShow(t, "status", "busy", "in the background: ")
		// It takes other mail meanwhile, and answers that.
		testworld.Contains(t, w.mustAsk(t, "loop: say meanwhile"), "meanwhile", "%s: meanwhile", what)
		testworld.Lacks(t, w.must(t, "netsky", "show", id), "answered", "%s: answered before its work is done", what)
		testworld.Must(t, os.WriteFile(gate(what), nil, 0o600))
		if l := w.mustOne(t, id); l.Kind != "reply" || l.Text != "the result is in" {
			t.Errorf("%s: the answer is %+v", what, l)
		}
		testworld.Wait(t, "idle", func() bool { return strings.Contains(w.must(t, "netsky", "status"), "idle") })
	}
}

// What Claude Code does outside of the agent's worktree is said: in a worktree that it has made itself, and in the
// owner's directory; and so is a conversation that it does not continue.
func TestClaudeBeside(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	w.config(t, freely)
	dir := filepath.Join(w.dir, "src")
	r := testworld.NewRepo(t, dir)
	r.Commit("one", "a", "1\n")
	model.Handle(func(q anthropic.Request) *anthropic.Reply {
		call := func(name string, args map[string]any) *anthropic.Reply {
			return &anthropic.Reply{Calls: []loopmodel.Call{{Name: name, Arguments: args}}}
		}
		switch last := q.Last(); {
		case !strings.Contains(last, "stray now") && len(q.Outputs) == 0:
			return nil
		case len(q.Outputs) == 0:
			return call("Write", map[string]any{"file_path": filepath.Join(dir, "new"), "content": "x\n"})
		case strings.Contains(strings.Join(q.Outputs, "\n"), "in beside"):
			return &anthropic.Reply{Text: "strayed"}
		case strings.Contains(strings.Join(q.Outputs, "\n"), ".claude/worktrees"):
			return call("Bash", map[string]any{"command": "echo 1 > in-there && echo in beside"})
		default:
			return call("EnterWorktree", map[string]any{"name": "side"})
		}
	})
	w.up1(t)
	if got := w.mustAsk(t, "stray now"); !strings.Contains(got, "strayed") {
		t.Fatalf("%q", got)
	}
	for _, args := range [][]string{{"work"}, {"diff", "1"}} {
		if out := w.must(t, "netsky", args...); !strings.Contains(out, "1 file not committed in ") || !strings.Contains(out, "/.claude/worktrees/side") || !strings.Contains(out, "changed in "+dir+": new") {
			t.Errorf("%q: %s", args, out)
		}
	}
	w.must(t, "netsky", "down", "agent1", "--force")
	testworld.Contains(t, w.up1(t, "--here"), "agent1 begins a new conversation: its last, ", "here")
}

// An agent that waits for a yes has a turn that no Escape may end, as the dialog
// would take it for an answer: interrupt says so at once, and leaves nothing
// behind that would end a later turn.
func TestClaudeInterruptAtQuestion(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	w.config(t, "[claude]\npermission_mode = \"manual\"\n")
	w.up1(t)
	id := w.mustSend(t, "agent1", "loop: shell touch "+w.dir+"/made")
	code := w.mustApproval(t, "touch ")
	w.mustShow(t, "status", "waiting", "permission: Bash")
	out, err := w.command(t.Context(), "netsky", "interrupt", "agent1", "never mind").CombinedOutput()
	testworld.Fails(t, err, "", "interrupt said that it is done:\n%s", out)
	mustContain(t, "interrupt", string(out), "is waiting (permission: Bash: touch ", "nothing was interrupted", "netsky approvals", "netsky attach agent1")
	if list := w.must(t, "netsky", "channel", "ls", "agent1"); strings.Contains(list, "cancel") || strings.Contains(list, "never mind") {
		t.Errorf("left in its mailbox:\n%s", list)
	}
	w.must(t, "netsky", "approve", code)
	if l := w.mustOne(t, id); l.Kind != "reply" {
		t.Errorf("the turn that went on answered %+v", l)
	}
}
