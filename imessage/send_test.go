package imessage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/imessage"
	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
)

var _ phone.Transport = (*imessage.Transport)(nil)

func TestMain(m *testing.M) {
	if messagesim.Main() {
		return
	}
	os.Exit(m.Run())
}

const friend = "+15550100"

var direct = chat.Chat{Key: "-;" + friend, Identifier: friend, GUID: "iMessage;-;" + friend, Direct: true}

// A world is a transport with a simulated Messages.
type world struct {
	testing.TB
	*imessage.Transport
	sim    *messagesim.Sim
	script *messagesim.Script
}

func mustWorld(tb testing.TB, edit func(*imessage.Options)) *world {
	tb.Helper()
	w := &world{TB: tb, sim: messagesim.Start(tb, 15)}
	w.script = w.sim.Script(imessage.Scripts()...)
	w.open(edit)
	return w
}

// open makes a new transport, as a new process does.
func (w *world) open(edit func(*imessage.Options)) {
	if w.Transport != nil {
		w.Transport.Close()
	}
	o := imessage.Options{
		DB:  chatdb.New(chatdb.Options{Path: w.sim.Path}),
		Env: w.script.Env, Verify: 300 * time.Millisecond, Orphan: time.Millisecond,
	}
	if edit != nil {
		edit(&o)
	}
	w.Transport = imessage.New(o)
	w.Cleanup(func() { w.Transport.Close() })
}

func (w *world) send(out chat.Outgoing) chat.Receipt {
	w.Helper()
	r, err := w.Send(context.Background(), out)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// Values are arguments, whatever they are.
func TestArguments(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"-", "--version", `" & (do shell script "id") & "`, "\\\"$(id)`id`", "a\nb\r\nc", "quit application \"Messages\"\nend tell",
		"é 👩‍👩‍👧 \u202e", strings.Repeat("x", 90_000),
	} {
		w := mustWorld(t, nil)
		if r := w.send(chat.Outgoing{Chat: direct, Text: text}); r.State != chat.Sent {
			t.Errorf("%.40q: %+v", text, r)
		}
		c := w.script.Calls()[0]
		if want := []string{"-", "chat", direct.GUID, "text", text}; !slices.Equal(c.Args, want) || !c.Known {
			t.Errorf("argv %.200q, want %.200q", c.Args, want)
		}
	}
	w := mustWorld(t, nil)
	w.send(chat.Outgoing{Chat: direct, Text: "a\x00b\xff"})
	testworld.Equal(t, w.script.Calls()[0].Args[4], "ab\ufffd", "NUL and no UTF-8")
}

func TestTargets(t *testing.T) {
	t.Parallel()
	of := func(guid string) chat.Chat {
		c, _ := chat.KeyOf(guid)
		return c
	}
	group := of("iMessage;+;chat77")
	odd := of("iMessage;+;" + friend)
	group.Direct, odd.Direct = true, true // a mistake elsewhere does not make a group a person
	for _, tt := range []struct {
		chat chat.Chat
		want string // "" is an error, with nothing tried
	}{
		{of("iMessage;-;" + friend), "chat iMessage;-;+15550100, chat any;-;+15550100, participant +15550100"},
		{of("any;-;me@example.com"), "chat any;-;me@example.com, chat iMessage;-;me@example.com, participant me@example.com"},
		{of("iMessage;+;chat77"), "chat iMessage;+;chat77, chat any;+;chat77"},
		{of("any;+;chat77"), "chat any;+;chat77, chat iMessage;+;chat77"},
		{group, "chat iMessage;+;chat77, chat any;+;chat77"},
		{odd, "chat iMessage;+;+15550100, chat any;+;+15550100"},
		{of("SMS;-;" + friend), "chat SMS;-;+15550100"},
		{of("iMessage;-;chat77"), "chat iMessage;-;chat77, chat any;-;chat77"},
		{of("iMessage;-;55501"), "chat iMessage;-;55501, chat any;-;55501"},
		{chat.Chat{Key: "+;chat77", Identifier: "chat77", GUID: "chat77"}, ""},
		{chat.Chat{Key: "-;" + friend, Identifier: friend, Direct: true}, ""},
		{chat.Chat{Key: "-;+15550199", Identifier: "+15550199", GUID: direct.GUID, Direct: true}, ""},
	} {
		w := mustWorld(t, nil)
		w.script.Mode("-1728")
		_, err := w.Send(t.Context(), chat.Outgoing{Chat: tt.chat, Text: "x"})
		var got []string
		for _, c := range w.script.Calls() {
			got = append(got, c.Args[1]+" "+c.Args[2])
		}
		if s := strings.Join(got, ", "); s != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%+v: %q, %v, want %q", tt.chat, s, err, tt.want)
		}
	}
}

