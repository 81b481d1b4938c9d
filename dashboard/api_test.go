package dashboard_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/dashboard/live"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
)

// fill puts a little of everything on record.
func (w *world) fill(tb testing.TB) {
	tb.Helper()
	w.apply(tb,
		store.UpsertActor{ID: "agent0", Runtime: "demo", Objective: "lead"},
		store.UpsertActor{ID: "agent1", Runtime: "demo", Objective: "work"},
		store.StartSession{Start: "s-0", Actor: "agent0", Started: 1000},
		store.StartSession{Start: "s-1", Actor: "agent1", Thread: "th", Started: 2000},
		store.EndSession{Start: "s-1", Reason: "done", Time: 3000},
		store.UpsertTask{ID: "t-1", Title: "build it", State: store.TaskOpen, Assignee: "agent1", AskedBy: "owner", Message: "m-1"},
		store.UpsertTask{ID: "t-2", Title: "test it", State: store.TaskDone, Assignee: "agent0"},
		store.UpsertMessage{ID: "m-1", From: "owner", To: "agent0", Text: "please", Time: 1000, Thread: "th"},
		store.UpsertMessage{ID: "m-2", From: "agent0", To: "agent1", Text: "build", Kind: "brief", Time: 2000},
		store.UpsertMessage{ID: "m-3", From: "agent1", To: "agent0", Text: "built", Kind: "reply", InReplyTo: "m-2", Time: 3000},
		store.UpsertDelivery{Message: "m-1", Target: "agent0", State: store.Queued, Time: 1000},
		store.UpsertDelivery{Message: "m-2", Target: "agent1", State: store.Delivered, Time: 2000},
		store.AddNote{ID: "n-1", About: "t-1", Author: "owner", Text: "careful"},
		store.AddNote{ID: "n-2", About: "m-1", Author: "agent0", Text: "noted"},
		store.AddLog{Text: "up", Part: "up", Actor: "agent0"},
		store.AddLog{Text: "poison", Part: "observe", Actor: "agent1", Level: store.LevelWarn, About: "m-1"},
		store.AddLog{Text: "down", Part: "down", Actor: "agent0"},
		store.UpsertUpdate{ID: "u-1.01", State: "preflight", Started: 1000}, store.UpsertUpdate{ID: "u-1.02", State: "build", Started: 2000},
	)
}

// names are what the items of a list are called.
func names(tb testing.TB, body string) string {
	tb.Helper()
	var l struct{ Items []map[string]any }
	testworld.Must(tb, json.Unmarshal([]byte(body), &l))
	if l.Items == nil {
		tb.Fatalf("no list: %s", body)
	}
	var got []string
	for _, i := range l.Items {
		for _, field := range []string{"id", "start", "message"} {
			if v, ok := i[field]; ok {
				got = append(got, fmt.Sprint(v))
				break
			}
		}
	}
	return strings.Join(got, " ")
}

func TestLists(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.fill(t)
	w.agents.set(nil, view.Agent{ID: "agent0", State: agent.Idle}, view.Agent{ID: "agent1", State: agent.Down})
	for path, want := range map[string]string{
		"/api/agents":                               "agent0 agent1",
		"/api/approvals":                            "",
		"/api/actors":                               "agent0 agent1",
		"/api/sessions":                             "s-1 s-0",
		"/api/sessions?actor=agent0":                "s-0",
		"/api/sessions?open=true":                   "s-0",
		"/api/sessions?open=false":                  "s-1 s-0",
		"/api/sessions?thread=th":                   "s-1",
		"/api/tasks?state=done":                     "t-2",
		"/api/tasks?assignee=agent1&asked_by=owner": "t-1",
		"/api/tasks?message=m-1":                    "t-1",
		"/api/tasks?text=test":                      "t-2",
		"/api/messages":                             "m-3 m-2 m-1",
		"/api/messages?from=owner":                  "m-1",
		"/api/messages?to=agent1":                   "m-2",
		"/api/messages?with=agent1":                 "m-3 m-2",
		"/api/messages?kind=brief":                  "m-2",
		"/api/messages?thread=th":                   "m-1",
		"/api/messages?in_reply_to=m-2":             "m-3",
		"/api/messages?text=buil":                   "m-3 m-2",
		"/api/messages?id=m-1":                      "m-1",
		"/api/messages?since=1970-01-01T00:00:02Z":  "m-3 m-2",
		"/api/messages?from=agent9":                 "",
		"/api/messages?state=queued":                "m-1",
		"/api/deliveries?state=queued":              "m-1",
		"/api/deliveries?target=agent1":             "m-2",
		"/api/deliveries?message=m-1&from=owner":    "m-1",
		"/api/deliveries/m-2":                       "m-2",
		"/api/notes?about=t-1":                      "n-1",
		"/api/notes?author=agent0":                  "n-2",
		"/api/notes?text=care":                      "n-1",
		"/api/logs":                                 "3 2 1",
		"/api/logs?after=1":                         "2 3",
		"/api/logs?level=WARN":                      "2",
		"/api/logs?part=up&actor=agent0":            "1",
		"/api/logs?about=m-1":                       "2",
		"/api/logs?text=o":                          "3 2",
		"/api/updates":                              "u-1.02 u-1.01",
	} {
		a := w.get(t, path)
		if a.status != 200 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
			continue
		}
		testworld.Equal(t, names(t, a.body), want, "%s", path)
	}
}

