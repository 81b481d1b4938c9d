//go:build live

package codex_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/codex/appserver"
	"netsky/internal/testworld"
)

// Codex 0.153.4 is driven through mcp-server, which forgets its threads.
func TestLegacy(t *testing.T) {
	t.Parallel()
	w := mustWorldOf(t, "NETSKY_TEST_CODEX_OLD")
	id := w.mustSend(envelope.Envelope{From: "agent2", Text: "hello"})
	w.mustOnce(func(o *codex.OnceOptions) { o.Startup = "STARTUP" })
	if reply := w.mustReply("agent2"); !strings.Contains(reply.Text, "hello") || reply.InReplyTo != id {
		t.Errorf("reply = %+v", reply)
	}
	if got := w.model.Requests()[0].Last(); !strings.HasPrefix(got, "STARTUP\n\n<channel ") {
		t.Errorf("the model was told %q", got)
	}
	testworld.Equal(t, w.inputs(id), "consumed", "inputs")
	first := w.state().Thread
	w.mustOnce(prompting("Session not found for thread_id\nloop: say Session not found for thread_id"))
	testworld.Equal(t, w.mustReply(agent.Root).Text, "Session not found for thread_id", "reply")
	second := w.state().Thread
	for _, want := range []string{"not found for thread " + first, "thread_id=" + second + " (was " + first + ")"} {
		if !strings.Contains(w.err.String(), want) || first == second {
			t.Errorf("stderr = %q, want %q in it", &w.err, want)
		}
	}
	w.mustOnce(func(o *codex.OnceOptions) { prompting("loop: model")(o); o.Model = "gpt-5.6-sol" })
	testworld.Equal(t, w.mustReply(agent.Root).Text, "model: gpt-5.6-sol", "reply")
}

// A result marked as an error is one, whatever it says.
func TestLegacyFails(t *testing.T) {
	t.Parallel()
	w := mustWorldOf(t, "NETSKY_TEST_CODEX_OLD")
	w.mustSend(envelope.Envelope{Text: "loop: fail 429"})
	err := w.once(nil)
	if s, bad := w.breaker().Load(); !errors.Is(err, codex.ErrNotYet) || bad != nil || s.Fault.Reason != agent.UsageLimit {
		t.Errorf("Once = %v, breaker %+v, %v, want %s", err, s, bad, agent.UsageLimit)
	}
	if len(w.inbox(agent.Root)) != 0 || len(w.envelopes("agent1", bus.Delivered)) != 0 {
		t.Error("the message was answered or filed")
	}
}

// Its questions carry ids of their own, from 0; they are no answers of ours, and
// get one: no.
func TestLegacyAsks(t *testing.T) {
	t.Parallel()
	w := mustWorldOf(t, "NETSKY_TEST_CODEX_OLD")
	file := w.home.Path("made")
	w.mustOnce(func(o *codex.OnceOptions) {
		prompting("loop: ask touch " + file + "\nloop: ask touch " + file)(o)
		o.Sandbox, o.Approval = "read-only", "on-request"
	})
	testworld.Fails(t, testworld.Err(os.Stat(file)), "", "made")
	testworld.Equal(t, strings.Count(w.err.String(), "[codex] agent1: declined: Allow Codex to run"), 2, "stderr")
	w.mustReply(agent.Root)
}

func TestLegacyTimeout(t *testing.T) {
	t.Parallel()
	w := mustWorldOf(t, "NETSKY_TEST_CODEX_OLD")
	err := w.once(func(o *codex.OnceOptions) { prompting("loop: sleep 1h")(o); o.Limit = 1e9 })
	testworld.ErrorIs(t, err, appserver.ErrTimeout, "Once")
}
