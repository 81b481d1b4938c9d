package courier_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

const me = agent.ID("agent1")

// A journal is what was logged.
type journal struct {
	mu   sync.Mutex
	said []string
}

func (j *journal) note(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.said = append(j.said, what)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.said, "\n")
}

// A post is a home with mailboxes, a program and the courier between them.
type post struct {
	testing.TB
	id      agent.ID
	home    home.Dir
	bus     *bus.Bus
	program *program
	options courier.Options
	man     *courier.Courier
	log     journal
	records logs
	names   int
}

// mustPost makes a post; nothing runs yet.
func mustPost(tb testing.TB) *post {
	tb.Helper()
	home := testworld.Home(tb)
	p := &post{TB: tb, id: me, home: home, bus: testworld.Bus(tb, home, agent.Root, me, agent.Clone(2), agent.Infinity, agent.Owner)}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log(p.log.String())
		}
	})
	p.open()
	return p
}

// open sets up the program and its courier.
func (p *post) open() {
	p.program = newProgram(p.bus, p.home, p.id)
	p.options = courier.Options{Agent: p.id, Start: p.program.start, Home: p.home, Bus: p.bus, Runtime: p.program, Records: &p.records, Log: p.log.note}
}

// run starts a courier; stop ends it and waits.
func (p *post) run() (stop func()) {
	p.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	events, err := courier.Events(ctx, p.home, p.bus, p.id)
	if err != nil {
		p.Fatal(err)
	}
	o := p.options
	o.Events = events
	p.man = courier.New(o)
	man, over := p.man, make(chan error, 1)
	go func() { over <- man.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-over; err != nil {
				p.Errorf("Run = %v", err)
			}
			events.Close()
		})
	}
	p.Cleanup(stop)
	return stop
}

// drop puts an envelope into the agent's inbox, past all brakes.
func (p *post) drop(e envelope.Envelope) {
	p.Helper()
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	data, err := e.MarshalJSON()
	if err != nil {
		p.Fatal(err)
	}
	p.names++
	name := fmt.Sprintf("%020d-%010d-00000000-%010d-from-%s.json", time.Now().UnixNano(), os.Getpid(), p.names, e.From)
	dir := p.home.Path(home.Mailbox(p.id), string(bus.Inbox))
	temp := filepath.Join(dir, "."+name+".tmp")
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		p.Fatal(err)
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		p.Fatal(err)
	}
}

func (p *post) count(id agent.ID, place bus.Place) int {
	p.Helper()
	n, err := p.bus.Count(id, place)
	if err != nil {
		p.Fatal(err)
	}
	return n
}

// answers lists what answers a message lies in a mailbox.
func (p *post) answers(to agent.ID, about string) (list []envelope.Envelope) {
	p.Helper()
	entries, err := p.bus.List(to, bus.Inbox, 0)
	if err != nil {
		p.Fatal(err)
	}
	for _, e := range entries {
		if e.Envelope.InReplyTo == about && e.Envelope.From == p.id {
			list = append(list, e.Envelope)
		}
	}
	return list
}

func (p *post) owed() string {
	l := courier.ReadLedger(p.home, p.id)
	if l.Err != nil {
		p.Fatal(l.Err)
	}
	var ids []string
	for _, m := range l.Messages {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

// logs is what is put on record.
type logs struct {
	mu   sync.Mutex
	list []store.AddLog
	has  map[string]string // a start's conversation
}

func (l *logs) Record(_ context.Context, ops ...store.Op) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, op := range ops {
		switch op := op.(type) {
		case store.AddLog:
			l.list = append(l.list, op)
		case store.SessionState:
			if l.has == nil {
				l.has = make(map[string]string)
			}
			l.has[op.Start] = op.Thread
		}
	}
	return nil
}

func (l *logs) conversation(start string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.has[start]
}

func (l *logs) all() []store.AddLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]store.AddLog(nil), l.list...)
}

