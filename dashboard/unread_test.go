package dashboard_test

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/dashboard"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// shows remembers mail as `netsky inbox` does that has shown it.
func (w *world) shows(tb testing.TB, names ...string) {
	tb.Helper()
	f := testworld.Got(w.home.OpenAppend(home.OwnerRead))(tb)
	defer f.Close()
	testworld.Got(f.WriteString(strings.Join(names, "\n") + "\n"))(tb)
}

// Mail of the owner's is unread until `netsky inbox` has shown it; that a page
// has shown it changes nothing.
func TestUnread(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	send := func(id string, kind envelope.Kind) {
		t.Helper()
		e := envelope.Envelope{ID: id, From: "agent0", To: agent.Owner, Kind: kind, Text: "words of " + id, InReplyTo: "q"}
		testworld.Got(w.bus.Send(t.Context(), e))(t)
		w.apply(t, store.UpsertMessage{ID: id, From: "agent0", To: agent.Owner, Text: e.Text, Time: store.Time(len(id))})
	}
	is := func(step string, n int, ids ...string) {
		t.Helper()
		for range 2 { // looking at it does not read it
			testworld.Equal(t, mustGet[dashboard.Overview](t, w, "/api/snapshot").Unread, n, "%s: unread", step)
		}
		for _, path := range []string{"/", "/messages", "/messages?to=owner"} {
			var got []string
			for _, part := range strings.Split(w.mustPage(t, path), `<li class="row letter`)[1:] {
				if strings.HasPrefix(part, " unread") {
					got = append(got, covers.FindStringSubmatch(part)[1])
				}
			}
			testworld.Equal(t, strings.Join(got, " "), strings.Join(ids, " "), "%s: %s marks", step, path)
		}
		testworld.Equal(t, strings.Contains(w.mustPage(t, "/"), "Mark all read"), n > 0, "%s: the overview does not say how many", step)
	}
	is("nothing came", 0)
	send("a1", "")
	send("b22", envelope.KindReply)
	is("two came", 2, "/messages/b22", "/messages/a1")
	testworld.Got(w.bus.Send(t.Context(), envelope.Envelope{ID: "c", From: "agent0", To: agent.Owner, Kind: envelope.KindAck, InReplyTo: "q"}))(t)
	testworld.Must(t, os.WriteFile(w.home.Path(home.Mailbox(agent.Owner), "inbox", "x.json"), []byte("nothing"), 0o600))
	is("what is no message came", 2, "/messages/b22", "/messages/a1")
	list := w.inbox(t, agent.Owner)
	w.shows(t, list[0].Name)
	is("one was shown", 1, "/messages/b22")
	if n, err := w.bus.Drain(t.Context(), agent.Owner, 0, func(envelope.Envelope) error { return nil }); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	is("all were filed", 1, "/messages/b22")
	w.shows(t, list[1].Name)
	is("both were shown", 0)
	testworld.Must(t, w.home.WriteFile(home.OwnerRead, []byte(list[1].Name+"\n"), false))
	is("the list was cut", 1, "/messages/a1")
}

// A bad file of what was read is told, and the rest of the page is there.
func TestUnreadUnknown(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	testworld.Must(t, os.Symlink("/dev/zero", w.home.Path(home.OwnerRead)))
	body := w.mustPage(t, "/")
	if !strings.Contains(body, "owner-read") || !strings.Contains(body, "Tide tables work offline now") {
		t.Error("no word of it, or no page")
	}
	if v := mustGet[dashboard.Overview](t, w, "/api/snapshot"); len(v.Errors) != 1 || v.Unread != 0 || len(v.Messages) == 0 {
		t.Errorf("snapshot: %v, %d unread", v.Errors, v.Unread)
	}
}

