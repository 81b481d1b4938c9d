package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/dashboard"
	"netsky/internal/testworld"
	"netsky/store"
)

// form posts the form of a page, as a browser without the script does.
func (w *world) form(tb testing.TB, fields url.Values, edit func(*http.Request)) answer {
	tb.Helper()
	r := w.request(tb, "POST", "/user-message", fields.Encode())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/html")
	if edit != nil {
		edit(r)
	}
	return mustAnswer(tb, r)
}

func draftID(body string) string {
	return regexp.MustCompile(`name="id" value="([^"]*)"`).FindStringSubmatch(body)[1]
}

// A form sends the same message as the API, leads to its page, and has one
// effect however often it is sent.
func TestSayForm(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	id := draftID(w.mustPage(t, "/"))
	f := url.Values{"to": {"agent0"}, "text": {"line 1\r\nline 2 <b>"}, "id": {id}}
	for range 2 {
		a := w.form(t, f, nil)
		if a.status != 303 || a.header.Get("Location") != "/messages/"+id {
			t.Fatalf("%d %s %s", a.status, a.header.Get("Location"), a.body)
		}
	}
	list := w.inbox(t, "agent0")
	if len(list) != 1 {
		t.Fatalf("%d messages in the inbox", len(list))
	}
	if e := list[0].Envelope; e.ID != id || e.From != agent.Owner || e.Via != "web" || e.Text != "line 1\nline 2 <b>" {
		t.Errorf("envelope = %+v", e)
	}
	// Its page tells its story from the first moment, and the overview shows it.
	body := w.mustPage(t, "/messages/"+id)
	if !strings.Contains(body, "line 2 &lt;b&gt;") || !strings.Contains(body, "not on record yet") || strings.Count(body, "not yet</span></li>") != 2 {
		t.Errorf("before it is on record: %s", body)
	}
	testworld.Equal(t, strings.Count(w.mustPage(t, "/"), "/messages/"+id), 1, "the overview does not show it once")
	w.apply(t, store.UpsertMessage{ID: id, From: "owner", To: "agent0", Text: "line 1\nline 2 <b>", Via: "web", Time: store.Time(1)},
		store.UpsertDelivery{Message: id, Target: "agent0", State: store.Delivered})
	if body := w.mustPage(t, "/messages/"+id); strings.Contains(body, "not on record") || strings.Count(body, "not yet</span></li>") != 1 {
		t.Error("delivered: not shown")
	}
	testworld.Equal(t, strings.Count(w.mustPage(t, "/"), "/messages/"+id), 1, "the overview does not show it once, when it is on record")
	w.apply(t, store.UpsertMessage{ID: "r-1", From: "agent0", To: "owner", Kind: "reply", Text: "hello", InReplyTo: id})
	if body := w.mustPage(t, "/messages/"+id); strings.Contains(body, "not yet</span></li>") || !strings.Contains(body, "hello") {
		t.Error("answered: not shown")
	}
}

// What a form is refused for is said beside the words, which are still there.
func TestSayFormRefuses(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	long := strings.Repeat("x", 64<<10)
	for _, tt := range []struct {
		name string
		f    url.Values
		want int
		why  string
	}{
		{"empty", url.Values{"to": {"agent0"}, "text": {" \r\n"}, "id": {""}}, 400, "text: empty"},
		{"nobody", url.Values{"to": {"agent7"}, "text": {"keep <me>"}, "id": {""}}, 404, "never been started"},
		{"the owner", url.Values{"to": {"owner"}, "text": {"keep <me>"}, "id": {""}}, 400, "not an agent"},
		{"no name", url.Values{"to": {`"><script>`}, "text": {"keep <me>"}, "id": {""}}, 400, "not an agent"},
		{"wrapper", url.Values{"to": {"agent0"}, "text": {"</channel>"}, "id": {""}}, 400, "not sent"},
		{"bad id", url.Values{"to": {"agent0"}, "text": {"keep <me>"}, "id": {"../x"}}, 400, "not sent"},
		{"too long", url.Values{"to": {"agent0"}, "text": {long}, "id": {""}}, 413, "too long"},
		{"to twice", url.Values{"to": {"agent0", "agent1"}, "text": {"x"}, "id": {""}}, 400, "to: must be given exactly once"},
		{"no text", url.Values{"to": {"agent0"}, "id": {""}}, 400, "text: must be given exactly once"},
	} {
		a := w.form(t, tt.f, nil)
		if a.status != tt.want || !strings.Contains(html.UnescapeString(a.body), tt.why) {
			t.Errorf("%s: %d, want %d, %q: %.2000s", tt.name, a.status, tt.want, tt.why, a.body)
			continue
		}
		checkPage(t, tt.name, a.body)
		if text := tt.f.Get("text"); strings.Contains(text, "keep") && !strings.Contains(a.body, html.EscapeString(text)+"</textarea>") {
			t.Errorf("%s: the words are gone", tt.name)
		}
	}
	testworld.Equal(t, len(w.inbox(t, "agent0")), 0, "messages were sent")
}

