//go:build live

package cli_test

import (
	"strings"
	"testing"

	"netsky/agent"
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