// A send that has begun goes on when its context ends, and one waits for the other.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.script.Mode("slow+row", "row")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan chat.Receipt)
	go func() {
		r, err := w.Send(ctx, chat.Outgoing{Chat: direct, Text: "one"})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	testworld.Wait(t, "the first call", func() bool { return len(w.script.Calls()) == 1 })
	second, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	testworld.ErrorIs(t, testworld.Err(w.Send(second, chat.Outgoing{Chat: direct, Text: "two"})), context.DeadlineExceeded, "a second send meanwhile")
	cancel()
	if r := <-done; r.State != chat.Sent {
		t.Errorf("receipt %+v", r)
	}
	testworld.Equal(t, len(w.script.Calls()), 1, "calls")
}

func TestNothingTried(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	for _, out := range []chat.Outgoing{
		{Chat: direct},
		{Chat: direct, Text: " \x00\n"},
		{Chat: direct, Text: strings.Repeat("x", 200_000)},
		{Text: "nobody"},
	} {
		if r, err := w.Send(t.Context(), out); err == nil {
			t.Errorf("%.40q: %+v", out.Text, r)
		}
	}
	w.open(func(o *imessage.Options) { o.Env = []string{"PATH=/nowhere"} })
	testworld.Fails(t, testworld.Err(w.Send(t.Context(), chat.Outgoing{Chat: direct, Text: "x"})), "osascript: not found", "without osascript")
	testworld.Equal(t, len(w.script.Calls()), 0, "calls")
	w.Close()
	testworld.Fails(t, testworld.Err(w.Send(t.Context(), chat.Outgoing{Chat: direct, Text: "x"})), "", "sent after Close")
}

// Without the database, the message goes out, and nobody claims to know what became of it.
func TestBlind(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.open(func(o *imessage.Options) { o.DB = chatdb.New(chatdb.Options{Path: w.sim.Path + ".none"}) })
	r := w.send(chat.Outgoing{Chat: direct, Text: "x"})
	if r.State != chat.Unconfirmed || !strings.Contains(r.Fact, "can't be read") {
		t.Errorf("receipt %+v", r)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	mark := testworld.Got(w.Mark(t.Context()))(t)
	out := chat.Outgoing{ID: "1", Chat: direct, Text: "Done: 3 files", Mark: mark}
	find := func(want chat.State, again bool) {
		t.Helper()
		r, err := w.Find(t.Context(), out)
		if err != nil || r.State != want || r.Again != again {
			t.Errorf("Find = %+v, %v, want %s, again %v", r, err, want, again)
		}
	}
	find(chat.Failed, true)

	// After an unconfirmed send, it is not said to be missing before it can't come any more.
	var ahead atomic.Int64
	w.open(func(o *imessage.Options) {
		o.Orphan = time.Second
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	ahead.Store(int64(time.Hour)) // the process began long ago
	w.script.Mode("-1712")
	if r := w.send(out); r.State != chat.Unconfirmed {
		t.Fatalf("receipt %+v", r)
	}
	w.sim.Insert(messagesim.Message{Text: "Done: 3 files", Join: 300 * time.Millisecond})
	find(chat.Sent, false)
	find(chat.Sent, false)

	// What an earlier process has begun may still come.
	w.open(func(o *imessage.Options) { o.Orphan = time.Second })
	out.Text = "another"
	w.sim.Insert(messagesim.Message{Text: "another", Join: 300 * time.Millisecond})
	find(chat.Sent, false)

	out.Text = "never"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	w.open(func(o *imessage.Options) { o.Orphan = time.Hour })
	if r, err := w.Find(ctx, out); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Find = %+v, %v before it can be known", r, err)
	}
	w.sim.Replace(15)
	find(chat.Unconfirmed, false)
	testworld.ErrorIs(t, testworld.Err(w.Find(t.Context(), chat.Outgoing{Chat: direct, Text: "x"})), chat.ErrCannotLook, "without a mark")
}

// Sends after one another find their own messages.
func TestSameTextTwice(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.script.Mode("row", "ok", "row")
	mark, err := w.Mark(t.Context())
	testworld.Must(t, err)
	var guids []string
	for i, want := range []chat.State{chat.Sent, chat.Unconfirmed, chat.Sent} {
		r := w.send(chat.Outgoing{ID: fmt.Sprint(i), Chat: direct, Text: "ok"})
		testworld.Equal(t, r.State, want, "send %d: %+v", i, r)
		guids = append(guids, r.GUID)
	}
	if guids[0] == guids[2] {
		t.Errorf("guids %q", guids)
	}
	taken := func(guid string) bool { return slices.Contains(guids, guid) }
	r, err := w.Find(t.Context(), chat.Outgoing{ID: "1", Chat: direct, Text: "ok", Mark: mark, Taken: taken})
	if err != nil || r.State != chat.Failed || r.GUID != "" {
		t.Errorf("Find = %+v, %v of a text whose words only others have", r, err)
	}
}
