//go:build live

package codex_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/codex/appserver"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// Somebody has the agent's thread open elsewhere, in a terminal for example.
func TestOnceThreadHeld(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.mustOnce(prompting("hello"))
	w.mustReply(agent.Root)
	server := w.mustServer()
	w.mustThread(server, func(o *appserver.ThreadOptions) { o.ID = w.state().Thread })
	w.mustOnce(prompting("are you there?"))
	if !strings.HasPrefix(w.out.String(), "[codex] agent1: sent over the bus as ") {
		t.Errorf("stdout = %q", &w.out)
	}
	if !strings.Contains(w.out.String(), "another process has the thread open; the message waits in agent1's inbox, and the answer will go to agent0's") {
		t.Errorf("stdout = %q", &w.out)
	}
	list := w.inbox("agent1")
	if len(list) != 1 || list[0].Text != "are you there?" || list[0].From != agent.Root {
		t.Fatalf("agent1 has %v", list)
	}
	testworld.ErrorIs(t, w.once(nil), appserver.ErrHeld, "drain")
	server.Close()
	w.mustOnce(nil)
	if reply := w.mustReply(agent.Root); reply.InReplyTo != list[0].ID {
		t.Errorf("reply = %+v", reply)
	}
}

// Another prompt is at work: this one waits for it.
func TestOnceWaits(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	lock := testworld.Got(w.home.Lock("receiver-agent1"))(t)
	said := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		o := w.options()
		prompting("hello")(&o)
		o.Err = writer(func(p []byte) { close(said) })
		done <- codex.Once(w.ctx, o)
	}()
	<-said
	lock.Unlock()
	testworld.Equal(t, <-done, nil)
	w.mustReply(agent.Root)
}

type writer func([]byte)

func (f writer) Write(p []byte) (int, error) { f(p); return len(p), nil }

type brokenRecords struct{ err error }

func (b brokenRecords) Record(context.Context, ...store.Op) error { return b.err }

func TestOnceWithoutRecords(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	for _, tt := range []struct {
		err  error
		says int
	}{{store.ErrSpooled, 0}, {store.ErrUnrecorded, 1}} {
		w.mustOnce(func(o *codex.OnceOptions) { prompting("hello")(o); o.Records = brokenRecords{tt.err} })
		w.mustReply(agent.Root)
		testworld.Equal(t, strings.Count(w.err.String(), tt.err.Error()), tt.says, "%v: said", tt.err)
	}
	// The real thing, on a database that is none.
	testworld.Must(t, os.WriteFile(w.home.Path(home.DBFile), []byte(strings.Repeat("no database ", 1000)), 0o600))
	w.mustOnce(prompting("hello"))
	w.mustReply(agent.Root)
	if s, err := store.SpoolSize(w.home); err != nil || s.Files == 0 {
		t.Errorf("spool = %+v, %v", s, err)
	}
}

func TestOnceAnswers(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	for _, tt := range []struct {
		name string
		mail envelope.Envelope
		want string // the answer; "" is none
		kind envelope.Kind
		err  error
	}{
		{name: "wrapper", mail: envelope.Envelope{Text: "loop: say a &lt;/channel> b &lt; Channel"}, want: "a &lt;/channel> b &lt; Channel", kind: envelope.KindReply},
		{name: "nothing", mail: envelope.Envelope{Text: "loop: say"}, want: "the turn ended without any text", kind: envelope.KindError},
		{name: "no answer to answers", mail: envelope.Envelope{Text: "thanks", Kind: envelope.KindReply, InReplyTo: "x"}},
		{name: "nobody to answer", mail: envelope.Envelope{From: agent.Infinity, Text: "who are you?"}, err: bus.ErrNoMailbox},
		{name: "too long", mail: envelope.Envelope{Text: "loop: long"}, want: "[1400000 bytes more]", kind: envelope.KindReply},
	} {
		id := w.mustSend(tt.mail)
		testworld.ErrorIs(t, w.once(nil), tt.err, "%s: Once", tt.name)
		list := w.envelopes("agent1", bus.Delivered)
		if len(list) == 0 || list[len(list)-1].ID != id {
			t.Errorf("%s: not filed", tt.name)
		}
		if tt.want == "" {
			if got := w.inbox(agent.Root); len(got) != 0 {
				t.Errorf("%s: answered %v", tt.name, got)
			}
			continue
		}
		if got := w.mustReply(agent.Root); got.Kind != tt.kind || !strings.Contains(got.Text, tt.want) {
			t.Errorf("%s: %s %.200q, want %s %q", tt.name, got.Kind, got.Text, tt.kind, tt.want)
		}
	}
}

func TestOnceTakesWhatTheModelSent(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	// What stands here for the model's own `netsky channel send`.
	answer := w.home.Path("answer.json")
	id := w.mustSend(envelope.Envelope{Text: "loop: shell cp " + answer + " " + w.home.Path("channels/agent/agent0/inbox/answer.json")})
	text := `{"from":"agent1","text":"mine","kind":"reply","in_reply_to":"` + id + `","ts":"2030-01-01T00:00:00Z","id":"m1"}`
	testworld.Must(t, os.WriteFile(answer, []byte(text), 0o600))
	w.mustOnce(nil)
	if got := w.inbox(agent.Root); len(got) != 1 || got[0].ID != "m1" {
		t.Errorf("agent0 got %v, want only what the model sent", got)
	}
}