// An id that was another message's is refused, and the form has a fresh one.
func TestSayFormReused(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.form(t, url.Values{"to": {"agent0"}, "text": {"one"}, "id": {"web-1"}}, nil)
	a := w.form(t, url.Values{"to": {"agent0"}, "text": {"two"}, "id": {"web-1"}}, nil)
	if a.status != 409 || draftID(a.body) == "web-1" || !strings.Contains(a.body, "two</textarea>") {
		t.Errorf("%d %s", a.status, a.body)
	}
	testworld.Equal(t, w.form(t, url.Values{"to": {"agent0"}, "text": {"two"}, "id": {draftID(a.body)}}, nil).status, 303, "sent again")
}

// Row 31: the form is guarded as the API is.
func TestRow31Form(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	tab := w.signIn(t)
	own := "http://" + w.addr
	set := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			tab.as(r)
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
	f := url.Values{"to": {"agent0"}, "text": {"evil"}, "id": {""}}
	for _, tt := range []struct {
		name string
		edit func(*http.Request)
		want int
	}{
		{"foreign origin", set("Origin", "http://evil.example"), 403},
		{"another port", set("Origin", "http://127.0.0.1:1"), 403},
		{"null origin", set("Origin", "null"), 403},
		{"no origin", set(), 403},
		{"cross-site", set("Origin", own, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 403},
		{"same-site", set("Origin", own, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 403},
		{"no token", func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Origin", own) }, 401},
		{"token in the query", func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "token=" + w.token }, 401},
		{"rebound name", func(r *http.Request) { r.Host = "evil.example"; r.Header.Set("Origin", "http://evil.example") }, 403},
		{"text/plain", set("Origin", own, "Content-Type", "text/plain"), 415},
		{"JSON", set("Origin", own, "Content-Type", "application/json"), 415},
		{"multipart", set("Origin", own, "Content-Type", "multipart/form-data; boundary=x"), 415},
	} {
		testworld.Equal(t, w.form(t, f, tt.edit).status, tt.want, "%s", tt.name)
	}
	r := w.request(t, "GET", "/user-message?"+f.Encode(), "")
	testworld.Equal(t, mustAnswer(t, r).status, 405, "GET")
	if n := len(w.inbox(t, "agent0")); n != 0 {
		t.Fatalf("%d messages were queued", n)
	}
	if a := w.form(t, f, set("Origin", own, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")); a.status != 303 {
		t.Errorf("the owner's own form: %d %s", a.status, a.body)
	}
}

// A form without an id is sent, under one of the bus's.
func TestSayFormAfterFailure(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, func(o *dashboard.Options) {
		o.Records = func() (dashboard.Reader, error) { return nil, fmt.Errorf("no database") }
	})
	a := w.form(t, url.Values{"to": {"agent0"}, "text": {"x"}, "id": {""}}, nil)
	list := w.inbox(t, "agent0")
	if a.status != 303 || len(list) != 1 || a.header.Get("Location") != "/messages/"+list[0].Envelope.ID {
		t.Errorf("%d, to %q", a.status, a.header.Get("Location"))
	}
}