func TestStartupText(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.options.Startup, p.options.Fresh = "you are <agent1>", true
	p.program.shut = true
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "one-0", From: agent.Root, To: me, Text: "hi"})
	testworld.Wait(p, "refused", func() bool { return strings.Contains(p.log.String(), "connection refused") })
	p.program.set(func() { p.program.shut, p.program.drop = false, 1 })
	testworld.Wait(p, "taken", func() bool { return len(p.program.effects()) == 1 })
	p.drop(envelope.Envelope{ID: "one-1", From: agent.Root, To: me, Text: "and"})
	testworld.Wait(p, "taken", func() bool { return len(p.program.effects()) == 2 })
	p.program.mu.Lock()
	defer p.program.mu.Unlock()
	head := envelope.RenderNotice("you are <agent1>") + "\n"
	if !strings.HasPrefix(p.program.texts[0], head+`<channel source="agent"`) || strings.Contains(p.program.texts[1], "netsky") {
		t.Errorf("texts: %q", p.program.texts)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		edit   func(*envelope.Envelope)
		words  string
		failed error
		reply  bool // the model answers by itself
		kind   envelope.Kind
		want   string // "": no answer
	}{
		{name: "the owner's", edit: func(e *envelope.Envelope) { e.From = agent.Owner }, words: "42", kind: envelope.KindReply, want: "42"},
		{name: "a brief", edit: func(e *envelope.Envelope) { e.Kind = envelope.KindBrief }, words: "done", kind: envelope.KindReply, want: "done"},
		{name: "asked for", edit: func(e *envelope.Envelope) { e.RequiresAck, e.Thread = true, "th" }, words: "yes", kind: envelope.KindReply, want: "yes"},
		{name: "a message", edit: func(e *envelope.Envelope) {}, words: "ok"},
		{name: "a reply", edit: func(e *envelope.Envelope) { e.Kind, e.RequiresAck = envelope.KindReply, true }, words: "ok"},
		{name: "an error", edit: func(e *envelope.Envelope) { e.Kind, e.From = envelope.KindError, agent.Owner }, words: "ok"},
		{name: "an approval's answer", edit: func(e *envelope.Envelope) { e.Kind, e.From = envelope.KindApprovalAnswer, agent.Owner }, words: "ok"},
		{name: "no words", edit: func(e *envelope.Envelope) { e.From = agent.Owner }, kind: envelope.KindError, want: "the turn ended without any text"},
		{name: "failed", edit: func(e *envelope.Envelope) { e.From = agent.Owner }, words: "You've hit your limit · resets 4pm", failed: errors.New("rate_limit"),
			kind: envelope.KindError, want: "the turn failed: rate_limit: You've hit your limit · resets 4pm"},
		{name: "a tag", edit: func(e *envelope.Envelope) { e.From = agent.Owner }, words: "</channel>", kind: envelope.KindReply, want: "&lt;/channel>"},
		{name: "too long", edit: func(e *envelope.Envelope) { e.From = agent.Owner }, words: strings.Repeat("x", 1<<20-160), kind: envelope.KindReply,
			want: fmt.Sprintf("%s\n[%d bytes more]", strings.Repeat("x", 100_000), 1<<20-160-100_000)},
		{name: "by itself", edit: func(e *envelope.Envelope) { e.From = agent.Owner }, words: "told him", reply: true, kind: envelope.KindReply, want: "by hand"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			e := envelope.Envelope{ID: "q-0", From: agent.Root, To: me, Text: "?"}
			tt.edit(&e)
			p.program.turn = func(string) (time.Duration, string, error) {
				if tt.reply { // as `netsky reply` does
					answer := envelope.Envelope{ID: "mine", From: me, To: e.From, Kind: envelope.KindReply, Text: "by hand", InReplyTo: e.ID}
					if _, err := p.bus.Send(context.Background(), answer); err != nil {
						t.Error(err)
					}
				}
				return scaled(time.Second), tt.words, tt.failed
			}
			p.program.mustStart(t)
			p.run()
			p.drop(e)
			testworld.Wait(p, "the turn on record", func() bool { return len(p.records.all()) == 1 })
			testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
			list := p.answers(e.From, "q-0")
			switch {
			case tt.want == "" && len(list) > 0 || tt.want != "" && len(list) != 1:
				t.Fatalf("%d answers: %v", len(list), list)
			case tt.want == "":
				return
			}
			a := list[0]
			if a.Kind != tt.kind || a.Text != tt.want {
				t.Errorf("answer: %s %.200q, want %s %.200q", a.Kind, a.Text, tt.kind, tt.want)
			}
			if tt.reply {
				return
			}
			if a.ID != envelope.AnswerID(me, "q-0", envelope.KindReply) || a.Hops != 1 || a.Thread != e.Thread || a.Via != "code" {
				t.Errorf("answer: %+v", a)
			}
			if implicit := string(a.Extra["implicit"]) == "true"; implicit != (a.Kind == envelope.KindReply) {
				t.Errorf("implicit: %v, as a %s", implicit, a.Kind)
			}
		})
	}
}

