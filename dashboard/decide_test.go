package dashboard_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/attention/approve"
	"netsky/bus"
	"netsky/dashboard"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// A desk answers approvals as the daemon's does.
type desk struct{ approve.Desk }

func (d desk) Answer(ctx context.Context, n attention.Need, allow bool) (agent.Approval, error) {
	return d.Desk.Answer(ctx, n.Code, agent.Answer{Allow: allow, By: approve.InDashboard})
}

// answering makes a world whose dashboard answers approvals.
func answering(tb testing.TB) (*world, desk) {
	tb.Helper()
	var d desk
	w := mustWorld(tb, func(o *dashboard.Options) {
		d = desk{approve.Desk{Home: o.Home, Bus: o.Bus.(*bus.Bus), Warn: func(err error) { tb.Error(err) }}}
		o.Desk = d
	})
	return w, d
}

func (w *world) asks(tb testing.TB, d desk, text string) agent.Approval {
	tb.Helper()
	return w.asksFor(tb, d, agent.Approval{Agent: "agent0", Start: "s-1", Tool: "Bash", Text: text, Dir: "/src"})
}

// asksFor asks, and takes the answer, as an agent's program does.
func (w *world) asksFor(tb testing.TB, d desk, q agent.Approval) agent.Approval {
	tb.Helper()
	q = testworld.Got(d.Ask(tb.Context(), q))(tb)
	ctx := tb.Context()
	go func() {
		for ctx.Err() == nil {
			if a, ok, _ := home.Approvals(w.home).Answered(q.Code); ok {
				d.Settle(ctx, q, agent.Outcome{How: approve.Verdict(a.Allow), Answer: a})
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return q
}

// given is the answer that the request with the code got.
func (w *world) given(code string) (agent.Answer, bool) {
	o, ok := home.Approvals(w.home).Outcome(code)
	return o.Answer, ok
}

func (w *world) digest(tb testing.TB, code string) string {
	tb.Helper()
	n, ok := attention.Find(mustGet[dashboard.Overview](tb, w, "/api/snapshot").Needs, code)
	if !ok {
		tb.Fatalf("%s is not in the list", code)
	}
	return n.Digest
}

func (w *world) answer(tb testing.TB, code, digest, word string, edit func(*http.Request)) answer {
	tb.Helper()
	body := testworld.Got(json.Marshal(map[string]string{"code": code, "digest": digest, "answer": word}))(tb)
	r := w.request(tb, "POST", "/api/approval-answer", string(body))
	if edit != nil {
		edit(r)
	}
	return mustAnswer(tb, r)
}

// A request is answered by its code and the digest of what was shown, once; anything else
// answers nothing, and says what stands now.
func TestAnswer(t *testing.T) {
	t.Parallel()
	w, d := answering(t)
	q := w.asks(t, d, "rm -rf <b>x")
	other := w.asks(t, d, "rm -rf y")
	digest := w.digest(t, q.Code)
	for name, tt := range map[string]struct {
		code, digest, word string
		edit               func(*http.Request)
		want               int
		say                string
	}{
		"another digest":        {digest: strings.Repeat("0", 64), want: 409, say: "is not what you were shown; now it says: agent0 asks for permission to use Bash: rm -rf"},
		"that of another":       {digest: w.digest(t, other.Code), want: 409, say: digest},
		"half a digest":         {digest: digest[:32], want: 409, say: "is not what you were shown"},
		"another code":          {code: "zzzzz", want: 409, say: "is not pending"},
		"a path as code":        {code: "../../x", want: 409, say: "is not pending"},
		"no digest":             {digest: "-", want: 400, say: "both are needed"},
		"another word":          {word: "allow", want: 400, say: `must be \"allow once\" or \"deny\"`},
		"for good":              {word: "allow always", want: 400, say: "must be"},
		"no token":              {edit: func(r *http.Request) { r.Header.Del("Authorization") }, want: 401, say: "not signed in"},
		"a wrong token":         {edit: func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, want: 401, say: "not signed in"},
		"another origin":        {edit: func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, want: 403, say: "another site"},
		"from another site":     {edit: func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, want: 403, say: "another site"},
		"another host":          {edit: func(r *http.Request) { r.Host = "evil.example" }, want: 403, say: "unknown host"},
		"a form's content type": {edit: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, want: 415, say: "must be application/json"},
	} {
		a := w.answer(t, cmp.Or(tt.code, q.Code), strings.TrimPrefix(cmp.Or(tt.digest, digest), "-"), cmp.Or(tt.word, attention.Allow), tt.edit)
		if a.status != tt.want || !strings.Contains(a.body, tt.say) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if _, given := w.given(q.Code); given {
			t.Fatalf("%s: it was answered", name)
		}
	}
	big := w.request(t, "POST", "/api/approval-answer", `{"code":"`+strings.Repeat("x", 70_000)+`"}`)
	if a := mustAnswer(t, big); a.status != 413 {
		t.Errorf("a large body: %d %s", a.status, a.body)
	}
	cookie := w.login(t)
	r := w.request(t, "POST", "/api/approval-answer", fmt.Sprintf(`{"code":%q,"digest":%q,"answer":"allow once"}`, q.Code, digest))
	r.Header.Del("Authorization")
	r.Header.Set("Origin", "http://"+w.addr)
	r.AddCookie(cookie)
	if a := mustAnswer(t, r); a.status != 403 || !strings.Contains(a.body, "read-only") {
		t.Errorf("a tab without the browser's key: %d %s", a.status, a.body)
	}
	a := w.answer(t, q.Code, digest, attention.Allow, nil)
	var done dashboard.Answered
	testworld.Must(t, json.Unmarshal([]byte(a.body), &done))
	if given, ok := w.given(q.Code); a.status != 200 || !ok || !given.Allow || given.By != approve.InDashboard || done != (dashboard.Answered{Code: q.Code, Agent: "agent0", Answer: attention.Allow, Text: "rm -rf <b>x"}) {
		t.Fatalf("%d %s: %+v", a.status, a.body, given)
	}
	logs, err := w.db.Logs(t.Context(), store.LogFilter{Part: "approval"})
	if err != nil || len(logs.Items) != 1 || !strings.HasPrefix(logs.Items[0].Text, "answered in the dashboard, allowed by the owner: Bash: rm -rf") {
		t.Errorf("recorded: %+v, %v", logs.Items, err)
	}
	// Again, the other way, and once the asker has read it.
	for _, word := range []string{attention.Allow, attention.Deny} {
		if a := w.answer(t, q.Code, digest, word, nil); a.status != 409 || !strings.Contains(a.body, "answered in the dashboard, allowed by the owner") {
			t.Errorf("again, %s: %d %s", word, a.status, a.body)
		}
	}
	if a := w.answer(t, q.Code, digest, attention.Deny, nil); a.status != 409 || !strings.Contains(a.body, "answered in the dashboard, allowed by the owner") {
		t.Errorf("later: %d %s", a.status, a.body)
	}
	// Answered elsewhere first.
	digest = w.digest(t, other.Code)
	_, err = d.Desk.Answer(t.Context(), other.Code, agent.Answer{By: "netsky approve"})
	testworld.Must(t, err)
	if a := w.answer(t, other.Code, digest, attention.Allow, nil); a.status != 409 || !strings.Contains(a.body, "denied by the owner, with netsky approve") {
		t.Errorf("answered elsewhere: %d %s", a.status, a.body)
	}
	if given, _ := w.given(other.Code); given.Allow {
		t.Error("the second answer has turned the first")
	}
}

// Of answers here and in a terminal at the same moment one takes effect, and the other is
// told which.
func TestAnswersAtOnce(t *testing.T) {
	t.Parallel()
	w, d := answering(t)
	for range 10 {
		q := w.asks(t, d, "ls")
		digest := w.digest(t, q.Code)
		var here answer
		var there error
		var both sync.WaitGroup
		both.Go(func() { here = w.answer(t, q.Code, digest, attention.Allow, nil) })
		both.Go(func() { _, there = d.Desk.Answer(t.Context(), q.Code, agent.Answer{By: "netsky approve"}) })
		both.Wait()
		given, _ := w.given(q.Code)
		switch {
		case here.status == 200 && there != nil && given.Allow && strings.Contains(there.Error(), "in the dashboard"):
		case here.status == 409 && there == nil && !given.Allow && strings.Contains(here.body, "with netsky approve"):
		default:
			t.Errorf("here %d %s, there %v: it is %+v", here.status, here.body, there, given)
		}
	}
}

// Turned off, the pages offer no answer and none is taken.
func TestAnswerOff(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	q := testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent0", Tool: "Bash", Text: "ls"}))(t)
	if a := w.answer(t, q.Code, w.digest(t, q.Code), attention.Allow, nil); a.status != 403 || !strings.Contains(a.body, "netsky.toml is false") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if body := w.mustPage(t, "/"); strings.Contains(body, `action="/approval"`) || !strings.Contains(body, "Approvals are answered in a terminal") || !strings.Contains(body, "netsky approve "+q.Code) {
		t.Error("the page offers to answer it, or does not say where")
	}
}

// The form of a page without the script shows what it answers, and answers it.
func TestAnswerForm(t *testing.T) {
	t.Parallel()
	w, d := answering(t)
	q := w.asks(t, d, "printf '<b>%s' \"$HOME\"")
	body := w.mustPage(t, "/")
	digest := w.digest(t, q.Code)
	for _, want := range []string{
		`<form class="approval" method="post" action="/approval">`, `name="code" value="` + q.Code + `"`, `name="digest" value="` + digest + `"`,
		`<pre class="words" dir="auto">` + html.EscapeString("printf '<b>%s' \"$HOME\"") + `</pre>`, "agent0 may do exactly this, once, in /src:",
	} {
		testworld.Contains(t, body, want)
	}
	if strings.Index(body, "may do exactly this") > strings.Index(body, "Yes, allow once") {
		t.Error("the button comes before what it allows")
	}
	f := url.Values{"code": {q.Code}, "digest": {strings.Repeat("0", 64)}, "answer": {attention.Deny}}
	post := func() answer {
		r := w.request(t, "POST", "/approval", f.Encode())
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Referer", "http://"+w.addr+"/agents/agent0")
		return mustAnswer(t, r)
	}
	if a := post(); a.status != 409 || !strings.Contains(a.body, "is not what you were shown") || strings.Contains(a.body, "<b>%s") {
		t.Errorf("another digest: %d %s", a.status, a.body)
	}
	f.Set("digest", digest)
	if a := post(); a.status != 303 || a.header.Get("Location") != "/agents/agent0" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if given, ok := w.given(q.Code); !ok || given.Allow {
		t.Errorf("it is %+v", given)
	}
	// What is too long to be shown whole is not answered here.
	long := w.asks(t, d, strings.Repeat("x", 70_000))
	if body := w.mustPage(t, "/"); strings.Contains(body, `value="`+long.Code+`"`) || !strings.Contains(body, "netsky approve "+long.Code) {
		t.Error("a request that is cut off can be answered")
	}
}

// Too many answers within a minute are refused.
func TestAnswerRate(t *testing.T) {
	t.Parallel()
	w, d := answering(t)
	q := w.asks(t, d, "ls")
	got := map[int]int{}
	for range 70 {
		got[w.answer(t, q.Code, "x", attention.Allow, nil).status]++
	}
	if got[409] != 60 || got[429] != 10 {
		t.Errorf("answered %v", got)
	}
}
