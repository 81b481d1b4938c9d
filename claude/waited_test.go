package claude_test

import (
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/claude"
)

// TestHoldsWhatWaited: a message that had waited for hours says so in its rendering. The
// conversation is known to hold it nevertheless, and how its turn ended.
func TestHoldsWhatWaited(t *testing.T) {
	for _, waited := range []time.Duration{0, time.Minute, time.Hour, 30 * time.Hour} {
		text := envelope.Render(envelope.Envelope{ID: "m-1", From: agent.Owner, Text: "hi", Time: time.Now().Add(-waited)}, time.Now())
		text = strings.NewReplacer(`"`, `\"`, "\n", `\n`).Replace(text)
		line := `{"type":"user","promptId":"t-1","origin":{"kind":"peer"},"message":{"content":"` + text + `"}}`
		file := mustTranscript(t, line, says(`"end_turn"`, "said"), turnOver)
		if !claude.Holds(file, "m-1") {
			t.Errorf("after %v: Holds = false", waited)
		}
		if e, ok := claude.TurnEnd(file, "m-1", ""); !ok || e.Text != "said" || e.ID != "t-1" {
			t.Errorf("after %v: TurnEnd = %+v, %v", waited, e, ok)
		}
		if claude.Holds(file, "m-") || claude.Holds(file, "m-12") {
			t.Errorf("after %v: Holds another", waited)
		}
	}
}