func TestAnsweredByTool(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	ask := make(chan struct{})
	p.program.turn = func(string) (time.Duration, string, error) { <-ask; return 0, "words", nil }
	p.program.mustStart(t)
	p.run()
	for i := range 3 {
		p.drop(envelope.Envelope{ID: fmt.Sprintf("q-%d", i), From: agent.Owner, To: me, Text: "?"})
	}
	testworld.Wait(p, "owed", func() bool { return len(p.man.Owed()) > 0 })
	if got := p.man.Owed(); got[0] != "q-0" {
		t.Errorf("Owed = %v", got)
	}
	p.man.Answered("q-0")
	p.man.Answered("nobody's")
	close(ask)
	testworld.Wait(p, "the rest answered", func() bool { return len(p.answers(agent.Owner, "q-2")) == 1 })
	testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
	if n := len(p.answers(agent.Owner, "q-0")); n != 0 {
		t.Errorf("%d implicit answers to what the model answered", n)
	}
	if n := len(p.answers(agent.Owner, "q-1")); n != 1 {
		t.Errorf("%d answers, want one", n)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.turn = func(string) (time.Duration, string, error) { return time.Hour, "", nil }
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "owed", func() bool { return len(p.man.Owed()) == 1 })
	if _, err := p.bus.Send(t.Context(), envelope.Envelope{From: agent.Owner, To: me, Kind: envelope.KindCancel, Text: "stop it"}); err != nil {
		t.Fatal(err)
	}
	testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "q-0")) == 1 })
	if a := p.answers(agent.Owner, "q-0")[0]; a.Kind != envelope.KindError || !strings.HasPrefix(a.Text, "interrupted") {
		t.Errorf("answer: %s %q", a.Kind, a.Text)
	}
	p.program.set(func() { p.program.turn = func(string) (time.Duration, string, error) { return 0, "next", nil } })
	p.drop(envelope.Envelope{ID: "q-1", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "the next answer", func() bool { return len(p.answers(agent.Owner, "q-1")) == 1 })
}

