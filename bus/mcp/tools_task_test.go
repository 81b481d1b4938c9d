package mcp_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/store"
)

var taskID = regexp.MustCompile(`t-[0-9a-f]{16}`)

// mustAdd adds a task by the tool and gives its ID.
func (s *station) mustAdd(call func(tool string, args any) string, args any) string {
	s.Helper()
	text := call("task_add", args)
	id := taskID.FindString(text)
	if id == "" {
		s.Fatalf("task_add: %s", text)
	}
	return id
}

func (s *station) mustTask(id string) store.Task {
	s.Helper()
	return testworld.Got(s.db.Task(s.ctx, id))(s)
}

func TestTaskFromBeginningToEnd(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Clone(1)).serve()
	c := s.client("", nil)
	do := func(tool string, args any) string { return s.mustCall(c, tool, args) }
	first := s.mustAdd(do, map[string]any{"title": " find\nout ", "body": "all", "priority": 0, "estimate_minutes": 30, "message": "m-1"})
	want := store.Task{ID: first, Title: "find out", Body: "all", State: store.TaskOpen, AskedBy: "agent1", Message: "m-1", EstimateMinutes: 30}
	got := s.mustTask(first)
	want.Created, want.Updated = got.Created, got.Updated
	if fmt.Sprintf("%+v", bare(got)) != fmt.Sprintf("%+v", want) || got.Created == 0 {
		t.Errorf("added %+v, want %+v", got, want)
	}
	later := s.mustAdd(do, map[string]any{"title": "then", "needs": []string{first[:8]}})
	testworld.Equal(t, s.mustTask(later).Priority, 5, "priority")
	testworld.Contains(t, do("task_update", map[string]any{"id": later, "state": "in_progress"}), "waits for these unfinished tasks:\n  "+first)
	do("task_update", map[string]any{"id": first[:8], "state": "in_progress"})
	if k := s.mustTask(first); k.State != store.TaskInProgress || k.Assignee != "agent1" || k.Started == 0 {
		t.Errorf("begun: %+v", k)
	}
	for args, says := range map[string]string{
		`{"id":"` + first + `","state":"done"}`:           "proof: missing",
		`{"id":"` + first + `","state":"blocked"}`:        "note: missing",
		`{"id":"` + first + `","state":"fine"}`:           "must be open",
		`{"id":"` + first + `","actual_minutes":-1}`:      "actual_minutes",
		`{"id":"` + first + `","priority":10}`:            "must be 0 to 9",
		`{"id":"` + first + `","assignee":"agent2"}`:      "may not assign work",
		`{"id":"` + first[:4] + `","state":"done"}`:       "not on record",
		`{"id":"t-ffffffffffffffff","state":"cancelled"}`: "the tasks tool lists",
		`{"id":"","state":"done"}`:                        "id: missing",
	} {
		if text, failed := s.call(c, "task_update", rawArgs(args)); !failed || !strings.Contains(text, says) {
			t.Errorf("%s: %s", args, text)
		}
	}
	do("task_update", map[string]any{"id": first, "state": "blocked", "note": "by the weather"})
	do("task_update", map[string]any{"id": first, "state": "done", "proof": "go test: ok", "note": "it was <channel easy"})
	if k := s.mustTask(first); k.State != store.TaskDone || k.Proof != "go test: ok" || k.Ended == 0 || k.ActualMinutes != 1 || k.Created != got.Created {
		t.Errorf("done: %+v", k)
	}
	text := do("tasks", map[string]any{"id": first[:10]})
	for _, word := range []string{first, "claimed", "asked by agent1", "estimate 30 min", "took at most a minute", "proof: go test: ok", "by the weather", "it was &lt;channel easy"} {
		testworld.Contains(t, text, word, "shown without")
	}
	testworld.Contains(t, do("task_update", map[string]any{"id": first}), "nothing to change")
	do("task_update", map[string]any{"id": first, "state": "open", "assignee": "nobody"})
	if k := s.mustTask(first); k.Ended != 0 || k.Assignee != "" {
		t.Errorf("open again: %+v", k)
	}
}

