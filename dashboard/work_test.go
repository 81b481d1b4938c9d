package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/cost"
	"netsky/dashboard"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/git"
	"netsky/work/tree"
)

// treed makes a world whose agent1 works in a real worktree.
func treed(tb testing.TB) (*world, testworld.Repo) {
	tb.Helper()
	var j *store.Journal
	w := mustWorld(tb, func(o *dashboard.Options) {
		db := testworld.Got(o.Records())(tb)
		j = store.NewJournal(o.Home)
		t := dashboard.NewTrees(dashboard.TreesOptions{Home: o.Home, Bus: testworld.Bus(tb, o.Home, "agent1"), Records: func() *store.DB { return db.(*store.DB) }, Record: j.Record})
		o.Work = t
		tb.Cleanup(func() {
			if err := t.Close(); err != nil {
				tb.Error(err)
			}
			j.Close()
		})
	})
	main := testworld.NewRepo(tb, filepath.Join(tb.TempDir(), "src"))
	r := testworld.Got(git.Open(tb.Context(), main.Dir, ""))(tb)
	p := testworld.Got(tree.Make(tb.Context(), w.home, "agent1", r, false))(tb)
	return w, main.At(p.Dir)
}

// post posts a form about agent1's work.
func (w *world) post(tb testing.TB, what string, fields url.Values, edit func(*http.Request)) answer {
	tb.Helper()
	r := w.request(tb, "POST", "/work/agent1/"+what, fields.Encode())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if edit != nil {
		edit(r)
	}
	return mustAnswer(tb, r)
}

var keyed = regexp.MustCompile(`name="key" value="([^"]*)"`)

// A comment's form keeps one comment however often it is sent, removes it likewise, and all comments go
// in one message, once.
func TestWorkComments(t *testing.T) {
	t.Parallel()
	w, r := treed(t)
	r.Write("a.go", "package a\n\nfunc x() {}\n")
	body := w.mustPage(t, "/work/agent1?at="+url.QueryEscape("a.go:3"))
	key := keyed.FindStringSubmatch(body)[1]
	f := url.Values{"at": {"a.go:3"}, "key": {key}, "text": {"why <b>?\r\nand when"}}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if a := w.post(t, "comment", f, nil); a.status != 303 || !strings.HasPrefix(a.header.Get("Location"), "/work/agent1#c-") {
				t.Errorf("%d %s %s", a.status, a.header.Get("Location"), a.body)
			}
		})
	}
	all.Wait()
	body = w.mustPage(t, "/work/agent1")
	if n := strings.Count(body, "why &lt;b&gt;?\nand when</pre>"); n != 1 || !strings.Contains(body, "1 comment waits") {
		t.Fatalf("it is there %d times: %s", n, body)
	}
	if a := w.post(t, "comment", url.Values{"at": {"a.txt:-1"}, "key": {"k2"}, "text": {"drop me"}, "file": {"a.txt"}}, nil); a.status != 303 || !strings.HasPrefix(a.header.Get("Location"), "/work/agent1?file=a.txt#c-") {
		t.Fatalf("%d %s %s", a.status, a.header.Get("Location"), a.body)
	}
	body = w.mustPage(t, "/work/agent1")
	ids := regexp.MustCompile(`name="comment" value="([^"]*)"`).FindAllStringSubmatch(body, -1)
	if len(ids) != 2 || !strings.Contains(body, "files that have not changed") {
		t.Fatalf("%v in %s", ids, body)
	}
	for range 2 {
		if a := w.post(t, "drop", url.Values{"comment": {ids[1][1]}}, nil); a.status != 303 {
			t.Errorf("drop: %d %s", a.status, a.body)
		}
	}
	if body := w.mustPage(t, "/work/agent1"); strings.Contains(body, "drop me") {
		t.Error("it was not dropped")
	}
	for range 2 {
		if a := w.post(t, "send", url.Values{"file": {""}}, nil); a.status != 303 || a.header.Get("Location") != "/work/agent1" {
			t.Errorf("send: %d %s", a.status, a.body)
		}
	}
	mail := w.inbox(t, "agent1")
	if len(mail) != 1 {
		t.Fatalf("%d messages", len(mail))
	}
	e := mail[0].Envelope
	if e.From != agent.Owner || e.Via != "web" || !strings.Contains(e.Text, "a.go, line 3:\n") || !strings.Contains(e.Text, "> 3: func x() {}\nwhy <b>?\nand when\n") || strings.Contains(e.Text, "drop me") {
		t.Errorf("%+v", e)
	}
	body = w.mustPage(t, "/work/agent1")
	r.Write("a.go", "package a\n") // the line is gone, and the form is sent again
	if a := w.post(t, "comment", f, nil); a.status != 303 {
		t.Errorf("a comment that was sent: %d %s", a.status, a.body)
	}
	if strings.Contains(body, "waits: one message") || !strings.Contains(body, "1 comment sent") || !strings.Contains(body, "/messages/"+e.ID) {
		t.Errorf("after it was sent: %s", body)
	}
}