func TestRefused(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.shut = true
	p.program.mustStart(t)
	p.run()
	for i := range 3 {
		p.drop(envelope.Envelope{ID: fmt.Sprintf("a-%d", i), From: agent.Root, To: me, Text: strings.Repeat("x", 9<<10)})
	}
	p.drop(envelope.Envelope{ID: "a-3", From: agent.Root, To: me, Text: strings.Repeat("x", 50<<10)})
	testworld.Wait(p, "pointed at", func() bool { p.program.mu.Lock(); defer p.program.mu.Unlock(); return len(p.program.points) > 0 })
	var got []string
	testworld.Wait(p, "all handed over", func() bool {
		text, _, err := p.man.Waiting(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text == "" {
			return false
		}
		ids, alone := envelope.RenderedIDs(text)
		if !alone || len(text) > 20<<10 && len(ids) > 1 {
			t.Errorf("%d bytes: %v, %v", len(text), ids, alone)
		}
		got = append(got, ids...)
		if len(got) < 4 { // the last one has no witness
			if err := p.bus.Witness(me, ids...); err != nil {
				t.Fatal(err)
			}
		}
		return len(got) >= 4
	})
	if strings.Join(got, " ") != "a-0 a-1 a-2 a-3" {
		t.Errorf("handed over: %v", got)
	}
	testworld.Wait(p, "filed", func() bool { return p.count(me, bus.Delivered) == 4 })
	if text, left, err := p.man.Waiting(t.Context()); text != "" || left != 0 || err != nil {
		t.Errorf("Waiting = %q, %d, %v", text, left, err)
	}
	p.program.set(func() { p.program.shut = false })
	p.drop(envelope.Envelope{ID: "a-4", From: agent.Root, To: me, Text: "again by the socket"})
	testworld.Wait(p, "taken", func() bool { return len(p.program.effects()) == 1 })
}

// TestInboxWhilePushing: where mail is brought, the tool hands over none.
func TestInboxWhilePushing(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.dialog = true
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "a-0", From: agent.Root, To: me, Text: "hi"})
	testworld.Wait(p, "pushed", func() bool { p.program.mu.Lock(); defer p.program.mu.Unlock(); return p.program.pushes == 1 })
	p.drop(envelope.Envelope{ID: "a-1", From: agent.Root, To: me, Text: "hi"})
	if text, left, err := p.man.Waiting(t.Context()); text != "" || left != 2 || err != nil {
		t.Errorf("Waiting = %q, %d, %v", text, left, err)
	}
	p.program.set(func() { p.program.dialog = false })
	testworld.Wait(p, "filed", func() bool { return p.count(me, bus.Delivered) == 2 })
	mustOnce(t, p.program.effects(), map[string]int{"a": 2})
}

// TestSilentHooks: without hooks what the conversation holds is filed, and
// what it does not is not handed over for ever.
func TestSilentHooks(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.silent, p.program.mum = true, true // from the beginning: not even the session's start is told
	p.program.mustRun(t)
	p.run()
	p.drop(envelope.Envelope{ID: "a-0", From: agent.Owner, To: me, Text: "hi"})
	testworld.Wait(p, "filed", func() bool { return p.count(me, bus.Delivered) == 1 })
	testworld.Wait(p, "told that no answer came", func() bool { return len(p.answers(agent.Owner, "a-0")) == 1 })
	mustOnce(t, p.program.effects(), map[string]int{"a": 1})
}

func TestChannel(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.options.Startup, p.options.Fresh = "you are agent1\n</channel>", true // foreign text may be part of it
	var mu sync.Mutex
	var got []string
	deaf := false
	p.options.Notify = func(_ context.Context, text string, meta map[string]string) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, meta["from"]+" "+meta["id"]+" "+text)
		if !deaf {
			return p.bus.Witness(me, meta["id"])
		}
		return nil
	}
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "a-0", From: agent.Root, To: me, Text: "a < b"})
	testworld.Wait(p, "filed", func() bool { return p.count(me, bus.Delivered) == 1 })
	mu.Lock()
	if strings.Join(got, "|") != "agent0 a-0 you are agent1\n&lt;/channel&gt;\n\na &lt; b" {
		t.Errorf("notified: %q", got)
	}
	deaf = true
	mu.Unlock()
	p.drop(envelope.Envelope{ID: "a-1", From: agent.Root, To: me, Text: "c"})
	testworld.Wait(p, "pushed", func() bool { return len(p.program.effects()) == 1 })
	if !strings.Contains(p.log.String(), "using the other delivery path from now on") {
		t.Errorf("log: %s", p.log.String())
	}
}

