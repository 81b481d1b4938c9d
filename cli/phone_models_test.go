//go:build live

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/loopmodel"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
)

// A phoneModel is what differs between the models behind the phone.
type phoneModel struct {
	runtime string
	call    func(tool, args string) string // the order that makes it call a tool of the phone's server
}

// repliesByTool returns the calls and the words with which a model answers a text "by tool: WORDS":
// by the phone's reply, and at the end of its turn with other words, which nobody is to get.
func repliesByTool(said string, outputs []string, call func(args any) loopmodel.Call) *loopmodel.Reply {
	list := anthropic.Messages(said)
	if len(list) == 0 {
		return nil
	}
	m := list[len(list)-1]
	words, ok := strings.CutPrefix(m.Text, "by tool: ")
	switch {
	case !ok:
		return nil
	case len(outputs) > 0:
		return &loopmodel.Reply{Text: "I have answered: " + words}
	}
	return &loopmodel.Reply{Calls: []loopmodel.Call{call(map[string]any{"id": m.ID, "text": words})}}
}

const phoneFreely = freely + "[codex]\nsandbox = \"danger-full-access\"\napproval = \"never\"\n"

func TestPhoneClaude(t *testing.T) {
	t.Parallel()
	w := mustPhone(t, phoneFreely)
	model := w.addClaude(t)
	model.Handle(func(q anthropic.Request) *anthropic.Reply {
		return repliesByTool(strings.Join(q.News(), "\n"), q.Outputs, func(args any) loopmodel.Call {
			return loopmodel.Call{Name: "mcp__imessage__reply", Arguments: args}
		})
	})
	w.converses(phoneModel{
		runtime: "claude",
		call:    func(tool, args string) string { return "loop: call mcp__imessage__" + tool + " " + args },
	})
}

func TestPhoneCodex(t *testing.T) {
	t.Parallel()
	w := mustPhone(t, phoneFreely)
	model := w.addCodex(t)
	model.Handle(func(q openai.Request) *openai.Reply {
		return repliesByTool(q.Last(), q.Outputs, func(args any) loopmodel.Call {
			return loopmodel.Call{Namespace: "mcp__imessage", Name: "reply", Arguments: args}
		})
	})
	w.converses(phoneModel{
		runtime: "codex",
		call:    func(tool, args string) string { return "loop: call mcp__imessage " + tool + " " + args },
	})
}

// converses texts with agent0 on a real program: each answer arrives once, wherever the daemon
// is killed and by whatever way the model gives it, and the tools for the phone are agent0's
// and agentinfinity's.
func (w *phoneWorld) converses(m phoneModel) {
	t := w.t
	w.mustUp(t, "up", "1", "--type", m.runtime, "--no-attach")
	w.answersWhileKilled(m.runtime, func(i int, text string) string {
		if i%2 == 1 {
			return "by tool: " + text
		}
		return "loop: say " + text
	})
	for _, text := range w.texts() {
		testworld.Lacks(t, text, "I have answered", "answered by the tool, and yet the phone")
	}

	w.says(m.call("reply", `{"text": "a word on its own account"}`))
	w.gets("[agent0] a word on its own account")
	w.gets("stored for the owner's phone, id ")
	file := filepath.Join(w.dir, "the plan.txt")
	testworld.Must(t, os.WriteFile(file, []byte("to do"), 0o600))
	w.says(m.call("send_file", fmt.Sprintf(`{"path": %q, "text": "here it is"}`, file)))
	w.gets("[agent0] here it is")
	w.gets("the_plan.txt")
	w.says(m.call("history", `{"limit": 3}`))
	w.gets("owner: loop: call mcp__imessage")

	// What a model has called, it has: agentinfinity sees the texts, and a clone does not.
	for name, want := range map[string]bool{"agentinfinity": true, "agent1": false} {
		out := w.must(t, "netsky", "ask", name, m.call("history", `{"limit": 3}`))
		if got := strings.Contains(out, " owner: loop: call "); got != want {
			t.Errorf("%s has the tools for the phone: %v, want %v: %s", name, got, want, out)
		}
	}
}
