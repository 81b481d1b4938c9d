//go:build live

package codex_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/codex/appserver"
	"netsky/cost/breaker"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
	"netsky/store"
)

func TestOnceDrains(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	id := w.mustSend(envelope.Envelope{From: "agent2", Text: "hello\nloop: say hidden <netsky-reply> for you </netsky-reply> hidden", Thread: "t1"})
	w.mustOnce(nil)
	reply := w.mustReply("agent2")
	if reply.From != "agent1" || reply.InReplyTo != id || reply.Kind != envelope.KindReply || reply.Text != "for you" || reply.Thread != "t1" || reply.Hops != 1 {
		t.Errorf("reply = %+v", reply)
	}
	line := regexp.MustCompile(`^\[codex\] agent1: delivered via codex thread [0-9a-f-]{36} \(7 bytes reply\)\n$`)
	if !line.MatchString(w.out.String()) {
		t.Errorf("stdout = %q", &w.out)
	}
	if got := w.envelopes("agent1", bus.Delivered); len(got) != 1 || got[0].ID != id {
		t.Errorf("delivered = %v, want only %s", got, id)
	}
	testworld.Equal(t, w.inputs(id), "consumed", "inputs")
	last := w.model.Requests()[0]
	testworld.Contains(t, last.Last(), `<channel source="agent" chat_id="agent2" from="agent2"`, "the model was told")
}

func TestOncePrompts(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	terminal := func(text string) func(*codex.OnceOptions) {
		return func(o *codex.OnceOptions) { prompting(text)(o); o.Terminal = true; o.Startup = "STARTUP" }
	}
	w.mustOnce(terminal("loop: say one\x1b[31m"))
	reply := w.mustReply(agent.Root)
	if reply.Text == "" || reply.From != "agent1" {
		t.Errorf("reply = %+v", reply)
	}
	db := testworld.Got(store.OpenRead(t.Context(), w.home))(t)
	defer db.Close()
	if m, err := db.Message(t.Context(), reply.InReplyTo); err != nil || m.Text != "loop: say one\x1b[31m" || m.From != agent.Root || m.To != "agent1" {
		t.Errorf("the prompt on record is %+v, %v", m, err)
	}
	first := w.state()
	// A thread resumes in a new process; the startup text stands only in front
	// of its first message.
	w.mustOnce(terminal("loop: users"))
	testworld.Equal(t, w.mustReply(agent.Root).Text, "users: 2", "reply")
	if second := w.state(); second.Thread != first.Thread {
		t.Errorf("thread %s, then %s", first.Thread, second.Thread)
	}
	testworld.Equal(t, w.said("STARTUP"), 1, "the startup text was said")
	if !strings.HasPrefix(w.out.String(), "users: 2\n[codex] agent1: delivered") {
		t.Errorf("stdout = %q, want the answer before the last line", &w.out)
	}
	w.mustOnce(func(o *codex.OnceOptions) { terminal("loop: users")(o); o.Fresh = true })
	testworld.Equal(t, w.mustReply(agent.Root).Text, "users: 1", "reply")
}

func TestOnceQuarantines(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	inbox := w.home.Path("channels/agent/agent1/inbox")
	testworld.Must(t, os.WriteFile(inbox+"/0-bad.json", []byte("{not json"), 0o600))
	err := w.once(nil)
	if !errors.Is(err, codex.ErrEmpty) {
		t.Fatalf("Once with a bad file = %v, want %v", err, codex.ErrEmpty)
	}
	if list := w.envelopes("agent1", bus.Poison); len(list) != 1 || !strings.Contains(w.err.String(), "0-bad.json") {
		t.Errorf("%d in poison, stderr %q", len(list), &w.err)
	}
}

func TestOnceModel(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	for _, tt := range []struct{ name, flag, env, config, want string }{
		{"none", "", "", "", "gpt-5.5"},
		{"configured", "", "", "gpt-5.6-sol", "gpt-5.6-sol"},
		{"environment", "", "gpt-5.6-luna", "gpt-5.6-sol", "gpt-5.6-luna"},
		{"flag", "gpt-5.6-terra", "gpt-5.6-luna", "gpt-5.6-sol", "gpt-5.6-terra"},
		{"kept", "", "", "", "gpt-5.6-terra"},
	} {
		w.mustOnce(func(o *codex.OnceOptions) {
			prompting("loop: model")(o)
			o.Model, o.ConfigModel = tt.flag, tt.config
			o.Env = append(o.Env, "AGENT_CODEX_MODEL="+tt.env)
		})
		if got := w.mustReply(agent.Root).Text; got != "model: "+tt.want {
			t.Errorf("%s: %q, want %s", tt.name, got, tt.want)
		}
		testworld.Equal(t, w.state().Model, tt.want, "%s: model on file", tt.name)
	}
}

func TestOnceStateUnreadable(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	testworld.Must(t, w.home.WriteFile(codex.StateFile("agent1"), []byte(`{"thread_id": "x`), false))
	w.mustOnce(prompting("hello"))
	testworld.Contains(t, w.err.String(), "unreadable", "stderr")
	list, err := os.ReadDir(w.home.Path("state/codex"))
	if err != nil || len(list) != 2 {
		t.Errorf("state/codex holds %v (%v), want the new file and the old one", list, err)
	}
	w.state()
}