// mustShut asks a start to shut down.
func (p *post) mustShut(start string) {
	p.Helper()
	e := envelope.Envelope{From: agent.Owner, To: me, Kind: envelope.KindShutdown, Start: start, Text: "the end"}
	if _, err := p.bus.Send(context.Background(), e); err != nil {
		p.Fatal(err)
	}
}

// shutting waits until a shutdown that was asked for would have been acked, if
// nothing held that up: two that are for nobody have been settled after it.
func (p *post) shutting() {
	p.Helper()
	testworld.Wait(p, "claimed", func() bool {
		entries, err := p.bus.List(me, bus.Claimed, 0)
		return err == nil && slices.ContainsFunc(entries, func(e bus.Entry) bool { return e.Envelope.Kind == envelope.KindShutdown })
	})
	for range 2 {
		before := p.count(me, bus.Delivered)
		p.mustShut("another")
		testworld.Wait(p, "settled", func() bool { return p.count(me, bus.Delivered) > before })
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	begun, over := make(chan struct{}), make(chan struct{})
	p.program.turn = func(string) (time.Duration, string, error) { close(begun); <-over; return 0, "done", nil }
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
	<-begun
	p.mustShut(p.options.Start)
	p.shutting()
	p.drop(envelope.Envelope{ID: "q-1", From: agent.Owner, To: me, Text: "too late"})
	if n := p.count(agent.Root, bus.Inbox); n != 0 {
		t.Errorf("acked during the turn")
	}
	close(over)
	testworld.Wait(p, "acked", func() bool { return p.count(agent.Root, bus.Inbox) == 1 })
	if n := len(p.answers(agent.Owner, "q-0")); n != 1 {
		t.Errorf("%d answers before the ack", n)
	}
	if _, left, err := p.man.Waiting(t.Context()); left != 1 || err != nil {
		t.Errorf("Waiting after the shutdown = %d, %v", left, err)
	}
	testworld.Wait(p, "reported as finished", func() bool { r, err := p.home.LoadReport(me); return err == nil && r.State == agent.Down })
	p.program.set(func() { p.program.state = agent.Busy }) // the state is told on
	testworld.Wait(p, "busy", func() bool { r, err := p.home.LoadReport(me); return err == nil && r.State == agent.Busy })
}

// TestShutdownAndAnswers: no shutdown is acked before the answer to what a turn
// took has been given.
func TestShutdownAndAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		set  func(p *post) (undo func()) // while the turn runs
	}{
		{"the answer can't be written", func(p *post) func() {
			inbox := p.home.Path(home.Mailbox(agent.Owner), "inbox")
			if err := errors.Join(os.Rename(inbox, inbox+"-away"), os.Symlink(inbox+"-away", inbox)); err != nil {
				p.Fatal(err)
			}
			return func() {
				if err := errors.Join(os.Remove(inbox), os.Rename(inbox+"-away", inbox)); err != nil {
					p.Fatal(err)
				}
			}
		}},
		{"the server ends", func(p *post) func() {
			p.program.set(func() { p.program.muted[agent.EventStop] = true })
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			begun, over := make(chan struct{}), make(chan struct{})
			p.program.turn = func(string) (time.Duration, string, error) { close(begun); <-over; return 0, "done", nil }
			p.program.mustStart(t)
			stop := p.run()
			p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
			<-begun
			testworld.Wait(p, "filed", func() bool { return p.count(me, bus.Delivered) == 1 })
			undo := tt.set(p)
			if undo != nil {
				close(over)
				testworld.Wait(p, "refused", func() bool { return strings.Contains(p.log.String(), "answer q-0") })
			}
			p.mustShut(p.options.Start)
			p.shutting()
			if undo == nil {
				stop()
				close(over)
			}
			if n := p.count(agent.Root, bus.Inbox); n != 0 {
				t.Errorf("acked before the answer")
			}
			if undo != nil {
				undo()
			} else {
				p.run()
			}
			testworld.Wait(p, "acked", func() bool { return p.count(agent.Root, bus.Inbox) == 1 })
			if n := len(p.answers(agent.Owner, "q-0")); n != 1 {
				t.Errorf("%d answers before the ack", n)
			}
		})
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.state = agent.Starting
	p.program.mustStart(t)
	stop := p.run()
	reported := func(want agent.State) (r agent.Report) {
		t.Helper()
		testworld.Wait(p, string(want), func() bool {
			var err error
			r, err = p.home.LoadReport(me)
			return err == nil && r.State == want
		})
		return r
	}
	if r := reported(agent.Starting); r.Start != p.options.Start || r.SinceMS == 0 || r.Evidence != "test" {
		t.Errorf("report: %+v", r)
	}
	p.drop(envelope.Envelope{ID: "a-0", From: agent.Root, To: me, Text: "hi"})
	for _, s := range []agent.State{agent.Blocked, agent.Unknown} {
		p.program.set(func() { p.program.state = s })
		reported(s)
	}
	p.program.mu.Lock()
	if p.program.pushes != 0 {
		t.Errorf("pushed while it could not take anything")
	}
	p.program.mu.Unlock()
	p.program.set(func() { p.program.state = agent.Idle })
	testworld.Wait(p, "taken", func() bool { return len(p.program.effects()) == 1 })
	since := reported(agent.Idle).SinceMS
	stop()
	p.run()
	p.drop(envelope.Envelope{ID: "a-1", From: agent.Root, To: me, Text: "hi"})
	testworld.Wait(p, "taken", func() bool { return len(p.program.effects()) == 2 })
	if r := reported(agent.Idle); r.SinceMS < since {
		t.Errorf("since %d, was %d", r.SinceMS, since)
	}
}