// Every list is read to its end by cursors, each record once.
func TestCursors(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	var ops []store.Op
	for i := range 25 {
		id := fmt.Sprintf("x-%02d", i)
		ops = append(ops, store.StartSession{Start: id, Actor: "agent1", Started: store.Time(i + 1)}, store.UpsertTask{ID: id, Title: "x"},
			store.UpsertMessage{ID: id, From: "owner", To: "agent1", Text: "x"}, store.UpsertDelivery{Message: id, Target: "agent1", State: store.Queued},
			store.AddNote{ID: id, Text: "x"}, store.AddLog{Text: "x"})
	}
	w.apply(t, ops...)
	for _, path := range []string{"/api/sessions?", "/api/tasks?", "/api/messages?", "/api/deliveries?", "/api/notes?", "/api/logs?", "/api/logs?after=1&"} {
		seen, cursor := map[string]bool{}, ""
		for range 10 {
			a := w.get(t, path+"limit=7&cursor="+cursor)
			for n := range strings.FieldsSeq(names(t, a.body)) {
				if seen[n] {
					t.Errorf("%s: %s twice", path, n)
				}
				seen[n] = true
			}
			var l struct{ Cursor string }
			testworld.Must(t, json.Unmarshal([]byte(a.body), &l))
			if cursor = l.Cursor; cursor == "" {
				break
			}
		}
		want := 25
		if strings.Contains(path, "after") {
			want = 24
		}
		if len(seen) != want || cursor != "" {
			t.Errorf("%s: %d records, want %d", path, len(seen), want)
		}
	}
}

func TestOne(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.fill(t)
	for path, want := range map[string]string{
		"/api/actors/agent1": `"objective":"work"`, "/api/sessions/s-1": `"reason":"done"`, "/api/tasks/t-1": `"title":"build it"`, "/api/tasks/t-2": `"word":"claimed"`, "/api/tasks?state=done": `"word":"claimed"`,
		"/api/messages/m-2": `"kind":"brief"`, "/api/notes/n-2": `"text":"noted"`, "/api/logs/1": `"text":"up"`, "/api/logs/2": `"level":"WARN"`,
		"/api/timeline/m-2": `"kind":"delivered"`, "/api/timeline/t-1": `"subject":{"kind":"task","id":"t-1"}`,
	} {
		if a := w.get(t, path); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.body, want)
		}
	}
	v := mustGet[dashboard.Overview](t, w, "/api/snapshot")
	if v.Version != "v1" || len(v.Actors) != 2 || len(v.Messages) != 3 || v.LastLog != 3 || v.Waiting[store.Queued] != 1 || len(v.Errors) != 0 {
		t.Errorf("snapshot = %+v", v)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.fill(t)
	for path, want := range map[string]int{
		"/api/actors/agent9": 404, "/api/actors/x": 404, "/api/sessions/x": 404, "/api/tasks/x": 404, "/api/messages/x": 404,
		"/api/deliveries/x": 404, "/api/notes/x": 404, "/api/logs/4": 404, "/api/logs/0": 404, "/api/logs/x": 400, "/api/logs/-1": 400,
		"/api/timeline/nothing": 404, "/api/nothing": 404, "/api/": 404, "/api/messages/": 404, "/api/messages/m-1/x": 404,
		"/api/messages?cursor=x": 400, "/api/logs?cursor=x": 400, "/api/messages?limit=0": 400, "/api/messages?limit=1001": 400,
		"/api/messages?limit=x": 400, "/api/messages?from=x": 400, "/api/messages?form=agent0": 400, "/api/messages?since=yesterday": 400,
		"/api/messages?from=agent0&from=agent1": 400, "/api/messages?state=x": 400, "/api/tasks?state=x": 400, "/api/deliveries?state=x": 400, "/api/logs?level=info": 400,
		"/api/logs?after=x": 400, "/api/sessions?open=yes": 400, "/api/messages?%zz": 400, "/api/messages?a;b": 400, "/api/actors?x=y": 400,
		"/api/snapshot?x=y": 400, "/api/messages/m-1?x=y": 400,
	} {
		a := w.get(t, path)
		var p access.Problem
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != want || p.Status != want || p.Type != "about:blank" ||
			p.Title == "" || p.Detail == "" || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s %s, want %d", path, a.status, a.header.Get("Content-Type"), a.body, want)
		}
	}
	r := w.request(t, "GET", "/nothing", "")
	r.Header.Set("Accept", "text/html,*/*")
	if a := mustAnswer(t, r); a.status != 404 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("a person is answered %d %s", a.status, a.header.Get("Content-Type"))
	}
}

// What waits for the owner is shown with what it asks and what answers it, and
// is gone when it has its answer.
func TestApprovals(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	a := testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent1", Tool: "Bash", Text: "rm -r x", Reason: "tidy", Dir: "/src", AskedMS: 5000}))(t)
	testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent2", Tool: "Edit", Text: "y", AskedMS: 6000}))(t)
	l := mustGet[store.List[live.Approval]](t, w, "/api/approvals")
	want := live.Approval{Code: a.Code, Agent: "agent1", Tool: "Bash", Text: "rm -r x", Reason: "tidy", Dir: "/src", Asked: 5000,
		Allow: "netsky approve " + a.Code, Deny: "netsky approve " + a.Code + " --deny"}
	if len(l.Items) != 2 || l.Items[0] != want {
		t.Errorf("approvals = %+v, want first %+v", l.Items, want)
	}
	if v := mustGet[dashboard.Overview](t, w, "/api/snapshot"); len(v.Approvals) != 2 {
		t.Errorf("snapshot has %d approvals", len(v.Approvals))
	}
	testworld.Got(home.Approvals(w.home).Answer(a.Code, agent.Answer{Allow: true}))(t)
	if l := mustGet[store.List[live.Approval]](t, w, "/api/approvals"); len(l.Items) != 1 || l.Items[0].Agent != "agent2" {
		t.Errorf("approvals = %+v", l.Items)
	}
}
