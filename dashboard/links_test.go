package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/store"
)

// Tasks, their briefs and answers, and the sessions in which they were worked on lead to each other; a list
// says why a task does not go on.
func TestLinks(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.apply(t,
		store.UpsertActor{ID: "agent1", Runtime: "claude", Desired: store.DesiredUp, Updated: 1},
		store.StartSession{Start: "aaaa1111", Actor: "agent1", Runtime: "claude", State: agent.Idle, Started: 100},
		store.SessionState{Start: "aaaa1111", Thread: "conversation-7", State: agent.Idle, Time: 101},
		store.UpsertTask{ID: "t-1", Title: "the first", State: store.TaskDone, AskedBy: "owner", Assignee: "agent1", Starts: 2, Created: 1, Started: 150, Ended: 300, Updated: 300},
		store.UpsertMessage{ID: "brief-t-1-2", From: "owner", To: "agent1", Kind: "brief", Text: "do it", Time: 150},
		store.UpsertMessage{ID: "r-1", From: "agent1", To: "owner", Kind: "reply", Text: "did it", InReplyTo: "brief-t-1-2", Time: 290},
		store.UpsertDelivery{Message: "brief-t-1-2", From: "owner", Target: "agent1", State: store.Delivered, Time: 160},
		store.UpsertTask{ID: "t-2", Title: "the second", State: store.TaskBlocked, AskedBy: "owner", Assignee: "agent1", Created: 2, Updated: 2},
		store.AddNote{ID: "why", About: "t-2", Author: "agent1", Text: "the server is away", Created: 3},
		store.UpsertTask{ID: "t-3", Title: "the third", State: store.TaskOpen, Starter: "owner", AskedBy: "owner", Assignee: "agent1", Created: 4, Updated: 4},
		store.AddDependency{Task: "t-3", Needs: "t-2", Created: 5}, store.AddDependency{Task: "t-3", Needs: "t-1", Created: 5},
	)
	for path, want := range map[string][]string{
		"/tasks/t-1":            {`href="/messages/brief-t-1-2">brief</a>`, `href="/messages/r-1">answer</a>`},
		"/messages/brief-t-1-2": {`href="/tasks/t-1"`, `href="/sessions/aaaa1111">this session</a>`},
		"/messages/r-1":         {`href="/tasks/t-1"`},
		"/sessions/aaaa1111":    {`href="/tasks/t-1"`, `href="/sessions?thread=conversation-7"`},
		"/tasks":                {"the server is away", "waits for: the second"},
		"/":                     {"the server is away", "waits for: the second"},
		"/agents/agent1":        {"the server is away", "waits for: the second"},
		"/tasks/t-3":            {"waits for: the second"},
	} {
		body := w.mustPage(t, path)
		for _, s := range want {
			testworld.Contains(t, body, s, "%s", path)
		}
		checkPage(t, path, body)
	}
	if body := w.mustPage(t, "/sessions/aaaa1111"); strings.Contains(body, "/messages?thread=") {
		t.Error("a session's conversation is no thread of messages")
	}
	for path, want := range map[string]string{
		"/api/tasks/t-1":           `"brief":"brief-t-1-2"`,
		"/api/tasks?state=open":    `"now":"waits for: the second"`,
		"/api/tasks?state=blocked": `"now":"the server is away"`,
	} {
		if a := w.get(t, path); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d, no %s: %s", path, a.status, want, a.body)
		}
	}
	if a := w.get(t, "/api/tasks/t-1"); !strings.Contains(a.body, `"answer":"r-1"`) {
		t.Errorf("no answer: %s", a.body)
	}
}

// A group of several states says how many are in each, and leads to them, wherever they are in the list.
func TestGroupParts(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	var ops []store.Op
	for i := range 120 {
		id, state := fmt.Sprintf("m-%03d", i), store.Delivered
		switch {
		case i < 4 || i == 119:
			state = store.Queued
		case i == 118 || i == 5:
			state = store.Claimed
		}
		ops = append(ops, store.UpsertMessage{ID: id, From: "agent0", To: "agent1", Text: "x", Time: store.Time(i + 1)},
			store.UpsertDelivery{Message: id, From: "agent0", Target: "agent1", State: state, Time: store.Time(i + 1)})
	}
	w.apply(t, ops...)
	body := w.mustPage(t, "/messages")
	for _, s := range []string{`<span class="count">7</span>`, `href="/messages?state=queued">5 queued</a>`, `href="/messages?state=claimed">2 `} {
		testworld.Contains(t, body, s)
	}
	checkPage(t, "/messages", body)
}