// bare is the task without what only the store knows.
func bare(k store.Task) store.Task {
	return store.Task{
		ID: k.ID, Title: k.Title, Body: k.Body, Priority: k.Priority, State: k.State, AskedBy: k.AskedBy, Assignee: k.Assignee,
		Message: k.Message, EstimateMinutes: k.EstimateMinutes, ActualMinutes: k.ActualMinutes, Proof: k.Proof,
		Created: k.Created, Started: k.Started, Ended: k.Ended, Updated: k.Updated,
	}
}

// A clone's hands are on its own tasks and on those that nobody has.
func TestWhoMayUpdate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		self, assignee agent.ID
		may            bool
	}{
		{"agent1", "agent1", true}, {"agent1", "", true}, {"agent1", "agent2", false}, {"agent1", "agent0", false},
		{"agent0", "agent1", true}, {"agent0", "", true}, {"agentinfinity", "agent1", true},
	} {
		s := mustStation(t, tt.self)
		testworld.Must(t, s.db.Apply(s.ctx, store.UpsertTask{ID: "t-given", Title: "x", Assignee: tt.assignee, AskedBy: agent.Root}))
		c := s.serve().client("", nil)
		text, failed := s.call(c, "task_update", map[string]any{"id": "t-given", "priority": 1, "note": "mine"})
		if failed == tt.may || (s.mustTask("t-given").Priority == 1) != tt.may {
			t.Errorf("%s, a task of %q: %s", tt.self, tt.assignee, text)
		}
		if notes, err := s.db.Notes(s.ctx, store.NoteFilter{}); err != nil || (len(notes.Items) == 1) != tt.may {
			t.Errorf("notes = %v, %v", notes, err)
		}
		text, failed = s.call(c, "task_add", map[string]any{"title": "more", "assignee": "agent2"})
		testworld.Equal(t, failed, tt.self.IsClone(), "%s gives work: %s", tt.self, text)
		if !failed && !strings.Contains(text, "agent2 has not been told yet") {
			t.Error(text)
		}
	}
}

// The manager gives tasks out, to others; a task of its own it just begins.
func TestTaskStart(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Root)
	if err := s.db.Apply(s.ctx, store.UpsertTask{ID: "t-aaaaaa1", Title: "x", Assignee: "agent2"}, store.UpsertTask{ID: "t-bbbbbb1", Title: "y", Assignee: agent.Root}); err != nil {
		t.Fatal(err)
	}
	c := s.serve().client("", nil)
	s.mustCall(c, "task_start", map[string]any{"id": "t-aaaaaa"})
	s.mustCall(c, "task_start", map[string]any{"id": "t-aaaaaa", "agent": "1"})
	testworld.Equal(t, strings.Join(s.team.started, ", "), "t-aaaaaa1 to , t-aaaaaa1 to agent1", "started")
	for args, says := range map[string]string{
		`{"id":"t-bbbbbb"}`: "is yours", `{"id":"t-aaaaaa","agent":"agent0"}`: "is yours", `{"id":"t-zzzzzz"}`: "not on record", `{"id":"t-aaaaaa","agent":"x"}`: "assignee",
	} {
		if text, failed := s.call(c, "task_start", rawArgs(args)); !failed || !strings.Contains(text, says) {
			t.Errorf("%s: %s", args, text)
		}
	}
}

// A task whose state is changed is taken back from its worker, and what is left to say is said.
func TestTaskTakenBack(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Root)
	var taken []string
	s.book.takeBack = func(before, now store.Task) string {
		taken = append(taken, before.State+" to "+now.State)
		return "agent2 is told"
	}
	testworld.Must(t, s.db.Apply(s.ctx, store.UpsertTask{ID: "t-aaaaaa1", Title: "x", Assignee: "agent2", State: store.TaskInProgress, Brief: "b"}))
	c := s.serve().client("", nil)
	testworld.Lacks(t, s.mustCall(c, "task_update", map[string]any{"id": "t-aaaaaa1", "note": "n"}), "is told")
	testworld.Contains(t, s.mustCall(c, "task_update", map[string]any{"id": "t-aaaaaa1", "state": "cancelled"}), "agent2 is told")
	testworld.Equal(t, strings.Join(taken, ", "), "in_progress to cancelled", "taken back")
}