// What is wrong is refused and changes nothing.
func TestWorkCommentsRefused(t *testing.T) {
	t.Parallel()
	w, r := treed(t)
	r.Write("a.go", "package a\n")
	good := func(name, value string) url.Values {
		f := url.Values{"at": {"a.go:1"}, "key": {"k-" + name + value}, "text": {"x"}}
		if name != "" {
			f[name] = []string{value}
		}
		return f
	}
	tab := w.login(t)
	for name, tt := range map[string]struct {
		path string
		f    url.Values
		edit func(*http.Request)
		want int
		say  string
	}{
		"no line":       {"comment", good("at", "a.go:99"), nil, 409, "no such line"},
		"no file":       {"comment", good("at", "../a.go:1"), nil, 409, "no such line"},
		"no place":      {"comment", good("at", "a.go"), nil, 400, "is not a line"},
		"no text":       {"comment", good("text", " \n"), nil, 409, "has no text"},
		"too long":      {"comment", good("text", strings.Repeat("x", 4001)), nil, 409, "at most 4000"},
		"no key":        {"comment", good("key", ""), nil, 400, "key: missing"},
		"unknown":       {"drop", url.Values{"comment": {"zz"}}, nil, 409, "0 comments"},
		"nothing":       {"drop", url.Values{}, nil, 400, "comment: missing"},
		"twice":         {"comment", url.Values{"at": {"a.go:1", "a.go:1"}, "key": {"k"}, "text": {"x"}}, nil, 400, "more than once"},
		"another agent": {"comment", good("", ""), func(r *http.Request) { r.URL.Path = "/work/agent7/comment" }, 409, "no worktree"},
		"no agent":      {"comment", good("", ""), func(r *http.Request) { r.URL.Path = "/work/owner/comment" }, 404, "not on record"},
		"no token":      {"send", url.Values{}, func(r *http.Request) { r.Header.Del("Authorization") }, 401, "not signed in"},
		"another site":  {"send", url.Values{}, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403, "another site"},
		"JSON":          {"send", url.Values{}, func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }, 415, "must be a form"},
		"no tab's key": {"send", url.Values{}, func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("Origin", "http://"+w.addr)
			r.AddCookie(tab)
		}, 403, "read-only"},
	} {
		if a := w.post(t, tt.path, tt.f, tt.edit); a.status != tt.want || !strings.Contains(html.UnescapeString(a.body), tt.say) {
			t.Errorf("%s: %d %s, want %d %q", name, a.status, a.body, tt.want, tt.say)
		}
	}
	if body := w.mustPage(t, "/work/agent1"); strings.Contains(body, "one message to") || len(w.inbox(t, "agent1")) > 0 {
		t.Error("something was kept or sent")
	}
	testworld.Equal(t, w.get(t, "/work/agent1/send").status, 405, "GET")
}

// Whatever files are called and hold is text; what is too much is left out, and the page says so.
func TestWorkHostile(t *testing.T) {
	t.Parallel()
	w, r := treed(t)
	i := 0
	for _, evil := range testworld.Files(t, "web") {
		i++
		text := strings.ReplaceAll(evil, "\x00", "")
		r.Write(fmt.Sprintf("f%d.go", i), "package a // "+text+"\n", fmt.Sprintf("f%d.html", i), text)
		if name := strings.ReplaceAll(text, "/", "_"); len(name) < 200 && name != "" {
			os.WriteFile(filepath.Join(r.Dir, name), []byte("x\n"), 0o600) // not all are names of files
		}
	}
	r.Write("long.txt", strings.Repeat("0123456789", 100_000)+"\n", "crlf.txt", "a\r\nb\r\n", "esc\x1b[31m.go", "var x = \"\u202e\x1b[2J\xff\"\n", "A.bin", "\x00\x01")
	r.Git("add", "-A")
	r.Git("commit", "-q", "-m", "evil")
	body := w.mustPage(t, "/work/agent1")
	for _, want := range []string{`esc\x1b[31m.go`, `\u202e\x1b[2J`, "0123456789…", "A.bin", "binary: not shown"} {
		testworld.Contains(t, body, want)
	}
	if strings.Contains(body, `a\x0d`) {
		t.Error("each line of a file with CR LF shows it")
	}
	checkInert(t, "/api/work", w.get(t, "/api/work").body)

	var files []string
	for i := range 40 {
		files = append(files, fmt.Sprintf("many/%d.go", i), strings.Repeat("\tx := 1 // y\n", 400))
	}
	w2, r2 := treed(t)
	r2.Write(append(files, "huge.txt", strings.Repeat("a\n", 300_000))...)
	body = w2.mustPage(t, "/work/agent1")
	if len(body) > 4<<20 || !strings.Contains(body, "this file alone") || !strings.Contains(body, "<code>netsky diff agent1</code> shows all") {
		t.Errorf("%d bytes", len(body))
	}
	if body := w2.mustPage(t, "/work/agent1?file=many/39.go"); strings.Count(body, `<tr class="add">`) != 400 {
		t.Errorf("one file alone: %d rows", strings.Count(body, `<tr class="add">`))
	}
}

