//go:build live

package cli_test

import "testing"

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