func TestOnceThreadGone(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	const gone = "01a1f973-18d2-7131-9770-00e3635cf3d7"
	testworld.Must(t, w.home.WriteFile(codex.StateFile("agent1"), []byte(`{"thread_id":"`+gone+`","started":true}`), false))
	id := w.mustSend(envelope.Envelope{Text: "hello"})
	w.mustOnce(nil)
	testworld.Equal(t, w.inputs(id), "cancelled consumed", "inputs")
	now := w.state().Thread
	for _, want := range []string{
		"[codex] agent1: codex session not found for thread " + gone + "; starting fresh thread\n",
		"[codex] agent1: new codex thread_id=" + now + " (was " + gone + ")\n",
	} {
		if !strings.Contains(w.err.String(), want) {
			t.Errorf("stderr = %q, want %q in it", &w.err, want)
		}
	}
}

func TestOnceFailsAndIsGoneOnWith(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		order string
		want  agent.Reason
		text  string
	}{
		{"fail 500", agent.Overloaded, "agent1: not yet: vendor overloaded: We"},
		{"fail 429", agent.UsageLimit, "agent1: not yet: usage limit until "},
		{"fail 401", agent.Login, "agent1: not yet: not logged in: unexpected status 401"},
	} {
		t.Run(tt.order, func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t)
			id := w.mustSend(envelope.Envelope{Text: "the very task\nloop: " + tt.order})
			err := w.once(nil)
			if !errors.Is(err, codex.ErrNotYet) || !strings.HasPrefix(err.Error(), tt.text) || !strings.HasSuffix(err.Error(), "; the message stays") {
				t.Fatalf("Once = %v, want %s", err, tt.text)
			}
			b := w.breaker()
			s, err := b.Load()
			if err != nil || !s.Tripped() || s.Fault.Reason != tt.want || s.By != "agent1" || s.Account != w.account() {
				t.Errorf("breaker = %+v, %v", s, err)
			}
			if tt.want == agent.UsageLimit && time.Until(s.Fault.Until()) < 50*time.Minute {
				t.Errorf("until %v, want in an hour", s.Fault.Until())
			}
			// While it is tripped, neither a message nor a prompt reaches the model.
			for _, edit := range []func(*codex.OnceOptions){nil, prompting("hello")} {
				testworld.ErrorIs(t, w.once(edit), codex.ErrNotYet, "Once")
			}
			testworld.Equal(t, len(w.model.Requests()), 1, "requests")
			testworld.Equal(t, len(w.envelopes("agent1", bus.Delivered)), 0, "the message was filed")
			if got := w.inbox(agent.Root); len(got) != 0 {
				t.Errorf("agent0 got %v", got)
			}
			// Once the owner has acted, it is tried again: the message itself, not a word about it.
			testworld.Got(b.Retry(w.ctx))(t)
			w.model.Handle(func(q openai.Request) *openai.Reply { return &openai.Reply{Text: "done"} })
			w.mustOnce(nil)
			if reply := w.mustReply(agent.Root); reply.InReplyTo != id || reply.Text != "done" {
				t.Errorf("reply = %+v", reply)
			}
			requests := w.model.Requests()
			if last := requests[len(requests)-1].Last(); !strings.Contains(last, "the very task") || !strings.Contains(last, "failed before you answered it") {
				t.Errorf("the model was told %q", last)
			}
			if s, err := b.Load(); err != nil || s.Tripped() {
				t.Errorf("after the answer: %+v, %v", s, err)
			}
		})
	}
}

// account is that of the world's Codex.
func (w *world) account() string {
	name, _ := new(codex.Runtime).Account(agent.Launch{Env: w.env})
	return name
}

func (w *world) breaker() breaker.Breaker { return breaker.Of(w.home, w.account()) }

func TestOnceUsesTheAnswerThatIsThere(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	id := w.mustSend(envelope.Envelope{Text: "count me\nloop: users"})
	// Another process brings the message through its turn, and dies.
	s := testworld.Got(codex.NewSession(codex.SessionOptions{
		Home: w.home, Agent: "agent1", Connect: w.connect,
		Thread: appserver.ThreadOptions{Dir: w.dir, Sandbox: "danger-full-access", Approval: "never"},
	}))(t)
	testworld.Got(s.Deliver(w.ctx, codex.Input{ID: id, Text: "count me\nloop: users"}))(t)
	s.Close()
	w.mustOnce(nil)
	if reply := w.mustReply(agent.Root); reply.Text != "users: 1" || reply.InReplyTo != id {
		t.Errorf("reply = %+v", reply)
	}
	testworld.Equal(t, len(w.model.Requests()), 1, "the model was asked")
}

// Without a network Codex would try again for ever.
func TestOnceOffline(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	config := w.home.Root() + ".codex/config.toml"
	text := testworld.Got(os.ReadFile(config))(t)
	const line = "unbounded_connection_retries = "
	testworld.Must(t, os.WriteFile(config, []byte(strings.Replace(string(text), line+"false", line+"true", 1)), 0o600))
	w.model.Close()
	err := w.once(prompting("hello"))
	if !errors.Is(err, codex.ErrNotYet) || !strings.Contains(err.Error(), agent.Network.Text()) {
		t.Errorf("Once = %v, want %s", err, agent.Network.Text())
	}
}
