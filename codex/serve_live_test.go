//go:build live

package codex_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/store"
)

// mustServe runs a sidecar without a terminal until the test is over.
func (w *world) mustServe(o codex.ServeOptions) (stop func() error) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- codex.Serve(ctx, o) }()
	ended := false
	stop = func() error {
		cancel()
		if ended {
			return nil
		}
		ended = true
		return <-done
	}
	w.Cleanup(func() { stop() })
	return stop
}

// mustState waits until the agent reports a state.
func (w *world) mustState(state agent.State, detail string) {
	w.Helper()
	var r agent.Report
	w.until(string(state)+" "+detail, func() bool {
		r, _ = w.home.LoadReport("agent1")
		return r.State == state && strings.Contains(r.Detail, detail)
	})
}

// mustAnswer waits for the answer to a message.
func (w *world) mustAnswer(to agent.ID, id string) (e envelope.Envelope) {
	w.Helper()
	w.until("an answer to "+id, func() bool {
		found, ok, _ := w.bus.FindAnswer(w.ctx, "", to, id, time.Time{})
		e = found.Envelope
		return ok
	})
	return e
}

func TestServe(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	stop := w.mustServe(w.serving())
	w.mustState(agent.Idle, "")
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "hello"})
	if e := w.mustAnswer(agent.Owner, id); e.Kind != envelope.KindReply || !strings.Contains(e.Text, "hello") {
		t.Errorf("answer = %+v", e)
	}
	w.mustState(agent.Idle, "")
	w.mustSend(envelope.Envelope{From: agent.Root, Kind: envelope.KindShutdown, Text: "x", Start: "start1"})
	w.mustAck()
	testworld.Equal(t, stop(), nil)
	w.mustGone()
	db := testworld.Got(store.OpenRead(w.ctx, w.home))(t)
	defer db.Close()
	list, err := db.Logs(w.ctx, store.LogFilter{About: id})
	if err != nil || len(list.Items) == 0 || list.Items[0].Fields["input"] == 0.0 {
		t.Errorf("logs: %+v, %v", list.Items, err)
	}
}

// mustAck waits for the word that a shutdown has been obeyed.
func (w *world) mustAck() (e envelope.Envelope) {
	w.Helper()
	w.until("an ack", func() bool {
		for _, e = range w.inbox(agent.Root) {
			if e.Kind == envelope.KindShutdownAck {
				return true
			}
		}
		return false
	})
	return e
}

// mustEnd checks that no process is left whose environment has this in it.
func (w *world) mustEnd(mark string) {
	w.Helper()
	w.until("the end of all processes", func() bool {
		list, err := proc.Descendants(0, mark)
		w.left = commands(list)
		return err == nil && len(list) == 0
	})
	w.left = ""
}

// mustGone checks that neither a process is left nor the socket.
func (w *world) mustGone() {
	w.Helper()
	w.mustEnd("NETSKY_HOME=" + w.home.Root())
	w.mustNoSocket()
}

func (w *world) mustNoSocket() {
	w.Helper()
	if _, err := os.Lstat(w.home.Path("run/cx-1.sock")); !os.IsNotExist(err) {
		w.Errorf("the socket is left: %v", err)
	}
}

// commands is what the processes run, for a person.
func commands(list []proc.Process) string {
	var b strings.Builder
	for _, p := range list {
		line, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(p.PID), "cmdline"))
		fmt.Fprintf(&b, "%d %s\n", p.PID, strings.ReplaceAll(string(line), "\x00", " "))
	}
	return b.String()
}

// mustOnly checks that an address got exactly one answer to each of these, and
// nothing else.
func (w *world) mustOnly(to agent.ID, ids ...string) {
	w.Helper()
	count := make(map[string]int)
	for _, e := range w.inbox(to) {
		count[e.InReplyTo]++
	}
	for _, id := range ids {
		if count[id] != 1 {
			w.Errorf("%d answers to %s", count[id], id)
		}
		delete(count, id)
	}
	if len(count) > 0 {
		w.Errorf("further messages: %v", count)
	}
}

