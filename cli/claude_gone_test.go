//go:build live

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/claude"
	"netsky/internal/testworld"
)

// An agent whose conversation Claude Code has removed begins a new one: up says so, the
// owner has mail, and the model is told what the records hold.
func TestClaudeConversationGone(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	h := w.mustHome(t)
	w.config(t, freely)
	w.up1(t)
	mustContain(t, "the answer", w.mustAsk(t, "hello first"), "hello first")
	w.must(t, "netsky", "down", "agent1")
	s := testworld.Got(claude.LoadState(h, "agent1"))(t)
	testworld.Must(t, os.Remove(s.Transcript))
	if _, out := w.within(t, nil, "", "netsky", "doctor"); !strings.Contains(out, "agent1: the file of its conversation is gone") {
		t.Errorf("doctor:\n%s", out)
	}
	said := "agent1: its conversation " + s.Session + " can't be continued: Claude Code has no file of it in " + filepath.Dir(filepath.Dir(s.Transcript))
	mustContain(t, "up", w.up1(t), said)
	mustContain(t, "the mail", w.must(t, "netsky", "inbox", "--all"), said)
	mustContain(t, "the log", w.must(t, "netsky", "log"), s.Session+" can't be continued")
	mustContain(t, "the answer", w.mustAsk(t, "hello second"), "hello second")
	told := false
	for _, q := range model.Requests() {
		for _, text := range q.News() {
			told = told || strings.Contains(text, "Your conversation before is gone") && strings.Contains(text, "hello first") && strings.Contains(text, "hello second")
		}
	}
	if !told {
		t.Error("the new conversation was not told that it replaces one")
	}
}