// A page marks mail as read when it is told to, as `netsky inbox` would, and
// nothing that came after it was drawn.
func TestMarkRead(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	send := func(from agent.ID, id string) {
		t.Helper()
		testworld.Got(w.bus.Send(t.Context(), envelope.Envelope{ID: id, From: from, To: agent.Owner, Kind: envelope.KindReply, InReplyTo: "q", Text: "words of " + id}))(t)
		w.apply(t, store.UpsertMessage{ID: id, From: from, To: agent.Owner, Text: "words of " + id})
	}
	unread := func() int { return mustGet[dashboard.Overview](t, w, "/api/snapshot").Unread }
	read := func(f url.Values, edit func(*http.Request)) answer {
		t.Helper()
		r := w.request(t, "POST", "/read", f.Encode())
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if edit != nil {
			edit(r)
		}
		return mustAnswer(t, r)
	}
	send("agent0", "a")
	send("agent1", "a") // another's under the same id
	send("agent0", "b")
	body := w.mustPage(t, "/messages/a")
	testworld.Contains(t, body, "Mark read", "the message's page does not offer it")
	from := func(r *http.Request) { r.Header.Set("Referer", "http://"+w.addr+"/messages?to=owner") }
	if a := read(url.Values{"id": {"a"}, "from": {"agent0"}}, from); a.status != 303 || a.header.Get("Location") != "/messages?to=owner" || unread() != 2 {
		t.Errorf("one: %d to %s, %d unread", a.status, a.header.Get("Location"), unread())
	}
	if a := read(url.Values{"id": {"a"}, "from": {"agent0"}}, func(r *http.Request) { r.Header.Set("Referer", "http://evil.example/x") }); a.status != 303 || a.header.Get("Location") != "/" || unread() != 2 {
		t.Errorf("again: %d to %s", a.status, a.header.Get("Location"))
	}
	upto := regexp.MustCompile(`name="upto" value="([^"]+)"`).FindStringSubmatch(w.mustPage(t, "/"))
	if upto == nil {
		t.Fatal("the overview does not offer to mark all")
	}
	send("agent0", "later")
	if a := read(url.Values{"upto": {upto[1]}}, nil); a.status != 303 || unread() != 1 {
		t.Errorf("all: %d, %d unread", a.status, unread())
	}
	// The same guards as for every write.
	last := url.Values{"id": {"later"}, "from": {"agent0"}}
	cookie := w.login(t)
	for name, tt := range map[string]struct {
		f    url.Values
		edit func(*http.Request)
		want int
	}{
		"no token":     {last, func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"another site": {last, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		"no origin":    {last, func(r *http.Request) { r.Header.Del("Authorization"); r.AddCookie(cookie) }, 403},
		"GET":          {last, func(r *http.Request) { r.Method = "GET" }, 405},
		"JSON":         {last, func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }, 415},
		"nothing":      {url.Values{}, nil, 400},
		"twice":        {url.Values{"id": {"later", "b"}, "from": {"agent0"}}, nil, 400},
		"the owner":    {url.Values{"id": {"later"}, "from": {"owner"}}, nil, 400},
	} {
		testworld.Equal(t, read(tt.f, tt.edit).status, tt.want, "%s", name)
	}
	testworld.Equal(t, unread(), 1, "a refused request marked it")
	if data, err := w.home.ReadFile(home.OwnerRead, 1<<20); err != nil || strings.Count(string(data), "\n") != 3 {
		t.Errorf("on file: %q, %v", data, err)
	}
}

// What is longer than the default limit is mail where the configuration allows it.
func TestUnreadLarge(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, func(o *dashboard.Options) {
		o.Bus = bus.New(o.Home, bus.Options{MaxBytes: 4 * bus.DefaultMaxBytes})
	})
	large := bus.New(w.home, bus.Options{MaxBytes: 4 * bus.DefaultMaxBytes})
	testworld.Got(large.Send(t.Context(), envelope.Envelope{From: "agent0", To: agent.Owner, Text: strings.Repeat("x", 2*bus.DefaultMaxBytes)}))(t)
	testworld.Equal(t, mustGet[dashboard.Overview](t, w, "/api/snapshot").Unread, 1, "unread")
}