// The server is killed while the agent is idle and in the middle of a turn.
func TestServeServerKilled(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	stop := w.mustServe(w.serving())
	w.mustState(agent.Idle, "")
	w.killServers()
	asked := w.holding("hold on")
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "hold on"})
	asked()
	w.mustState(agent.Busy, "turn")
	w.killServers()
	if e := w.mustAnswer(agent.Owner, id); !strings.Contains(e.Text, "cut off your turn") {
		t.Errorf("answer = %+v", e)
	}
	w.mustState(agent.Idle, "")
	w.mustOnly(agent.Owner, id)

	// Told to end in the middle of a turn, it leaves nothing running, and what
	// it was at is answered by the next one.
	asked = w.holding("wait here")
	id = w.mustSend(envelope.Envelope{From: agent.Owner, Text: "wait here"})
	asked()
	testworld.Equal(t, stop(), nil)
	w.mustGone()
	before := w.state().Thread
	w.model.Handle(func(q openai.Request) *openai.Reply { return &openai.Reply{Text: "at last"} })
	o := w.serving()
	o.Fresh = true
	w.mustServe(o)
	if e := w.mustAnswer(agent.Owner, id); e.Text != "at last" {
		t.Errorf("answer = %+v", e)
	}
	if after := w.state().Thread; after == before {
		t.Error("a fresh start went on in the old thread")
	}
}

func TestServeAnswers(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.mustServe(w.serving())
	unanswered := make(map[string]agent.ID)
	for _, tt := range []struct {
		name string
		e    envelope.Envelope
		want envelope.Kind // of the answer
		text string
		none bool
	}{
		{name: "owner", e: envelope.Envelope{From: agent.Owner, Text: "loop: say long <netsky-reply>short</netsky-reply>"}, want: envelope.KindReply, text: "short"},
		{name: "brief", e: envelope.Envelope{From: agent.Root, Kind: envelope.KindBrief, Text: "loop: say done"}, want: envelope.KindReply, text: "done"},
		{name: "ack wanted", e: envelope.Envelope{From: "agent2", RequiresAck: true, Text: "loop: say yes"}, want: envelope.KindReply, text: "yes"},
		{name: "plain", e: envelope.Envelope{From: "agent2", Text: "loop: say well"}, none: true},
		{name: "reply", e: envelope.Envelope{From: agent.Owner, Kind: envelope.KindReply, InReplyTo: "x", Text: "thanks"}, none: true},
		{name: "error", e: envelope.Envelope{From: "agent2", Kind: envelope.KindError, InReplyTo: "x", RequiresAck: true, Text: "oh"}, none: true},
		{name: "failed", e: envelope.Envelope{From: agent.Owner, Text: "loop: fail 400"}, want: envelope.KindError, text: "out of order"},
		{name: "quiet", e: envelope.Envelope{From: agent.Owner, Text: "loop: say"}, want: envelope.KindError, text: "without any text"},
	} {
		id := w.mustSend(tt.e)
		if tt.none {
			w.until(tt.name+" on record", func() bool { return strings.HasSuffix(w.inputs(id), "consumed") })
			unanswered[id] = tt.e.From
			continue
		}
		e := w.mustAnswer(tt.e.From, id)
		if e.Kind != tt.want || !strings.Contains(e.Text, tt.text) || tt.name == "owner" && e.Text != tt.text {
			t.Errorf("%s: %s %q, want %s %q", tt.name, e.Kind, e.Text, tt.want, tt.text)
		}
		if tt.name == "failed" {
			w.mustState(agent.Idle, "last turn failed: ")
		}
	}
	for id, from := range unanswered { // others' turns have ended since
		if e, ok, _ := w.bus.FindAnswer(w.ctx, "", from, id, time.Time{}); ok {
			t.Errorf("answered: %+v", e.Envelope)
		}
	}
	// One that the hops stop is given up at once, and whoever waits for it hears why,
	// once: the next is not held up.
	deep := w.mustSend(envelope.Envelope{From: "agent2", RequiresAck: true, Hops: 16, Text: "loop: say deep"})
	next := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "loop: say next"})
	if e := w.mustAnswer("agent2", deep); e.Kind != envelope.KindError || !strings.Contains(e.Text, "17 hops") {
		t.Errorf("too many hops: %s %q", e.Kind, e.Text)
	}
	began := time.Now()
	if e := w.mustAnswer(agent.Owner, next); e.Text != "next" || time.Since(began) > 20*time.Second {
		t.Errorf("next: %q after %v", e.Text, time.Since(began))
	}
	told := 0
	for _, e := range w.inbox("agent2") {
		if e.InReplyTo == deep {
			told++
		}
	}
	testworld.Equal(t, told, 1, "agent2 was told")
}

