//go:build live

package cli_test

import (
	"strings"
	"testing"

	"netsky/internal/testworld"
)

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
