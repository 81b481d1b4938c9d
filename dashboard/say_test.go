package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/internal/testworld"
	"netsky/store"
)

func (w *world) say(tb testing.TB, body string) answer {
	tb.Helper()
	return mustAnswer(tb, w.request(tb, "POST", "/api/user-message", body))
}

// The owner's message lies in the inbox when the answer comes, though no agent
// is up.
func TestSay(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	a := w.say(t, `{"to":"agent0","text":"line 1\nline 2 <b> ✓"}`)
	if a.status != 202 {
		t.Fatalf("status = %d: %s", a.status, a.body)
	}
	var said dashboard.Said
	testworld.Must(t, json.Unmarshal([]byte(a.body), &said))
	list := w.inbox(t, "agent0")
	if len(list) != 1 {
		t.Fatalf("%d messages in the inbox", len(list))
	}
	e := list[0].Envelope
	if e.ID != said.ID || e.From != agent.Owner || e.To != "agent0" || e.Via != "web" || e.Text != "line 1\nline 2 <b> ✓" || e.Kind != "" {
		t.Errorf("envelope = %+v", e)
	}
	if said.To != "agent0" || said.State != "queued" || said.URL != "/api/messages/"+said.ID || a.header.Get("Location") != said.URL {
		t.Errorf("said = %+v, location %q", said, a.header.Get("Location"))
	}
}

// Whatever the owner says arrives as he said it, or is refused and nothing arrives; and
// the answer is inert.
func TestSayHostile(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	sent := 0
	for name, text := range testworld.Files(t, "web") {
		a := w.say(t, string(raw(t, map[string]string{"to": "agent0", "text": text})))
		checkInert(t, name, a.body)
		list := w.inbox(t, "agent0")
		switch {
		case a.status == 202:
			if sent++; len(list) != sent || !slices.ContainsFunc(list, func(e bus.Entry) bool { return e.Envelope.Text == text }) {
				t.Errorf("%s: %q is not in the inbox", name, text)
			}
		case a.status < 400 || a.status >= 500 || len(list) != sent || !strings.Contains(text, "\x00"):
			t.Errorf("%s: %d %s, %d messages", name, a.status, a.body, len(list))
		}
	}
}

// The story of a message goes on where the answer points: queued, delivered,
// answered.
func TestSayIsFollowed(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	var said dashboard.Said
	testworld.Must(t, json.Unmarshal([]byte(w.say(t, `{"to":"agent0","text":"hi"}`).body), &said))
	w.apply(t, store.UpsertMessage{ID: said.ID, From: "owner", To: "agent0", Text: "hi", Via: "web"})
	for _, state := range []store.DeliveryState{store.Queued, store.Delivered, store.Answered} {
		if state == store.Answered {
			w.apply(t, store.UpsertMessage{ID: "r-1", From: "agent0", To: "owner", Kind: "reply", Text: "hello", InReplyTo: said.ID})
		} else {
			w.apply(t, store.UpsertDelivery{Message: said.ID, Target: "agent0", State: state})
		}
		l := mustGet[store.List[store.Delivery]](t, w, "/api/deliveries/"+said.ID)
		if len(l.Items) != 1 || l.Items[0].State != state {
			t.Errorf("deliveries = %+v, want %s", l.Items, state)
		}
	}
	if m := mustGet[store.Message](t, w, said.URL); m.Text != "hi" || m.Via != "web" {
		t.Errorf("message = %+v", m)
	}
}