// The script's request for a page that shows the changes already gets all but them.
func TestWorkUpdate(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	have := regexp.MustCompile(`data-have="([^"]*)"`).FindStringSubmatch(w.mustPage(t, "/work/agent1"))[1]
	again := func(have, path string) string {
		r := w.request(t, "GET", path, "")
		r.Header.Set("Netsky-Update", have)
		return mustAnswer(t, r).body
	}
	if body := again(have, "/work/agent1"); strings.Contains(body, `<tr class="add">`) || !strings.Contains(body, `data-keep="`+have+`"`) {
		t.Error("the same changes were sent again")
	}
	for name, body := range map[string]string{"another page's": again("1", "/work/agent1"), "one file": again(have, "/work/agent1?file=tides/south.go")} {
		testworld.Contains(t, body, `<tr class="add">`, "%s: no changes were sent", name)
	}
	if body := again("as it was", "/work/agent1?at=tides/south.go:41"); strings.Contains(body, `<tr class="add">`) || !strings.Contains(body, `data-keep="as it was"`) {
		t.Error("the lines may move while a comment is written")
	}
	testworld.Equal(t, mustAnswer(t, w.request(t, "POST", "/work/agent1/comment", "")).status, 415)
}

// Without what reads them, the pages and the API say so.
func TestWorkOff(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, func(o *dashboard.Options) { o.Work, o.Costs = nil, nil })
	for path, want := range map[string]string{"/work": "netsky work", "/work/agent1": "netsky diff agent1", "/cost": "netsky cost"} {
		if body := w.mustPage(t, path); !strings.Contains(body, "not available here") || !strings.Contains(body, want) {
			t.Errorf("%s: %s", path, body)
		}
	}
	for _, path := range []string{"/api/work", "/api/cost"} {
		if a := w.get(t, path); a.status != 404 || !strings.Contains(a.body, "not available here") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := w.post(t, "send", url.Values{}, nil); a.status != 404 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The API says what the verbs print as JSON, and the pages tell an empty home what to do.
func TestWorkAPI(t *testing.T) {
	t.Parallel()
	w, r := treed(t)
	for path, want := range map[string][]string{
		"/work": {"agent1", "clean", "Nothing has landed yet", "netsky check agent1"}, "/work/agent1": {"Nothing has changed."}, "/cost": {`<p class="big">not known</p><p class="sub">No usage is on record.</p>`, "Not known: no usage is on record", "programs of your own report no usage", "No budget is in use"},
	} {
		body := w.mustPage(t, path)
		for _, want := range want {
			testworld.Contains(t, body, want, "%s", path)
		}
		if strings.Contains(body, "tokens were used") || strings.Contains(body, ">nothing<") { // any may have been
			t.Errorf("%s: says that nothing was used", path)
		}
	}
	w.apply(t, store.UpsertTask{ID: "t-new", Title: "x", Created: 1, Updated: 1}, store.UpsertTask{ID: "t-given", Title: "x", Starts: 1, Created: 1, Updated: 1})
	if !strings.Contains(w.mustPage(t, "/tasks/t-given"), "<dd>not known: no usage is on record</dd>") || strings.Contains(w.mustPage(t, "/tasks/t-new"), "<dt>Cost</dt>") {
		t.Error("the page of a task that was given to an agent does not say that its cost is not known, or that of another does")
	}
	r.Write("b", "1")
	type v struct {
		At   store.Time
		Work []struct{ Agent, State string }
	}
	testworld.Wait(t, "the work to be read again", func() bool {
		got := mustGet[v](t, w, "/api/work")
		return got.At > 0 && len(got.Work) == 1 && got.Work[0].State == "dirty"
	})
	w.showCosts(t, time.Now())
	sum := mustGet[cost.Account](t, w, "/api/cost?by=model&agent=agent2")
	if sum.By != "model" || len(sum.Sums) != 1 || sum.Sums[0].Name != "gpt-5.5" || sum.Sums[0].Complete || sum.Sums[0].Usage.CacheRead != 120*51_000 {
		t.Errorf("%+v", sum)
	}
}
