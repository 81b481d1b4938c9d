//go:build live

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
)

// A down that dies after its agents have obeyed leaves agents that take no mail:
// they do not pass for idle, and the next up starts them again, with their
// conversation and what had come meanwhile.
func TestClaudeFinishedForADeadDown(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	w.config(t, freely)
	w.up1(t)
	testworld.Equal(t, w.mustAsk(t, "loop: users"), "users: 1", "before")
	w.mustBe(t, "idle")
	la := testworld.Got(w.mustHome(t).LoadLaunch("agent1"))(t)
	request := fmt.Sprintf(`{"from":"owner","kind":"shutdown","start":%q,"text":"the end","ts":%q}`, la.Start, time.Now().UTC().Format(time.RFC3339))
	testworld.Must(t, os.WriteFile(filepath.Join(w.home, home.Mailbox("agent1"), "inbox", "end.json"), []byte(request), 0o600))
	w.mustShow(t, "status", "agent1         down", "finished as requested")
	if status, out := w.within(t, nil, "", "netsky", "ask", "agent1", "hello"); status != 1 {
		t.Errorf("asked, it gave status %d:\n%s", status, out)
	}
	id := w.mustSend(t, "agent1", "loop: users")
	mustContain(t, "agent", w.up1(t), "agent1         ready")
	if l := w.mustOne(t, id); l.Text != "users: 2" {
		t.Errorf("started again: %+v, want users: 2", l)
	}
}
