package cli_test

import "testing"

// Of an agent that can't work, status and netsky alone say what there is to do.
func TestClaudeBlockedSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	w.config(t, freely)
	w.up1(t)
	w.mustOne(t, w.mustSend(t, "agent1", "loop: fail 400"))
	w.mustShow(t, "status", "context full", "agent1 is blocked: context full", "(`netsky attach agent1`, then /compact; or `netsky agent 1 --fresh`)")
	w.must(t, "netsky", "inbox")
	mustContain(t, "netsky", w.must(t, "netsky"), "next: netsky attach agent1, then /compact")
	w.must(t, "netsky", "agent", "1", "--fresh")
	if got := w.mustAsk(t, "loop: users"); got != "users: 1" {
		t.Errorf("afresh: %q", got)
	}
}