// A cancel ends the running turn, and its sender is told.
func TestServeCancel(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.mustServe(w.serving())
	asked := w.holding("hold on")
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "hold on"})
	asked()
	w.mustSend(envelope.Envelope{From: agent.Root, Kind: envelope.KindCancel, Text: "stop"})
	if e := w.mustAnswer(agent.Owner, id); e.Kind != envelope.KindError || !strings.Contains(e.Text, "interrupted") {
		t.Errorf("answer = %s %q", e.Kind, e.Text)
	}
	w.mustState(agent.Idle, "interrupted")
}

// A shutdown is acked when the turn is over.
func TestServeShutdown(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	ended := make(chan error, 1)
	go func() { ended <- codex.Serve(w.ctx, w.serving()) }()
	hold := make(chan struct{})
	w.model.Handle(func(q openai.Request) *openai.Reply {
		if !strings.Contains(q.Last(), "hold on") {
			return nil
		}
		return &openai.Reply{Hold: hold, Text: "held"}
	})
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "hold on"})
	w.mustState(agent.Busy, "turn")
	w.mustSend(envelope.Envelope{From: agent.Root, Kind: envelope.KindShutdown, Text: "x", Start: "start1"})
	w.until("the shutdown taken", func() bool { n, err := w.bus.Count("agent1", bus.Inbox); return err == nil && n == 0 })
	if n, _ := w.bus.Count(agent.Root, bus.Inbox); n != 0 {
		t.Error("acked in the middle of a turn")
	}
	close(hold)
	testworld.Equal(t, w.mustAnswer(agent.Owner, id).Text, "held", "answer")
	w.mustAck()
	select {
	case err := <-ended:
		testworld.Equal(t, err, nil)
	case <-w.ctx.Done():
		t.Fatal("it did not end")
	}
	w.mustGone()
}

// Without a login nothing is taken; with one it goes on by itself.
func TestServeBlocked(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	config := w.home.Root() + ".codex/config.toml"
	text := testworld.Got(os.ReadFile(config))(t)
	good := strings.NewReplacer(`env_key = "LOOPMODEL_KEY"`, "", "requires_openai_auth = false", "requires_openai_auth = true").Replace(string(text))
	testworld.Must(t, os.WriteFile(config, []byte(good), 0o600))
	w.mustServe(w.serving())
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "hello"})
	w.mustFault(agent.Login, "codex login")
	if n, err := w.bus.Count("agent1", bus.Inbox); n != 1 || err != nil {
		t.Errorf("%d messages wait, want 1 (%v)", n, err)
	}
	w.mustLogin("sk-one")
	w.mustAnswer(agent.Owner, id)
	w.mustState(agent.Idle, "")

	// A key that is refused: the message waits in the thread.
	refuse := true
	var mu sync.Mutex
	w.model.Handle(func(q openai.Request) *openai.Reply {
		mu.Lock()
		defer mu.Unlock()
		if !refuse {
			return nil
		}
		return openai.Fail(401)
	})
	id = w.mustSend(envelope.Envelope{From: agent.Owner, Text: "again"})
	w.mustFault(agent.Login, "401")
	mu.Lock()
	refuse = false
	mu.Unlock()
	w.mustLogin("sk-another")
	if e := w.mustAnswer(agent.Owner, id); e.Kind != envelope.KindReply || !strings.Contains(e.Text, "again") {
		t.Errorf("answer = %+v", e)
	}
	w.mustState(agent.Idle, "")
}

// mustFault waits until the agent reports that it is blocked for a reason.
func (w *world) mustFault(reason agent.Reason, text string) (f agent.Fault) {
	w.Helper()
	w.until("blocked: "+string(reason), func() bool {
		r, err := w.home.LoadReport("agent1")
		f = r.Fault
		return err == nil && r.State == agent.Blocked && f.Reason == reason && strings.Contains(f.Text, text)
	})
	return f
}