func TestSayRefuses(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	for _, tt := range []struct {
		name, body string
		want       int
		why        string
	}{
		{"empty text", `{"to":"agent0","text":""}`, 400, "text: empty"},
		{"blank text", `{"to":"agent0","text":" \n\t"}`, 400, "text: empty"},
		{"no text", `{"to":"agent0"}`, 400, "text: empty"},
		{"no recipient", `{"text":"x"}`, 400, "not an agent"},
		{"the owner", `{"to":"owner","text":"x"}`, 400, "not an agent"},
		{"no name", `{"to":"agent01","text":"x"}`, 400, "not an agent"},
		{"a path", `{"to":"../agent0","text":"x"}`, 400, "not an agent"},
		{"a name with more", `{"to":"agent0\n","text":"x"}`, 400, "not an agent"},
		{"full-width", `{"to":"agent１","text":"x"}`, 400, "not an agent"},
		{"nobody", `{"to":"agent7","text":"x"}`, 404, "never been started"},
		{"nothing", ``, 400, "not a JSON object"},
		{"no object", `["agent0","x"]`, 400, "not a JSON object"},
		{"null", `null`, 400, "not a JSON object"},
		{"half", `{"to":"agent0","text":"x"`, 400, "not a JSON object"},
		{"more behind it", `{"to":"agent0","text":"x"}{}`, 400, "unexpected data"},
		{"garbage behind it", `{"to":"agent0","text":"x"} x`, 400, "unexpected data"},
		{"twice", `{"to":"agent1","to":"agent0","text":"x"}`, 400, "to: given more than once"},
		{"another case", `{"TO":"agent0","text":"x"}`, 400, "unknown field"},
		{"a sender", `{"to":"agent0","text":"x","from":"agent0"}`, 400, "unknown field"},
		{"a kind", `{"to":"agent0","text":"x","kind":"shutdown"}`, 400, "unknown field"},
		{"a number", `{"to":"agent0","text":5}`, 400, "text: not a string"},
		{"an object", `{"to":"agent0","text":{"a":"b"}}`, 400, "text: not a string"},
		{"a null", `{"to":"agent0","text":null}`, 400, "text: not a string"},
		{"a NUL", `{"to":"agent0","text":"a\u0000b"}`, 400, "not sent"},
		{"broken UTF-8", "{\"to\":\"agent0\",\"text\":\"\xff\"}", 400, "UTF-8"},
		{"a wrapper", `{"to":"agent0","text":"</channel>"}`, 400, "not sent"},
		{"an id with a path", `{"to":"agent0","text":"x","id":"../x"}`, 400, "not sent"},
		{"an id too long", `{"to":"agent0","text":"x","id":"` + strings.Repeat("x", 129) + `"}`, 400, "not sent"},
		{"over-long", `{"to":"agent0","text":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "larger than 65536"},
		{"deep", `{"to":` + strings.Repeat("[", 20000), 400, "to: not a string"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := w.request(t, "POST", "/api/user-message", tt.body)
			r.Header.Set("Content-Type", "application/json")
			a := mustAnswer(t, r)
			var p access.Problem
			if json.Unmarshal([]byte(a.body), &p) != nil || a.status != tt.want || p.Status != tt.want || !strings.Contains(p.Detail, tt.why) {
				t.Errorf("%d %s, want %d, %q", a.status, a.body, tt.want, tt.why)
			}
			testworld.Equal(t, a.header.Get("Content-Type"), "application/problem+json", "content type")
		})
	}
	testworld.Equal(t, len(w.inbox(t, "agent0")), 0, "messages were sent")
}

// The longest message that fits is sent.
func TestSayLongest(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	head, tail := `{"to":"agent0","text":"`, `"}`
	body := head + strings.Repeat("x", 64<<10-len(head)-len(tail)) + tail
	if a := w.say(t, body); a.status != 202 {
		t.Errorf("%d bytes: %d %s", len(body), a.status, a.body)
	}
	testworld.Equal(t, w.say(t, body+" ").status, 413, "%d bytes", len(body)+1)
}

// A message said again under its id has one effect; another one under that id
// is refused, also by a later server.
func TestSayTwice(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	const body = `{"to":"agent0","text":"once","id":"my-1"}`
	var each sync.WaitGroup
	for range 8 {
		each.Go(func() {
			if a := w.say(t, body); a.status != 202 || !strings.Contains(a.body, `"my-1"`) {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	each.Wait()
	other := `{"to":"agent0","text":"twice","id":"my-1"}`
	if a := w.say(t, other); a.status != 409 {
		t.Errorf("another message: %d %s", a.status, a.body)
	}
	w.apply(t, store.UpsertMessage{ID: "my-1", From: "owner", To: "agent0", Text: "once"})
	w.stop()
	w.serve(t, dashboard.Options{
		Home: w.home, Records: func() (dashboard.Reader, error) { return w.db, nil }, Agents: w.agents, Bus: w.bus, Token: w.token,
	})
	if a := w.say(t, other); a.status != 409 {
		t.Errorf("another message, after a restart: %d %s", a.status, a.body)
	}
	if a := w.say(t, body); a.status != 202 {
		t.Errorf("the same, after a restart: %d %s", a.status, a.body)
	}
	testworld.Equal(t, len(w.inbox(t, "agent0")), 1, "messages were sent")
}

// A failingBus sends nothing while its disk is full.
type failingBus struct {
	*bus.Bus
	full *atomic.Bool
}

func (b failingBus) Send(ctx context.Context, e envelope.Envelope) (bus.Receipt, error) {
	if b.full.Load() {
		return bus.Receipt{ID: e.ID}, errors.New("disk full")
	}
	return b.Bus.Send(ctx, e)
}

// What could not be sent is not said to have been, and may be said again.
func TestSayFails(t *testing.T) {
	t.Parallel()
	var fail atomic.Bool
	fail.Store(true)
	w := mustWorld(t, func(o *dashboard.Options) {
		o.Records = func() (dashboard.Reader, error) { return nil, errors.New("no database") }
		o.Bus = failingBus{o.Bus.(*bus.Bus), &fail}
	})
	const body = `{"to":"agent0","text":"x","id":"my-2"}`
	if a := w.say(t, body); a.status != 500 || !strings.Contains(a.body, "disk full") {
		t.Errorf("%d %s", a.status, a.body)
	}
	fail.Store(false)
	if a := w.say(t, body); a.status != 202 || len(w.inbox(t, "agent0")) != 1 {
		t.Errorf("again: %d %s", a.status, a.body)
	}
}

// A reply goes into the thread of what it answers: as a reply, or, where that was
// an agent's own reply, as the next message. Only mail of that agent's to the
// owner can be answered.
func TestSayReply(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.apply(t,
		store.UpsertMessage{ID: "q", From: "agent0", To: "owner", Text: "which port?", Thread: "th", Hops: 2},
		store.UpsertMessage{ID: "r", From: "agent0", To: "owner", Kind: "reply", Text: "done", Thread: "th", Hops: 3},
		store.UpsertMessage{ID: "x", From: "agent0", To: "agent1", Text: "not yours"})
	for _, tt := range []struct {
		to, about string
		want      int
		kind      envelope.Kind
	}{
		{"agent0", "q", 202, envelope.KindReply}, {"agent0", "r", 202, ""},
		{"agent0", "x", 400, ""}, {"agent1", "q", 400, ""}, {"agent0", "nothing", 400, ""}, {"agent0", "../x", 400, ""},
	} {
		before := len(w.inbox(t, "agent0"))
		a := mustAnswer(t, w.request(t, "POST", "/api/user-message", `{"to":"`+tt.to+`","text":"7717","in_reply_to":"`+tt.about+`"}`))
		list := w.inbox(t, "agent0")
		if a.status != tt.want || (len(list) > before) != (tt.want == 202) {
			t.Errorf("%s to %s: %d %s", tt.about, tt.to, a.status, a.body)
			continue
		}
		if tt.want != 202 {
			continue
		}
		if e := list[len(list)-1].Envelope; e.InReplyTo != tt.about || e.Thread != "th" || e.Kind != tt.kind || e.From != agent.Owner {
			t.Errorf("%s: sent %+v", tt.about, e)
		}
	}
	// The same by a form.
	f := url.Values{"to": {"agent0"}, "text": {"by a form"}, "id": {"web-9"}, "in_reply_to": {"q"}}
	testworld.Equal(t, w.form(t, f, nil).status, 303, "form")
	list := w.inbox(t, "agent0")
	if e := list[len(list)-1].Envelope; e.InReplyTo != "q" || e.Kind != envelope.KindReply || e.ID != "web-9" {
		t.Errorf("the form sent %+v", e)
	}
	f.Set("in_reply_to", "x")
	if a := w.form(t, f, nil); a.status != 400 || !strings.Contains(a.body, "by a form</textarea>") || !strings.Contains(a.body, `name="in_reply_to" value="x"`) {
		t.Errorf("a wrong one: %d, or the words are gone", a.status)
	}
}

// What needs the owner is told in words that hold nothing of what agents wrote.
func TestNeeds(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	testworld.Got(w.bus.Send(t.Context(), envelope.Envelope{From: "agent0", To: agent.Owner, Text: "a secret"}))(t)
	a := w.get(t, "/api/needs")
	v := mustGet[dashboard.Needs](t, w, "/api/needs")
	if v.Headline != "agent2 asks for permission, agent3 is dead" || len(v.Items) != 2 || v.Items[1].Title != "agent3 is dead" || v.Items[0].Kind != "permission" || len(v.Unread) != 1 || v.Unread[0].Title != "agent0 wrote to you" {
		t.Errorf("needs: %+v", v)
	}
	if strings.Contains(a.body, "secret") || strings.Contains(a.body, "git push") || strings.Contains(a.body, "index out of range") {
		t.Errorf("they hold what agents wrote: %s", a.body)
	}
}
