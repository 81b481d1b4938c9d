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