// TestAnotherHolds: the tools wait for a mailbox in another's hands, and say so.
func TestAnotherHolds(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.mustStart(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := p.bus.Receive(ctx, me, bus.ReceiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.run()
	testworld.Wait(p, "said", func() bool { return strings.Contains(p.log.String(), "held by another") })
	if text, _, err := p.man.Waiting(t.Context()); text != "" || err != nil {
		t.Errorf("Waiting = %q, %v", text, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	p.drop(envelope.Envelope{ID: "a-0", From: agent.Root, To: me, Text: "hi"})
	testworld.Wait(p, "taken", func() bool { return len(p.program.effects()) == 1 })
}

func TestRecords(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "a-0", From: agent.Root, To: me, Text: "hi"})
	testworld.Wait(p, "on record", func() bool { return len(p.records.all()) == 1 })
	got := p.records.all()[0]
	if got.Part != "claude" || got.Actor != me || got.About != "a-0" || got.Text != "turn completed" || got.Key == "" ||
		got.Fields["input"] != int64(3) || got.Fields["output"] != int64(4) || got.Fields["cached"] != int64(5) {
		t.Errorf("on record: %+v", got)
	}
	if n, known := got.Fields["requests"]; known {
		t.Errorf("on record: %v requests, which the program does not say", n)
	}
	if got := p.records.conversation(p.program.start); got != "conversation-1" {
		t.Errorf("the start has the conversation %q on record", got)
	}
}

// TestPromptHookLost: a prompt whose hook was killed, and that of its turn's end
// was not, is answered by what the turn said.
func TestPromptHookLost(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.mustStart(t)
	p.program.set(func() { p.program.silent, p.program.mum = true, true })
	p.run()
	p.drop(envelope.Envelope{ID: "q", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "the effect", func() bool { return len(p.program.effects()) == 1 })
	p.program.mustNote(t, agent.Event{Event: agent.EventStop, Text: "said in the end"})
	testworld.Wait(p, "the answer", func() bool { return len(p.answers(agent.Owner, "q")) > 0 })
	if list := p.answers(agent.Owner, "q"); len(list) != 1 || list[0].Text != "said in the end" {
		t.Errorf("answers: %+v", list)
	}
	testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
}

// TestEndNotTold: where the hook of a turn's end was killed, the conversation is
// asked; nobody gets what another turn said.
func TestEndNotTold(t *testing.T) {
	t.Parallel()
	all := []agent.EventKind{agent.EventSeen, agent.EventPrompt, agent.EventStop}
	for _, tt := range []struct {
		name  string
		muted []agent.EventKind
		mum   bool
		slow  bool // the conversation shows nothing when it is asked for the first time
		fails error
		next  bool // another turn begins at once, and its end is told
		kind  envelope.Kind
		want  string
	}{
		{name: "the conversation tells", muted: []agent.EventKind{agent.EventStop}, kind: envelope.KindReply, want: "said q-0"},
		{name: "nor was the prompt told", muted: all[1:], kind: envelope.KindReply, want: "said q-0"},
		{name: "nor was anything", muted: all, kind: envelope.KindReply, want: "said q-0"},
		{name: "it failed", muted: []agent.EventKind{agent.EventStopFailed}, fails: errors.New("server_error"), kind: envelope.KindError,
			want: "the turn failed: server_error: said q-0"},
		{name: "nobody tells", muted: []agent.EventKind{agent.EventStop}, mum: true, kind: envelope.KindError,
			want: "interrupted: the turn ended without an answer"},
		{name: "and the next begins", muted: []agent.EventKind{agent.EventStop}, next: true, kind: envelope.KindReply, want: "said q-0"},
		{name: "nor was the prompt, and the next begins", muted: all[1:], next: true, kind: envelope.KindReply, want: "said q-0"},
		{name: "and the next ends before the conversation is written", muted: []agent.EventKind{agent.EventStop}, slow: true, next: true,
			kind: envelope.KindReply, want: "said q-0"},
		{name: "nor was the prompt, and the next ends before the conversation is written", muted: all[1:], slow: true, next: true,
			kind: envelope.KindReply, want: "said q-0"},
		{name: "nobody tells, and the next begins", muted: []agent.EventKind{agent.EventStop}, mum: true, next: true, kind: envelope.KindError,
			want: "interrupted: the turn ended without an answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			p.program.mum, p.program.slow = tt.mum, tt.slow
			begun, over := make(chan struct{}, 1), make(chan struct{})
			p.program.turn = func(text string) (time.Duration, string, error) {
				ids, _ := envelope.RenderedIDs(text)
				if ids[0] != "q-0" {
					p.program.set(func() { clear(p.program.muted) })
					return 0, "said " + ids[0], nil
				}
				begun <- struct{}{}
				<-over
				return 0, "said q-0", tt.fails
			}
			p.program.mustStart(t)
			p.program.set(func() {
				for _, kind := range tt.muted {
					p.program.muted[kind] = true
				}
			})
			p.run()
			p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
			<-begun
			if tt.next {
				p.drop(envelope.Envelope{ID: "q-1", From: agent.Owner, To: me, Text: "?"})
				testworld.Wait(p, "the next handed over", func() (handed bool) {
					p.program.set(func() { handed = p.program.pushes == 2 })
					return handed
				})
			}
			close(over)
			testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "q-0")) > 0 })
			if tt.next {
				testworld.Wait(p, "the next answer", func() bool { return len(p.answers(agent.Owner, "q-1")) > 0 })
			}
			testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
			if list := p.answers(agent.Owner, "q-0"); len(list) != 1 || list[0].Kind != tt.kind || list[0].Text != tt.want {
				t.Errorf("answers: %+v, want a %s %q", list, tt.kind, tt.want)
			}
			if list := p.answers(agent.Owner, "q-1"); tt.next && (len(list) != 1 || list[0].Text != "said q-1") {
				t.Errorf("answers to the next: %+v", list)
			}
		})
	}
}
