package dashboard_test

import (
	"errors"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/dashboard"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
	"netsky/work"
	"netsky/work/merge"
)

var covers = regexp.MustCompile(`<a class="cover" href="([^"]*)"`)

// listed are the records that a list's page shows.
func listed(body string) (ids []string) {
	for _, m := range covers.FindAllStringSubmatch(body, -1) {
		ids = append(ids, m[1][strings.LastIndexByte(m[1], '/')+1:])
	}
	return ids
}

func link(body, words string) string {
	m := regexp.MustCompile(`href="([^"]*)"[^>]*>` + words + `</a>`).FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

// A query narrows a list down, and each control shows what it is at.
func TestFilters(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	for _, tt := range []struct {
		path string
		want string // ids, the first of the list first
	}{
		{"/tasks", "task-south task-release task-notes task-offline"},
		{"/tasks?state=done", "task-offline"},
		{"/tasks?assignee=agent1", "task-south task-offline"},
		{"/tasks?assignee=agent1&state=in_progress", "task-south"},
		{"/tasks?asked_by=owner", "task-notes"},
		{"/tasks?text=tables", "task-south task-offline"},
		{"/tasks?state=&assignee=&text=tables", "task-south task-offline"}, // a form's empty fields
		{"/tasks?message=msg-plan-01", "task-offline"},
		{"/tasks?state=cancelled", ""},
		{"/messages?from=owner", "web-5d1f0c77a2b94e6180c3d2aa"},
		{"/messages?to=owner", "msg-owner-01"},
		{"/messages?with=owner", "msg-owner-01 web-5d1f0c77a2b94e6180c3d2aa"},
		{"/messages?state=queued", "msg-more-02 msg-more-01"},
		{"/messages?state=queued&from=agent0", "msg-more-01"},
		{"/messages?state=queued&text=commit", "msg-more-02"},
		{"/messages?state=queued&with=agent2", "msg-more-02"},
		{"/messages?state=answered&kind=brief", "msg-plan-01"},
		{"/messages?state=failed", "msg-bad-01"},
		{"/messages?state=poisoned", ""},
		{"/messages?kind=brief", "msg-plan-02 msg-plan-01"},
		{"/messages?in_reply_to=msg-plan-01", "msg-done-01"},
		{"/messages?thread=release-1.4&from=agent3", "msg-bad-01"},
		{"/sessions?actor=agent3", start(3)},
		{"/sessions?open=true&actor=agent3", ""},
	} {
		body := w.mustPage(t, tt.path)
		testworld.Equal(t, strings.Join(listed(body), " "), tt.want, "%s", tt.path)
		if tt.want == "" && !strings.Contains(body, "matches.") {
			t.Errorf("%s: does not say that it is empty", tt.path)
		}
		if _, query, ok := strings.Cut(tt.path, "?"); ok && tt.path != "/tasks?state=&assignee=&text=tables" && link(body, "Clear") == "" {
			t.Errorf("%s: %s can't be cleared", tt.path, query)
		}
	}
	for path, want := range map[string]string{
		"/logs?level=ERROR":  "agent3 exited 2",
		"/logs?part=bus":     "not delivered",
		"/logs?actor=agent2": "asks: Bash",
		"/logs?text=began":   "began Offline",
	} {
		if body := w.mustPage(t, path); !strings.Contains(body, want) || strings.Count(body, `data-key="l-`) != 1 {
			t.Errorf("%s: not only %q", path, want)
		}
	}
	body := w.mustPage(t, "/messages?thread=release-1.4&state=queued")
	if !strings.Contains(body, "<option selected>queued</option>") || !strings.Contains(body, `name="thread" value="release-1.4"`) {
		t.Error("the filters do not show what they are at")
	}
	testworld.Equal(t, link(body, `<span class="kind">thread</span>.*`), "/messages?state=queued", "without the thread")
}

// A long list comes by parts, each record once, under any filter.
func TestPaging(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	for i := range 130 {
		id, kind := fmt.Sprintf("m-%03d", i), ""
		if i%2 == 0 {
			kind = "brief"
		}
		w.apply(t, store.UpsertMessage{ID: id, From: "agent1", To: "agent0", Kind: kind, Text: "x", Time: store.Time(i + 1)},
			store.UpsertDelivery{Message: id, Target: "agent0", State: store.Delivered, Time: store.Time(i + 1)},
			store.AddLog{Key: id, Text: "x", Time: store.Time(i + 1)},
			store.UpsertTask{ID: "t-" + id, Title: "x", State: store.TaskOpen, Created: store.Time(i + 1), Updated: store.Time(i + 1)})
	}
	for path, want := range map[string]int{"/messages": 130, "/messages?state=delivered": 130, "/messages?kind=brief&state=delivered": 65, "/messages?kind=brief": 65, "/tasks?state=open": 130} {
		seen, parts := map[string]bool{}, 0
		for at := path; at != "" && parts < 10; parts++ {
			body := w.mustPage(t, at)
			for _, id := range listed(body) {
				if seen[id] {
					t.Errorf("%s: %s twice", path, id)
				}
				seen[id] = true
			}
			if got := link(body, "Newest"); parts > 0 && got != path {
				t.Errorf("%s: newest leads to %q", at, got)
			}
			at = link(body, "Older")
		}
		if len(seen) != want || parts < 2 || parts > 4 {
			t.Errorf("%s: %d records in %d parts, want %d", path, len(seen), parts, want)
		}
	}
	if body := w.mustPage(t, "/logs"); strings.Count(body, `data-key="l-`) != 50 || link(body, "Older") == "" {
		t.Error("the logs do not come by parts")
	}
}

// A filter that few match shows them all at once, however far they lie apart.
func TestFewOfMany(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	var want []string
	var ops []store.Op
	for i := range 700 {
		id, state, kind := fmt.Sprintf("m-%04d", i), store.Delivered, ""
		switch {
		case i%300 == 0:
			state = store.Failed
			want = append([]string{id}, want...)
		case i%300 == 1:
			kind = "brief"
		}
		ops = append(ops, store.UpsertMessage{ID: id, From: "agent1", To: "agent0", Kind: kind, Text: "x", Time: store.Time(i + 1)},
			store.UpsertDelivery{Message: id, Target: "agent0", State: state, Time: store.Time(5000 - i)})
	}
	w.apply(t, ops...)
	for path, want := range map[string]string{
		"/messages?state=failed":               strings.Join(want, " "),
		"/messages?state=delivered&kind=brief": "m-0601 m-0301 m-0001",
	} {
		body := w.mustPage(t, path)
		if got := strings.Join(listed(body), " "); got != want || link(body, "Older") != "" {
			t.Errorf("%s: %q and then %q, want %q", path, got, link(body, "Older"), want)
		}
	}
}

// An id, or its beginning, leads to its page.
func TestFind(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	for q, want := range map[string]string{
		"agent1": "/agents/agent1", "1": "/agents/agent1", "infinity": "/agents/agentinfinity", "owner": "/messages?with=owner",
		"task-offline": "/tasks/task-offline", "web-5d1f0c77a2b94e6180c3d2aa": "/messages/web-5d1f0c77a2b94e6180c3d2aa", start(2): "/sessions/" + start(2),
		"release-1.4": "/messages?thread=release-1.4", "msg-plan-02": "/messages/msg-plan-02",
		"note-1": "/notes/note-1",
	} {
		if a := w.page(t, "/find?q="+q); a.status != 303 || a.header.Get("Location") != want {
			t.Errorf("%s: %d %s, want %s", q, a.status, a.header.Get("Location"), want)
		}
	}
}

// A word that only begins an id, or several, is searched for; so are the names of what git has.
func TestFindWords(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	w.apply(t,
		store.UpsertMessage{ID: "dialog-5f", From: "agent1", To: "owner", Text: "agent1 waits at a dialog", Time: 1},
		store.UpsertMessage{ID: "conflict-1", From: "agent1", To: "owner", Text: "one", Time: 1}, store.UpsertMessage{ID: "conflict-2", From: "agent1", To: "owner", Text: "two", Time: 2})
	w.work.mu.Lock()
	w.work.states[0].Head, w.work.states[0].Branch = "c0ffee00112233", "netsky/tides-1"
	landed := w.work.landings[0]
	landed.After = "beef001122334455"
	w.work.landings[0] = landed
	w.work.mu.Unlock()
	for q, want := range map[string][]string{
		"dialog":           {`href="/messages/dialog-5f"`},
		"conflict":         {`href="/messages/conflict-1"`, `href="/messages/conflict-2"`},
		"msg-pl":           {`href="/messages/msg-plan-01"`, `href="/messages/msg-plan-02"`},
		"web-5d1f":         {`href="/messages/web-5d1f0c77a2b94e6180c3d2aa"`},
		"tides-1":          {`href="/work/agent1"`, "branch"},
		"c0ffee0":          {`href="/work/agent1"`},
		"beef001":          {`href="/work"`, "landing"},
		landed.ID:          {`href="/work"`, "landing"},
		"SOUTH.go":         {`href="/work/agent1?file=tides%2Fsouth.go"`, "changed file"},
		"nothing-is-named": {"no branch or changed file is called so"},
	} {
		a := w.page(t, "/find?q="+q)
		for _, s := range want {
			if a.status != 200 || !strings.Contains(a.body, s) {
				t.Errorf("%s: %d, no %q", q, a.status, s)
			}
		}
		checkPage(t, q, a.body)
	}
}

// The code of what needs the owner leads there.
func TestFindCode(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	asked, err := home.Approvals(w.home).List()
	if err != nil || len(asked) == 0 {
		t.Fatal(asked, err)
	}
	found := asked[0].Code
	body := w.mustPage(t, "/find?q="+strings.ToUpper(found))
	if !strings.Contains(body, `href="/#waiting"`) || !strings.Contains(body, "needs you") {
		t.Errorf("%s is not found:\n%s", found, body)
	}
}

// Any other text is searched for, page by page; what is found leads to its page.
func TestFindText(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	w.apply(t, store.AddNote{ID: "note-2", Text: "mind the gap", Created: 1}, store.AddNote{ID: "note-3", About: "no record", Text: "mind the gap", Created: 2})
	testworld.Equal(t, w.page(t, "/notes/note-4").status, 404, "no such note")
	for path, want := range map[string][]string{
		"/find":                      {"Finds messages, tasks and notes"},
		"/find?q=":                   {"Finds messages, tasks and notes"},
		"/find?q=nothing-has-this":   {"No message, task or note contains all of these words", `value="nothing-has-this"`},
		"/find?q=OFFLINE&limit=50":   {`href="/tasks/task-offline"`, "task", `href="/messages/`},
		"/find?q=%3Cscript%3E+there": {"&lt;script&gt; there"},
		"/find?q=harmonics+come":     {`href="/notes/note-1"`},
		"/find?q=mind+the+gap":       {`href="/notes/note-2"`, `href="/notes/note-3"`},
		"/notes/note-1":              {"Note by agent1", "older ones are off", `href="/find?q=task-offline"`},
		"/notes/note-2":              {"<h1>Note</h1>", "mind the gap", "nothing in particular"},
	} {
		body := w.mustPage(t, path)
		for _, s := range want {
			testworld.Contains(t, body, s, "%s", path)
		}
		checkPage(t, path, body)
	}
	first := w.mustPage(t, "/find?q=the&limit=1")
	_, rest, ok := strings.Cut(first, `href="/find?cursor=`)
	next, _, _ := strings.Cut(rest, `"`)
	if !ok || !strings.Contains(next, "q=the") {
		t.Fatalf("no second page in %s", first)
	}
	if second := w.mustPage(t, "/find?cursor="+strings.ReplaceAll(next, "&amp;", "&")); strings.Count(second, `class="row found"`) != 1 || second == first {
		t.Errorf("second page:\n%s", second)
	}
}

// Where something can't be seen, the page says so and shows the rest.
func TestPagesInPart(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	w := mustWorld(t, func(o *dashboard.Options) {
		records := o.Records
		o.Records = func() (dashboard.Reader, error) {
			if broken.Load() {
				return nil, errors.New("meta.db: schema 99 is newer")
			}
			return records()
		}
	})
	w.showcase(t)

	broken.Store(true)
	for path, want := range map[string]string{"/": "running go test", "/agents/agent1": "tideline/tides/ports"} {
		if body := w.mustPage(t, path); !strings.Contains(body, want) || !strings.Contains(body, "Status incomplete") || !strings.Contains(body, "schema 99") {
			t.Errorf("%s without records: no %q, or no word of why", path, want)
		}
	}
	testworld.Contains(t, w.mustPage(t, "/panes"), "Do you want", "/panes needs records")
	for _, path := range []string{"/tasks", "/messages", "/logs", "/sessions", "/updates", "/messages/msg-plan-01", "/tasks/task-offline", "/find?q=task-offline"} {
		if a := w.page(t, path); a.status != 503 || !strings.Contains(a.body, "schema 99") || !strings.Contains(a.body, `aria-label="Pages"`) {
			t.Errorf("%s without records: %d", path, a.status)
		}
	}
	broken.Store(false)
	w.agents.set(errors.New("tmux does not answer"))
	if body := w.mustPage(t, "/"); !strings.Contains(body, "tmux does not answer") || !strings.Contains(body, "Rebase release") || !strings.Contains(body, "Status incomplete") || !strings.Contains(body, "agent2 asks for permission</h1>") {
		t.Error("without agents the records are not shown, or no word of why")
	}
}

// An empty home says what to do next.
func TestPagesEmpty(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	for path, want := range map[string]string{"/": "netsky up 2", "/panes": "netsky up 2", "/tasks": "No tasks yet", "/messages": "netsky ask", "/sessions": "netsky up", "/logs": "Nothing has happened", "/updates": "has not updated itself"} {
		testworld.Contains(t, w.mustPage(t, path), want, "%s", path)
	}
}

// What waits for the owner stands on the overview, what holds up nobody last,
// and on the page of its agent.
func TestWaits(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	list := testworld.Got(w.agents.Agents(t.Context()))(t)
	list[0].Poison = 1
	list[4].Evidence = list[4].Runtime
	w.agents.set(nil, list...)
	asks := regexp.MustCompile(`class="ask tone-[a-z]+" data-key="([a-z]+)-[a-z]{5}"`)
	for path, want := range map[string]string{
		"/":              "approval dead unreadable",
		"/agents/agent0": "unreadable",
		"/agents/agent1": "",
		"/agents/agent2": "approval",
		"/agents/agent3": "dead",
	} {
		body := w.mustPage(t, path)
		var got []string
		for _, m := range asks.FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		testworld.Equal(t, strings.Join(got, " "), want, "%s: what waits", path)
		testworld.Equal(t, strings.Contains(body, "netsky approve "), strings.Contains(want, "approval"), "%s: the command that answers is there or not", path)
	}
	if body := w.mustPage(t, "/"); !strings.Contains(body, `class="card `) || strings.Contains(body, `class="roster`) {
		t.Error("few agents are shown as many are")
	}
	for n := range 50 {
		list = append(list, view.Agent{ID: agent.Clone(n + 10), State: agent.Idle})
	}
	w.agents.set(nil, list...)
	if body := w.mustPage(t, "/"); strings.Contains(body, `class="card `) || !strings.Contains(body, `class="roster`) || strings.Count(body, `data-key="card-`) != len(list) {
		t.Error("many agents are shown as few are, or not all of them")
	}
}

// A conflict between two agents is one item, and is counted as one. The page of each shows with whom.
func TestConflicts(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	pair := func(a, b agent.ID, file string) merge.Conflict {
		return merge.Conflict{Agents: []agent.ID{a, b}, Files: []string{file}}
	}
	w.agents.set(nil, view.Agent{ID: "agent1", State: agent.Idle}, view.Agent{ID: "agent2", State: agent.Idle}, view.Agent{ID: "agent3", State: agent.Idle})
	w.conflicts(t, pair("agent1", "agent2", "a.go"))
	if body := w.mustPage(t, "/"); !strings.Contains(body, "<h3>Conflicts</h3>") || !strings.Contains(body, "1 item needs you") {
		t.Errorf("one conflict: %q", regexp.MustCompile(`<h3>Conflicts.*`).FindString(body))
	}
	w.work.states = []work.State{{Agent: "agent1", Proof: work.Unchecked, Next: "netsky check agent1", Does: "check agent1's work"}}
	if body := w.mustPage(t, "/"); !strings.Contains(body, `First check agent1&#39;s work</span>`) || !strings.Contains(body, `data-copy="netsky check agent1"`) || strings.Contains(body, "netsky land") {
		t.Error("the overview does not show the step that can be taken")
	}
	if v := mustGet[dashboard.Overview](t, w, "/api/snapshot"); len(v.Needs) != 1 || v.Needs[0].Commands[3].Line != "netsky check agent1" {
		t.Errorf("the snapshot: %+v", v.Needs)
	}
	whom := regexp.MustCompile(`href="/agents/agent1">agent1</a>, <a [^>]*href="/agents/agent2">agent2</a> have work that conflicts in 1 file<`)
	for _, path := range []string{"/agents/agent1", "/agents/agent2"} {
		if body := w.mustPage(t, path); !whom.MatchString(body) || !strings.Contains(body, `data-copy="netsky check agent1"`) {
			t.Errorf("%s: not with whom, or not what to do", path)
		}
	}
	if v := mustGet[dashboard.Needs](t, w, "/api/needs"); len(v.Items) != 1 || v.Items[0].Title != "agent1, agent2 have work that conflicts" {
		t.Errorf("/api/needs: %+v", v.Items)
	}
	w.conflicts(t, pair("agent1", "agent2", "a.go"), pair("agent1", "agent3", "b.go"), pair("agent2", "agent3", "c.go"),
		merge.Conflict{Agents: []agent.ID{"agent1"}, Target: "main"}, merge.Conflict{Agents: []agent.ID{"agent2"}, Target: "main"})
	body := w.mustPage(t, "/")
	for _, want := range []string{`<h3>Conflicts <span class="count">5</span>`, "5 items need you", "<summary>2 more: agent"} {
		testworld.Contains(t, body, want, "five conflicts")
	}
}

// An agent whose receiver has exited is at no dialog.
func TestLostReceiver(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.agents.set(nil, view.Agent{ID: "agent1", State: agent.Waiting, Deaf: true, Detail: "its receiver has exited", Wanted: true, Since: 1})
	if body := w.mustPage(t, "/"); strings.Contains(body, "waits at a dialog") || !strings.Contains(body, "has lost its receiver") {
		t.Errorf("the page says %s", body)
	}
}

// Agents that wait at the same dialog are one item: one command answers it for all
// of them, and each can be answered alone. Of dialogs that netsky can't answer,
// there is the way to each pane.
func TestSameDialogs(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	at := func(n int, detail string, decidable bool) view.Agent {
		return view.Agent{ID: agent.Clone(n), State: agent.Waiting, Runtime: "claude", Detail: detail, Decidable: decidable, Wanted: true, Since: store.Time(n)}
	}
	const key, trust, login = "custom API key: sk-ant-1", "workspace trust: /src", "login: choose how"
	w.agents.set(nil, at(1, key, true), at(2, trust, true), at(3, key, true), at(4, login, false), at(5, key, true), at(6, login, false),
		at(7, "", false), at(8, "", false))
	body := w.mustPage(t, "/")
	item := regexp.MustCompile(`(?s)<li class="ask .*?(<li class="ask|</section>)`)
	copies := regexp.MustCompile(`data-copy="([^"]*)"`)
	var got []string
	for rest := body; ; {
		at := item.FindStringIndex(rest)
		if at == nil {
			break
		}
		end := at[1] - len("<li class=\"ask")
		var lines []string
		for _, m := range copies.FindAllStringSubmatch(rest[at[0]:end], -1) {
			lines = append(lines, strings.TrimPrefix(m[1], "netsky "))
		}
		got = append(got, strings.Join(lines, ", "))
		rest = rest[end:]
	}
	code := func(text string) string {
		for _, n := range mustGet[dashboard.Overview](t, w, "/api/snapshot").Needs {
			if n.Text == text {
				return n.Code
			}
		}
		return "none"
	}
	same, other := code(key), code(trust)
	want := []string{
		"approve " + same + ", approve " + same + " --deny, approve agent1, approve agent1 --deny, attach agent1, " +
			"approve agent3, approve agent3 --deny, attach agent3, approve agent5, approve agent5 --deny, attach agent5",
		"approve " + other + ", approve " + other + " --deny, attach agent2",
		"attach agent4, attach agent6",
		"attach agent7", "attach agent8", // what they wait at is not known
	}
	if !slices.Equal(got, want) {
		t.Errorf("the items offer\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(body, `>Dialogs <span class="count">8</span>`) || !strings.Contains(body, "8 agents wait at a dialog") {
		t.Error("not all agents are counted")
	}
	if one := w.mustPage(t, "/agents/agent3"); strings.Contains(one, "approve "+same) || !strings.Contains(one, `data-copy="netsky approve agent3"`) {
		t.Error("an agent's page has another agent's answer, or not its own")
	}
}

// However long messages are, a page is not: it shows how each begins, and leads
// to the rest.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	text := strings.Repeat("a long story; ", 15_000)
	for i := range 3 {
		from, to, reply := agent.Owner, agent.ID("agent0"), ""
		if i > 0 {
			from, to, reply = to, from, "m-0"
		}
		w.apply(t, store.UpsertMessage{ID: fmt.Sprintf("m-%d", i), From: from, To: to, Kind: "reply", Text: text, InReplyTo: reply, Time: store.Time(i + 1)})
	}
	w.apply(t, store.UpsertMessage{ID: "bad", To: "agent0", Time: 1}, store.UpsertDelivery{Message: "bad", Target: "agent0", State: store.Poisoned, Reason: "not JSON", Time: 2})
	body := w.mustPage(t, "/messages/m-0")
	if n := len(body); n > 3*(64<<10)+20_000 { // the beginnings, and the page around them
		t.Errorf("the page has %d bytes", n)
	}
	for _, want := range []string{`href="/api/messages/m-0">all 210000 bytes`, `href="/messages/m-1">read all`, `tabindex="0">a long story;`} {
		testworld.Contains(t, body, want)
	}
	// What an agent asks leave for is shown to its end.
	testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent0", Tool: "Bash", Text: strings.Repeat("ls; ", 1000) + "rm -rf ~", AskedMS: 1}))(t)
	testworld.Contains(t, w.mustPage(t, "/"), "ls; rm -rf ~</pre>", "the end of what is asked for is not shown")
	if body := w.mustPage(t, "/messages/bad"); !strings.Contains(body, "netsky channel poison ls") || !strings.Contains(body, "<h1>unknown ") || strings.Contains(body, "no text") {
		t.Error("what can't be read is shown as without words, or as from nobody")
	}
}

// What receivers and the daemon say to each other is no message of the owner's.
func TestControlMessages(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.apply(t, store.UpsertActor{ID: "agent0", Runtime: "demo"}, store.UpsertMessage{ID: "m-1", From: "agent0", To: agent.Owner, Text: "The tables are done.", Time: 1},
		store.UpsertMessage{ID: "probe-1", From: "agent0", To: agent.Owner, Kind: "ack", Text: "Does mail move?", Time: 2})
	for _, path := range []string{"/", "/agents/agent0"} {
		body := w.mustPage(t, path)
		testworld.Contains(t, body, "The tables are done.")
		testworld.Lacks(t, body, "Does mail move?", path)
	}
	testworld.Contains(t, w.mustPage(t, "/messages"), "Does mail move?", "the list of all")
}

// The first line weighs how the agents are.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	is := func(id agent.ID, s agent.State) view.Agent {
		return view.Agent{ID: id, State: s, Wanted: true}
	}
	for _, tt := range []struct {
		list []view.Agent
		want string
	}{
		{nil, "No agents yet"},
		{[]view.Agent{is("agent0", agent.Idle), is("agent1", agent.Busy)}, "All healthy"},
		{[]view.Agent{is("agent0", agent.Idle), is("agent1", agent.Starting)}, "1 agent is starting"},
		{[]view.Agent{is("agent0", agent.Idle), is("agent1", agent.Waiting)}, "agent1 waits at a dialog"},
		{[]view.Agent{is("agent0", agent.Waiting), is("agent1", agent.Dead)}, "agent0 waits at a dialog, agent1 is dead"},
		{[]view.Agent{is("agent0", agent.Dead), is("agent1", agent.Waiting), is("agent2", agent.Waiting), is("agent3", agent.Hung)}, "2 agents wait at a dialog, agent0 is dead"},
		{[]view.Agent{is("agent0", agent.Idle), is("agent1", agent.Dead)}, "agent1 is dead"},
		{[]view.Agent{is("agent0", agent.Dead), is("agent1", agent.Dead), is("agent2", agent.Blocked)}, "agent2 is blocked"},
		{[]view.Agent{is("agent0", agent.Dead), is("agent1", agent.Dead)}, "2 agents are dead"},
		{[]view.Agent{{ID: "agent0", State: agent.Idle, Poison: 2}}, "All healthy · 1 item needs you"},
		{[]view.Agent{is("agent0", agent.Hung), is("agent1", agent.CrashLooping)}, "agent0 is hung"},
		{[]view.Agent{is("agent0", agent.CrashLooping)}, "agent0 keeps crashing"},
		{[]view.Agent{is("agent0", agent.Blocked)}, "agent0 is blocked"},
		{[]view.Agent{is("agent0", agent.Down)}, "agent0 is down and should be up"},
		{[]view.Agent{{ID: "agent0", State: agent.Down}}, "All agents are down"},
		{[]view.Agent{{ID: "agent0", State: agent.Down}, is("agentinfinity", agent.Idle)}, "All healthy"},
	} {
		w.agents.set(nil, tt.list...)
		body := w.mustPage(t, "/")
		if !strings.Contains(body, "<h1>"+tt.want+"</h1>") {
			t.Errorf("%v: not %q but %s", tt.list, tt.want, regexp.MustCompile("<h1>.*</h1>").FindString(body))
		}
	}
}