// A message whose turn fails of a limit is no answered message: it is held, and so is the
// next, and at the reset both are answered, each once and from the model.
func TestServeHeld(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	// It is counted from the first request, however long the start took.
	reset := sync.OnceValue(func() time.Time { return time.Now().Add(15 * time.Second).Truncate(time.Second) })
	w.model.Handle(func(q openai.Request) *openai.Reply {
		if time.Now().After(reset()) {
			return nil
		}
		r := openai.Fail(429)
		r.Header["x-codex-primary-reset-at"] = fmt.Sprint(reset().Unix())
		return r
	})
	w.mustServe(w.serving())
	first := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "the first task"})
	f := w.mustFault(agent.UsageLimit, "usage limit")
	if d := f.Until().Sub(reset()); d < 0 || d > 3*time.Second || f.Account != w.account() { // one agent tries soon after it
		t.Errorf("fault %+v, want until %v of %s", f, reset(), w.account())
	}
	second := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "the second task"})
	for id, text := range map[string]string{first: "the first task", second: "the second task"} {
		if e := w.mustAnswer(agent.Owner, id); e.Kind != envelope.KindReply || !strings.Contains(e.Text, text) {
			t.Errorf("answer to %s = %s %q", text, e.Kind, e.Text)
		}
	}
	testworld.Equal(t, len(w.model.Requests()), 3, "requests")
	w.mustState(agent.Idle, "")
	w.mustOnly(agent.Owner, first, second)
}

// mustLogin is what a person does elsewhere.
func (w *world) mustLogin(key string) {
	w.Helper()
	cmd := exec.CommandContext(w.ctx, w.program, "login", "--with-api-key")
	cmd.Env, cmd.Stdin = w.env, strings.NewReader(key+"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
}

// A model that has answered by itself is not answered for.
func TestServeOwnAnswer(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.mustServe(w.serving())
	hold := make(chan struct{})
	w.model.Handle(func(q openai.Request) *openai.Reply {
		if !strings.Contains(q.Last(), "hold on") {
			return nil
		}
		return &openai.Reply{Hold: hold, Text: "these go to nobody"}
	})
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "hold on"})
	w.mustState(agent.Busy, "turn")
	w.mustSend(envelope.Envelope{From: "agent1", To: agent.Owner, Kind: envelope.KindReply, InReplyTo: id, Text: "mine"})
	close(hold)
	last := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "next"})
	w.mustAnswer(agent.Owner, last)
	testworld.Equal(t, w.mustAnswer(agent.Owner, id).Text, "mine", "answer")
	w.mustOnly(agent.Owner, id, last)
}

// A turn over the limit is interrupted, and whoever waits for it is told.
func TestServeLimit(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	o := w.serving()
	o.Limit = 5 * time.Second // for the second turn, which must end before
	w.mustServe(o)
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "loop: sleep 1h"})
	if e := w.mustAnswer(agent.Owner, id); e.Kind != envelope.KindError || !strings.Contains(e.Text, "the turn ran too long: over 5s") {
		t.Errorf("answer = %s %q", e.Kind, e.Text)
	}
	w.mustState(agent.Idle, "last turn interrupted: ")
	next := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "loop: say next"})
	testworld.Equal(t, w.mustAnswer(agent.Owner, next).Text, "next", "answer")
}

// What an earlier version had in hand, filed and unanswered, is answered by this
// one: it is given to the model again, as the thread does not have it.
func TestServeKept(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	stop := w.mustServe(w.serving())
	w.mustAnswer(agent.Owner, w.mustSend(envelope.Envelope{From: agent.Owner, Text: "first"}))
	testworld.Must(t, stop())
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "loop: say kept"})
	r := testworld.Got(w.bus.Receive(w.ctx, "agent1", bus.ReceiveOptions{}))(t)
	d := testworld.Got(r.Next(w.ctx))(t)
	testworld.Must(t, d.Confirm())
	r.Close()
	e := testworld.Got(json.Marshal(d.Envelope()))(t)
	state := fmt.Sprintf(`{"thread_id":%q,"started":true,"message":%q,"keep":{"envelope":%s,"text":"x"}}`, w.state().Thread, id, e)
	testworld.Must(t, w.home.WriteFile(codex.StateFile("agent1"), []byte(state), false))
	w.mustServe(w.serving())
	if e := w.mustAnswer(agent.Owner, id); !strings.Contains(e.Text, "kept") {
		t.Errorf("answer = %+v", e)
	}
}