func TestTaskAddRefuses(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Root).serve()
	c := s.client("", nil)
	for args, says := range map[string]string{
		`{}`: "title: missing", `{"title":"  \n"}`: "title: missing", `{"title":"` + strings.Repeat("x", 201) + `"}`: "put the rest into body",
		`{"title":"x","body":"` + strings.Repeat("x", 70000) + `"}`: "write it to a file", `{"title":"x","priority":-1}`: "must be 0 to 9",
		`{"title":"x","priority":10}`: "must be 0 to 9", `{"title":"x","estimate_minutes":-5}`: "estimate_minutes", `{"title":"x","assignee":"bob"}`: "assignee",
		`{"title":"x","needs":["t-none-there"]}`: "not on record", `{"title":"x","needs":"t-1"}`: "must be a list", `{"title":"x","needs":[1]}`: "needs",
		`{"title":"x","state":"done"}`: "unknown field",
	} {
		if text, failed := s.call(c, "task_add", rawArgs(args)); !failed || !strings.Contains(text, says) {
			t.Errorf("%.80s: %s", args, text)
		}
	}
	if list, err := s.db.Tasks(s.ctx, store.TaskFilter{}); err != nil || len(list.Items) > 0 {
		t.Errorf("on record: %v, %v", list, err)
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Root)
	if got := s.mustTasks(); got != "" {
		t.Fatal(got)
	}
	for i, k := range []store.UpsertTask{
		{ID: "t-aaaaaa1", Title: "late", Priority: 9}, {ID: "t-aaaaaa2", Title: "soon", Priority: 1, Assignee: "agent1"},
		{ID: "t-bbbbbb3", Title: "at it", State: store.TaskInProgress, Priority: 8, Assignee: "agent1"},
		{ID: "t-bbbbbb4", Title: "over", State: store.TaskDone}, {ID: "t-bbbbbb5", Title: "stuck", State: store.TaskBlocked, Assignee: "agent2"},
	} {
		k.Updated = store.Time(1000 + i)
		testworld.Must(t, s.db.Apply(s.ctx, k))
	}
	c := s.serve().client("", nil)
	for args, want := range map[string]string{
		`{}`: "t-bbbbbb3 t-bbbbbb5 t-aaaaaa2 t-aaaaaa1", `{"state":"done"}`: "t-bbbbbb4", `{"state":"open"}`: "t-aaaaaa2 t-aaaaaa1",
		`{"assignee":"1"}`: "t-bbbbbb3 t-aaaaaa2", `{"assignee":"nobody"}`: "t-aaaaaa1", `{"assignee":"agent2","state":"open"}`: "",
		`{"state":"cancelled"}`: "",
	} {
		var ids []string
		text := s.mustCall(c, "tasks", rawArgs(args))
		for l := range strings.Lines(text) {
			if id, _, _ := strings.Cut(l, " "); strings.HasPrefix(id, "t-") {
				ids = append(ids, id)
			}
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("tasks %s = %s, want %s:\n%s", args, got, want, text)
		}
	}
	for args, says := range map[string]string{
		`{"state":"x"}`: "must be open", `{"assignee":"x"}`: "assignee", `{"id":"t-aaaaaa"}`: "2 tasks have ids", `{"id":"t-zzzzzz"}`: "not on record",
	} {
		if text, failed := s.call(c, "tasks", rawArgs(args)); !failed || !strings.Contains(text, says) {
			t.Errorf("tasks %s: %s", args, text)
		}
	}
}

// mustTasks lists what is on record.
func (s *station) mustTasks() (titles string) {
	s.Helper()
	list := testworld.Got(s.db.Tasks(s.ctx, store.TaskFilter{}))(s)
	for _, k := range list.Items {
		titles += k.Title + " "
	}
	return titles
}