// A budget that all agents share is allowed as one: for one agent's name, what would be answered is the
// dialog at which it waits.
func TestSharedBudget(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	testworld.Got(breaker.Of(w.home, breaker.AllBudget).Bar(t.Context(), "agent0", "100 tokens", "day:d:", false, time.Time{}))(t)
	w.agents.set(nil, view.Agent{ID: "agent0", State: agent.Blocked, Wanted: true, Fault: agent.Fault{Reason: agent.Budget, Account: breaker.AllBudget}},
		view.Agent{ID: "agent4", State: agent.Waiting, Wanted: true, Decidable: true})
	allow := regexp.MustCompile(`netsky approve ([A-Za-z0-9]+)`)
	for _, path := range []string{"/", "/agents/agent0", "/agents/agent4"} {
		body := w.mustPage(t, path)
		_, budget, ok := strings.Cut(body, "100 tokens")
		if !ok {
			t.Errorf("%s: shows no budget", path)
			continue
		}
		if m := allow.FindStringSubmatch(budget); m == nil || strings.HasPrefix(m[1], "agent") {
			t.Errorf("%s: the budget is allowed by %q", path, m)
		}
	}
}

// Panes are filtered by name and state, and come by parts.
func TestPanesFilter(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	list := testworld.Got(w.agents.Agents(t.Context()))(t)
	for n := 4; n < 99; n++ {
		list = append(list, view.Agent{ID: agent.Clone(n), State: agent.Idle, Wanted: true})
	}
	w.agents.set(nil, list...)
	pane := regexp.MustCompile(`data-pane="([^"]*)"`)
	for path, want := range map[string]string{
		"/panes?name=1":                     "agent1",
		"/panes?name=1,+44+INFINITY":        "agent1 agentinfinity agent44",
		"/panes?state=dead":                 "agent3",
		"/panes?state=busy&name=1":          "agent1",
		"/panes?name=nobody":                "",
		"/panes?agent=agent2&agent=agent50": "agent2 agent50",
	} {
		body := w.mustPage(t, path)
		var got []string
		for _, m := range pane.FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != want || strings.Contains(body, `type="checkbox"`) {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	seen := 0
	for at, parts := "/panes", 0; at != "" && parts < 20; parts++ {
		body := w.mustPage(t, at)
		seen += len(pane.FindAllString(body, -1))
		if parts > 0 && link(body, "Previous") == "" {
			t.Errorf("%s: no way back", at)
		}
		at = link(body, "Next")
	}
	testworld.Equal(t, seen, len(list), "panes in all parts")
}

// Lists say how many are in each state, also where a page has only some of them.
func TestListGroups(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	for i := range 140 {
		state := store.TaskDone
		if i < 7 {
			state = store.TaskBlocked // the oldest
		}
		at := store.Time(i + 1)
		w.apply(t, store.UpsertTask{ID: fmt.Sprint("t-", i), Title: "x", State: state, Created: at, Updated: at})
	}
	w.apply(t, store.UpsertTask{ID: "t-open", Title: "x", State: store.TaskOpen, Created: 500, Updated: 500})
	body := w.mustPage(t, "/tasks")
	for _, want := range []string{`Blocked</a> <span class="count">7</span>`, `Open</a> <span class="count">1</span>`, `Claimed</a> <span class="count">50&#43;</span>`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s: %q", want, regexp.MustCompile(`class="count">[^<]*`).FindAllString(body, -1))
		}
	}
	testworld.Equal(t, link(body, "Open"), "/tasks?state=open", "the group's heading leads to")
}

// The list of tasks begins with those that need attention, however many others are newer; each group leads to
// the rest of it, page by page.
func TestTasksFirst(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	at := store.Time(0)
	add := func(n int, name, state string, closedBy agent.ID) {
		for i := range n {
			at++
			w.apply(t, store.UpsertTask{ID: fmt.Sprintf("t-%s-%03d", name, i), Title: "x", State: state, ClosedBy: closedBy, Assignee: agent.Clone(i%2 + 1), Created: at, Updated: at})
		}
	}
	add(2, "work", store.TaskInProgress, "")
	add(25, "blocked", store.TaskBlocked, "")
	add(2, "claimed", store.TaskDone, "agent1")
	add(3, "accepted", store.TaskDone, agent.Owner)
	add(1, "cancelled", store.TaskCancelled, "")
	add(130, "open", store.TaskOpen, "")
	groups := regexp.MustCompile(`<section class="group"[^>]*aria-label="([^"]*)"`)
	shown := func(path string) (heads, ids string) {
		body := w.mustPage(t, path)
		for _, m := range groups.FindAllStringSubmatch(body, -1) {
			heads += m[1] + ";"
		}
		of := map[string]int{}
		for _, id := range listed(body) {
			of[strings.Split(id, "-")[1]]++
		}
		return heads, fmt.Sprint(of)
	}
	const order = "In progress;Blocked;Claimed;Open;Closed;Cancelled;"
	if heads, of := shown("/tasks"); heads != order || of != "map[accepted:3 blocked:20 cancelled:1 claimed:2 open:20 work:2]" {
		t.Errorf("%s %s", heads, of)
	}
	if heads, of := shown("/tasks?assignee=agent1"); heads != order || of != "map[accepted:2 blocked:13 cancelled:1 claimed:1 open:20 work:1]" {
		t.Errorf("of one agent: %s %s", heads, of)
	}
	if heads, of := shown("/tasks?limit=3"); heads != order || of != "map[accepted:3 blocked:3 cancelled:1 claimed:2 open:3 work:2]" {
		t.Errorf("three of each: %s %s", heads, of)
	}
	if heads, of := shown("/tasks?state=done"); heads != "Claimed;Closed;" || of != "map[accepted:3 claimed:2]" {
		t.Errorf("those that have ended: %s %s", heads, of)
	}
	body := w.mustPage(t, "/tasks")
	for words, want := range map[string]string{"All that are open": "/tasks?state=open", "All that are blocked": "/tasks?state=blocked", "Claimed": "/tasks?state=done", "All that are done": ""} {
		testworld.Equal(t, link(body, words), want, "%s", words)
	}
	if !strings.Contains(body, `Open</a> <span class="count">100&#43;</span>`) || !strings.Contains(body, `Blocked</a> <span class="count">25</span>`) {
		t.Errorf("counts: %q", regexp.MustCompile(`class="count">[^<]*`).FindAllString(body, -1))
	}
	testworld.Equal(t, link(w.mustPage(t, "/tasks?assignee=agent1"), "All that are open"), "/tasks?assignee=agent1&state=open", "of one agent")
	// The API has them as before, the newest first, and its cursors are also the page's.
	l := mustGet[store.List[store.Task]](t, w, "/api/tasks?limit=3")
	if len(l.Items) != 3 || l.Items[0].ID != "t-open-129" || l.Cursor == "" {
		t.Errorf("the API: %+v", l)
	}
	if body := w.mustPage(t, "/tasks?cursor="+l.Cursor); len(listed(body)) != 50 || listed(body)[0] != "t-open-126" || link(body, "Newest") != "/tasks" || link(body, "Older") == "" {
		t.Errorf("by a cursor: %v", listed(body))
	}
}

// With a hundred agents the overview begins with what needs the owner, a few of
// each kind, and folds away the rest and who was stopped on request.
func TestOverviewOfMany(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	var list []view.Agent
	for n := range 100 {
		a := view.Agent{ID: agent.Clone(n + 1), State: agent.Idle, Wanted: true}
		switch {
		case n%4 == 1:
			a.State, a.Detail = agent.Busy, "does this"
		case n >= 60 && n < 70:
			a.State = agent.Dead
		case n >= 90:
			a.State, a.Wanted = agent.Down, false
		}
		list = append(list, a)
	}
	w.agents.set(nil, list...)
	body := w.mustPage(t, "/")
	if !strings.Contains(body, "<h1>7 agents are dead</h1>") || !strings.Contains(body, "<summary>4 more: agent") || !strings.Contains(body, "agents stopped on request</summary>") {
		t.Error("the overview of many does not begin with what needs the owner, or folds nothing")
	}
	if before, _, _ := strings.Cut(body, "<details"); strings.Count(before, `<li class="ask`) != 3 {
		t.Errorf("%d needs are shown unfolded", strings.Count(before, `<li class="ask`))
	}
	if at := strings.Index(body, `class="ask`); at < 0 || at > strings.Index(body, "does this") {
		t.Error("what needs the owner does not come first")
	}
}

// A story has each text once; what befell it is folded below it.
func TestStoryOnce(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	body := w.mustPage(t, "/messages/web-5d1f0c77a2b94e6180c3d2aa")
	main := body[strings.Index(body, "<main"):strings.Index(body, "</main>")]
	shown := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(main, "") // attributes are not read
	for _, text := range []string{"Ship tideline 1.4 today", "Make the tide tables work offline", "212 tests pass", "Tide tables work offline now", "Offline tide tables"} {
		n := strings.Count(shown, text)
		if text == "Offline tide tables" {
			n -= strings.Count(shown, "today. Offline tide tables") // words of the message
		}
		testworld.Equal(t, n, 1, "%q stands", text)
	}
	if n := strings.Count(main, `<details class="hops"`); n < 8 {
		t.Errorf("%d events can be unfolded", n)
	}
}

// What a message came to is that it was answered, also where it was filed as
// delivered after its answer.
func TestStoryAnsweredFirst(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.apply(t, store.UpsertMessage{ID: "question", From: "owner", To: "agent0", Text: "well?", Time: 1000},
		store.UpsertMessage{ID: "answer", From: "agent0", To: "owner", Kind: "reply", Text: "yes", InReplyTo: "question", Time: 2000},
		store.UpsertDelivery{Message: "question", Target: "agent0", State: store.Delivered, Queued: 1000, Time: 3000})
	body := w.mustPage(t, "/messages/question")
	summary := regexp.MustCompile(`<summary><span class="tone-good">.*?</svg>([a-z]+)</span>`).FindStringSubmatch(body)
	if summary == nil || summary[1] != "answered" || !strings.Contains(body, "delivered</a>") {
		t.Errorf("it came to %q", summary)
	}
}

// An agent's answer to the owner is complete when it has come; his own message
// waits for an answer.
func TestStepsOfAnAnswer(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	for id, m := range map[string]store.UpsertMessage{"m-asked": {From: "owner", To: "agent0"}, "m-reply": {From: "agent0", To: "owner", InReplyTo: "m-asked"}} {
		m.ID, m.Text, m.Time = id, "words", 1
		w.apply(t, m, store.UpsertDelivery{Message: id, Target: m.To, State: store.Delivered, Time: 2})
	}
	if body := w.mustPage(t, "/messages/m-reply"); strings.Contains(body, "answered<span") || !strings.Contains(body, "Your mailbox") || strings.Contains(body, "Mailbox of") {
		t.Errorf("the answer: %s", body)
	}
}
