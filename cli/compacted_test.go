//go:build live

package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/codex"
	"netsky/internal/testworld"
)

// A manager on Claude Code whose conversation was compacted is told with its next message,
// once, what the records hold; compacting by itself gives it nothing. A restart continues
// that conversation.
func TestClaudeCompacted(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	h := w.mustHome(t)
	w.config(t, freely+"[agents.0]\nruntime = \"claude\"\n[agents.1]\nruntime = \"demo\"\n[agents.infinity]\nruntime = \"demo\"\n")
	w.mustUp(t, "up", "1", "--no-attach", "--dir", filepath.Join(w.dir, "src"))
	const facts = "Your conversation was compacted or cleared."
	first := w.must(t, "netsky", "ask", "agent0", "hello first")
	mustContain(t, "the answer", first, "hello first")
	w.must(t, "env", "AGENT_N=0", "netsky", "channel", "send", "agent1", "/busy 1h", "--requires-ack")
	w.mustShow(t, "status", "/busy 1h")
	w.pane(t, "send-keys", "-t", "=agent0:", "-l", "/compact")
	w.pane(t, "send-keys", "-t", "=agent0:", "Enter")
	testworld.Wait(t, "the compaction", func() bool {
		data, err := os.ReadFile(h.Path("state/events/agent0.jsonl"))
		return err == nil && regexp.MustCompile(`"session_start".*"compact"`).Match(data)
	})
	w.mustShow(t, "status", "idle")
	w.must(t, "netsky", "ask", "agent0", "hello second")
	w.must(t, "netsky", "ask", "agent0", "hello third")
	told := 0
	for _, q := range model.Requests() {
		for _, text := range q.News() {
			if !strings.Contains(text, facts) || !strings.Contains(text, "hello ") {
				continue
			}
			told++
			mustContain(t, "the facts", text, "hello second", "to agent1, ", "/busy 1h", "agent1 busy")
		}
	}
	if told != 1 {
		t.Errorf("told %d times what the records hold, want once", told)
		for _, q := range model.Requests() {
			t.Logf("%q", q.News())
		}
	}

	before := testworld.Got(claude.LoadState(h, "agent0"))(t)
	testworld.Wait(t, "the conversation's file", func() bool {
		data, err := os.ReadFile(before.Transcript)
		return err == nil && strings.Contains(string(data), "hello third")
	})
	out := w.must(t, "netsky", "restart", "0")
	mustContain(t, "restart", out, "agent0: ended (its turn is finished)", "conversation "+before.Session)
	w.must(t, "netsky", "ask", "agent0", "hello fourth")
	last := model.Requests()[len(model.Requests())-1]
	mustContain(t, "the conversation", strings.Join(last.Said, "\n"), "hello third", "hello fourth")
	if after, err := claude.LoadState(h, "agent0"); err != nil || after.Session != before.Session {
		t.Errorf("%+v %v", after, err)
	}

	// All of it dies: the manager is told that, too.
	start := before.Start
	testworld.Wait(t, "the conversation's file", func() bool {
		data, err := os.ReadFile(before.Transcript)
		return err == nil && strings.Contains(string(data), "hello fourth")
	})
	if now, err := claude.LoadState(h, "agent0"); err == nil {
		start = now.Start
	}
	w.pane(t, "kill-server")
	testworld.Wait(t, "agent0 to be back", func() bool {
		r, err := h.LoadReport("agent0")
		return err == nil && r.Start != start && r.State == agent.Idle
	})
	w.must(t, "netsky", "ask", "agent0", "hello fifth")
	last = model.Requests()[len(model.Requests())-1]
	mustContain(t, "the text", strings.Join(last.News(), "\n"), "All agents were down at once", "- agent1, ", "hello fifth")
	mustContain(t, "the conversation", strings.Join(last.Said, "\n"), "hello fourth")
	testworld.Wait(t, "the note to be removed", func() bool { return !h.Mark("state/recall/agent0.json").Exists() })
	w.must(t, "netsky", "down", "--all", "--force")
}

// The same on Codex, whose thread a person compacts at its screen.
func TestCodexCompacted(t *testing.T) {
	t.Parallel()
	w, model := mustCodex(t)
	h := w.mustHome(t)
	w.config(t, "[codex]\nsandbox = \"danger-full-access\"\napproval = \"never\"\n[agents.0]\nruntime = \"codex\"\n[agents.1]\nruntime = \"demo\"\n[agents.infinity]\nruntime = \"demo\"\n")
	w.mustUp(t, "up", "1", "--no-attach", "--dir", w.dir)
	w.must(t, "netsky", "ask", "agent0", "hello first")
	w.must(t, "env", "AGENT_N=0", "netsky", "channel", "send", "agent1", "/busy 1h", "--requires-ack")
	w.mustShow(t, "status", "/busy 1h")
	w.pane(t, "send-keys", "-t", "=agent0:", "-l", "/compact")
	w.pane(t, "send-keys", "-t", "=agent0:", "Enter")
	w.mustShow(t, "log", "the conversation was compacted")
	w.must(t, "netsky", "ask", "agent0", "hello second")
	w.must(t, "netsky", "ask", "agent0", "hello third")
	before, err := codex.Conversation(h, "agent0")
	if err != nil || before == "" {
		t.Fatal(before, err)
	}
	told := 0
	for _, q := range model.Requests() {
		last := q.Last()
		if strings.Contains(last, "Your conversation was compacted or cleared.") {
			told++
			mustContain(t, "the facts", last, "hello second", "to agent1, ", "/busy 1h", "agent1 busy")
		}
	}
	if told != 1 {
		t.Errorf("told %d times what the records hold, want once", told)
	}
	mustContain(t, "restart", w.must(t, "netsky", "restart", "0"), "conversation "+before)
	w.must(t, "netsky", "ask", "agent0", "hello fourth")
	if after, err := codex.Conversation(h, "agent0"); err != nil || after != before {
		t.Errorf("%q, it was %q, %v", after, before, err)
	}

	// A program that ends before it could tell leaves that to the next.
	w.pane(t, "send-keys", "-t", "=agent0:", "-l", "/compact")
	w.pane(t, "send-keys", "-t", "=agent0:", "Enter")
	testworld.Wait(t, "the note", func() bool { return h.Mark("state/recall/agent0.json").Exists() })
	w.must(t, "netsky", "restart", "0")
	w.must(t, "netsky", "ask", "agent0", "hello fifth")
	reqs := model.Requests()
	mustContain(t, "the facts", reqs[len(reqs)-1].Last(), "Your conversation was compacted or cleared.", "hello fifth", "to agent1, ")
	testworld.Wait(t, "the note to be removed", func() bool { return !h.Mark("state/recall/agent0.json").Exists() })

	// One whose program died is told how.
	k, err := h.LoadKeeper("agent0")
	testworld.Must(t, err)
	testworld.Must(t, k.Process.Signal(syscall.SIGKILL))
	testworld.Wait(t, "agent0 to be back", func() bool {
		r, err := h.LoadReport("agent0")
		return err == nil && r.Start != k.Start && r.State == agent.Idle
	})
	w.must(t, "netsky", "ask", "agent0", "hello sixth")
	reqs = model.Requests()
	mustContain(t, "the facts", reqs[len(reqs)-1].Last(), "Your program died (killed by SIGKILL) and was started again; the last lines of its pane:", "hello sixth")
	w.must(t, "netsky", "down", "--all", "--force")
}