// However many there are, a result stays one that the client takes.
func TestManyTasks(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Root)
	var ops []store.Op
	for i := range 1200 {
		ops = append(ops, store.UpsertTask{ID: fmt.Sprintf("t-%06d", i), Title: strings.Repeat("é", 100), Priority: i % 10, Body: strings.Repeat("x", 100)})
	}
	ops = append(ops, store.UpsertTask{ID: "t-large", Title: "x", State: store.TaskDone, Body: strings.Repeat("é", 30000), Proof: strings.Repeat("\x1b", 60000)})
	testworld.Must(t, s.db.Apply(s.ctx, ops...))
	c := s.serve().client("", nil)
	for _, args := range []string{`{}`, `{"id":"t-large"}`} {
		if text := s.mustCall(c, "tasks", rawArgs(args)); len(text) > 21<<10 || !strings.Contains(text, " more") {
			t.Errorf("tasks %s: %d bytes: …%s", args, len(text), text[max(0, len(text)-80):])
		}
	}
}

func TestNote(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Clone(2))
	testworld.Must(t, s.db.Apply(s.ctx, store.UpsertTask{ID: "t-abcdef12", Title: "x"}))
	testworld.Must(t, s.db.Apply(s.ctx, store.UpsertMessage{ID: "m-given-1", From: agent.Root, To: agent.Clone(2), Text: "hi", Time: 1}))
	s.mustSend(envelope.Envelope{ID: "m-waiting", From: agent.Root, Text: "not on record yet"})
	c := s.serve().client("", nil)
	for about, want := range map[string]string{"t-abcdef": "t-abcdef12", "3": "agent3", "m-given": "m-given-1", "m-waiting": "m-waiting", " agent0 ": "agent0"} {
		s.mustCall(c, "note", map[string]any{"about": about, "text": " so it is "})
		list, err := s.db.Notes(s.ctx, store.NoteFilter{About: want})
		if err != nil || len(list.Items) != 1 || list.Items[0].Author != "agent2" || list.Items[0].Text != "so it is" {
			t.Errorf("about %s: %+v, %v", about, list, err)
		}
	}
	for args, says := range map[string]string{
		`{"text":"x"}`: "about: missing", `{"about":"x"}`: "text: missing", `{"about":"a\nb","text":"x"}`: "must be an id",
		`{"about":"agnt1","text":"x"}`: `about: "agnt1": nothing on record has this name or id`, `{"about":"m-wait","text":"x"}`: "nothing on record",
		`{"about":"` + strings.Repeat("x", 200) + `","text":"x"}`: "must be an id", `{"about":"x","text":"` + strings.Repeat("x", 70000) + `"}`: "at most 65536",
	} {
		if text, failed := s.call(c, "note", rawArgs(args)); !failed || !strings.Contains(text, says) {
			t.Errorf("%.60s: %s", args, text)
		}
	}
}

// A database that fails is told of; what only lies in the spool is as good as done.
func TestRecordsThatFail(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Root)
	broken := &failing{records: records{s.db}}
	s.options.Records = broken
	c := s.serve().client("", nil)
	broken.err = fmt.Errorf("%w: disk full", store.ErrSpooled)
	testworld.Contains(t, s.mustCall(c, "task_add", map[string]any{"title": "x"}), "added; the database cannot be written at the moment")
	testworld.Contains(t, s.log.String(), "disk full", "log")
	broken.err = fmt.Errorf("%w: disk full", store.ErrUnrecorded)
	for tool, args := range map[string]any{
		"task_add": map[string]any{"title": "x"}, "note": map[string]any{"about": "agent1", "text": "y"},
	} {
		if text, failed := s.call(c, tool, args); !failed || !strings.Contains(text, "not recorded: disk full") {
			t.Errorf("%s: %s", tool, text)
		}
	}
	s.db.Close()
	for tool, args := range map[string]any{"tasks": nil, "task_update": map[string]any{"id": "t-123456"}} {
		if text, failed := s.call(c, tool, args); !failed || !strings.Contains(text, tool) {
			t.Errorf("%s: %s", tool, text)
		}
	}
	s.mustCall(c, "send", map[string]any{"to": "agent1", "text": "mail goes on"})
}

type failing struct {
	records
	err error
}

func (f *failing) Record(context.Context, ...store.Op) error { return f.err }
