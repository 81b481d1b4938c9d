//go:build live

package cli_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
)

// Of an agent that can't work, status and netsky alone say what there is to do. A message for
// which the conversation has no room, and Claude Code can't make any, is not answered by that,
// and given to the model again.
func TestClaudeBlockedSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	w.config(t, freely)
	var full atomic.Bool
	full.Store(true)
	model.Handle(func(q anthropic.Request) *anthropic.Reply {
		if full.Load() && strings.Contains(q.Last(), "the task") {
			return anthropic.Fail(400)
		}
		return nil
	})
	w.up1(t)
	id := w.mustSend(t, "agent1", "the task")
	w.mustShow(t, "status", "context full", "agent1 is blocked: context full", "(`netsky attach agent1`, then /compact; or `netsky agent 1 --fresh`)")
	mustContain(t, "netsky", w.must(t, "netsky"), "next: netsky attach agent1, then /compact")
	w.mustAnswerAfresh(t, id, &full)
}

// mustAnswerAfresh checks that a message for which there was no room is answered in a new conversation, and not before.
func (w *world) mustAnswerAfresh(t *testing.T, id string, full *atomic.Bool) {
	t.Helper()
	testworld.Equal(t, len(w.answers(t, id)), 0, "answers to a message for which there was no room")
	full.Store(false)
	w.must(t, "netsky", "agent", "1", "--fresh")
	if l := w.mustOne(t, id); l.Kind != "reply" {
		t.Errorf("afresh: %+v", l)
	}
}

// So it is with Codex.
func TestCodexContextFull(t *testing.T) {
	t.Parallel()
	w, model := mustCodex(t)
	var full atomic.Bool
	full.Store(true)
	model.Handle(func(q openai.Request) *openai.Reply {
		if full.Load() && strings.Contains(q.Last(), "the task") {
			return openai.FailWith(400, "context_length_exceeded")
		}
		return nil
	})
	w.config(t, "[codex]\nsandbox = \"danger-full-access\"\napproval = \"never\"\n")
	w.must(t, "netsky", "agent", "1", "--type", "codex")
	id := w.mustSend(t, "agent1", "the task")
	w.mustShow(t, "status", "context full")
	w.mustAnswerAfresh(t, id, &full)
}

// If the owner allows it, netsky has Codex compact the thread, and the message is answered.
func TestCodexCompacts(t *testing.T) {
	t.Parallel()
	w, model := mustCodex(t)
	var asked atomic.Int32
	model.Handle(func(q openai.Request) *openai.Reply {
		switch {
		case !strings.Contains(string(q.Body), "the task"):
			return nil
		case asked.Add(1) == 1:
			return openai.FailWith(400, "context_length_exceeded")
		case asked.Load() == 2: // the compaction
			return &openai.Reply{Text: "a summary"}
		}
		return &openai.Reply{Text: "done"}
	})
	w.config(t, "[codex]\nsandbox = \"danger-full-access\"\napproval = \"never\"\ncompact = true\n")
	w.must(t, "netsky", "agent", "1", "--type", "codex")
	w.must(t, "netsky", "ask", "agent1", "hello")
	if l := w.mustOne(t, w.mustSend(t, "agent1", "the task")); l.Kind != "reply" || l.Text != "done" {
		t.Errorf("the answer: %+v", l)
	}
	mustContain(t, "the record", w.must(t, "netsky", "log"), "the conversation was compacted")
}
