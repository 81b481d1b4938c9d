package dashboard_test

import (
	"encoding/json"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/dashboard"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
)

// Row 34: whatever stands in any field comes back as that text, and no answer
// holds a "<" that a browser could take for markup.
func TestRow34Records(t *testing.T) {
	t.Parallel()
	for _, evil := range testworld.Files(t, "web") {
		w := mustWorld(t, nil)
		text := strings.ReplaceAll(evil, "\x00", "")
		w.apply(t,
			store.UpsertActor{ID: "agent1", Runtime: text, Dir: text, Objective: text},
			store.StartSession{Start: "s-1", Actor: "agent1", Runtime: text, Tmux: text, Thread: text},
			store.EndSession{Start: "s-1", Reason: text, LastLines: text},
			store.UpsertTask{ID: text, Title: text, Body: text, AskedBy: "owner", Assignee: "agent1", Proof: text},
			store.UpsertMessage{ID: "m-1", From: "agent1", To: "agent0", Text: text, Kind: text, Thread: text, Via: text,
				Attachments: []string{text}, Metadata: map[string]json.RawMessage{"x": raw(t, map[string]string{text: text})}},
			store.UpsertDelivery{Message: "m-1", Target: "agent0", State: store.Poisoned, Reason: text},
			store.AddNote{ID: "n-1", About: text, Author: text, Text: text},
			store.AddLog{Text: text, Part: text, About: text, Fields: map[string]any{text: text}},
		)
		testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent1", Tool: text, Text: text, Reason: text, Dir: text}))(t)
		w.agents.set(nil, view.Agent{ID: "agent1", State: agent.State(text), Evidence: text, Detail: text, Runtime: text, Dir: text})
		w.panes.set("agent1", text)
		for _, path := range []string{
			"/api/snapshot", "/api/agents", "/api/approvals", "/api/pane/agent1", "/api/actors", "/api/actors/agent1", "/api/sessions",
			"/api/sessions/s-1", "/api/tasks", "/api/messages", "/api/messages/m-1", "/api/deliveries", "/api/deliveries/m-1",
			"/api/notes", "/api/notes/n-1", "/api/logs", "/api/logs/1", "/api/timeline/m-1", "/api/timeline/agent1",
		} {
			a := w.get(t, path)
			if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
				t.Errorf("%q: %s: %d %s", evil, path, a.status, a.body)
			}
			checkInert(t, path, a.body)
		}
		v := mustGet[dashboard.Overview](t, w, "/api/snapshot")
		if v.Agents[0].Detail != text || v.Messages[0].Text != text || v.Tasks[0].Title != text || v.Approvals[0].Text != text ||
			v.Actors[0].Session.LastLines != text || v.Logs[0].Text != text {
			t.Errorf("%q came back as %+v", text, v)
		}
		for _, e := range mustEvents(t, w, "/events?after=0&watch=agent1", "records", "agent:agent1", "approvals", "pane:agent1") {
			checkInert(t, "event "+e.Key, string(e.Data))
		}
		w.stop()
	}
}

// Row 34: what a request holds comes back in a refusal as text too, for a script
// and for a person.
func TestRow34Refusals(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	for _, evil := range testworld.Files(t, "web") {
		esc := strings.NewReplacer("%", "%25", " ", "%20", "\n", "%0a", "\x00", "%00", "\x7f", "%7f", `"`, "%22", "#", "%23", "?", "%3f").Replace(evil)
		for _, path := range []string{"/api/messages/" + esc, "/api/messages?from=" + strings.ReplaceAll(esc, "&", "%26"), "/api/tasks?" + esc, "/" + esc, "/api/logs?cursor=" + esc} {
			for _, accept := range []string{"application/json", "text/html"} {
				r := w.request(t, "GET", path, "")
				r.Header.Set("Accept", accept)
				a := mustAnswer(t, r)
				if a.status < 300 {
					t.Errorf("%s: %d", path, a.status)
				}
				if strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
					if strings.Contains(a.body, "<script") || strings.Contains(a.body, "<img") || strings.Contains(a.body, "<svg") || strings.Contains(a.body, "<b") {
						t.Errorf("%s: %s", path, a.body)
					}
					continue
				}
				checkInert(t, path, a.body)
			}
		}
	}
}

func checkInert(tb testing.TB, what, body string) {
	tb.Helper()
	for _, bad := range []string{"<", ">", "\u2028", "\u2029", "\x00"} {
		if strings.Contains(body, bad) {
			tb.Errorf("%s holds %q: %.300s", what, bad, body)
		}
	}
	if !json.Valid([]byte(body)) {
		tb.Errorf("%s is no JSON: %.300s", what, body)
	}
}

func raw(tb testing.TB, v any) json.RawMessage {
	tb.Helper()
	data := testworld.Got(json.Marshal(v))(tb)
	return data
}
