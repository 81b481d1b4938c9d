package dispatch_test

import (
	"testing"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
	"netsky/work/dispatch"
	"netsky/work/record"
	"netsky/work/task"
)

// unknown is of agents of which nothing is known.
func unknown(agent.ID) (spawn.Status, bool) { return spawn.Status{}, false }

// A task in progress says that its agent is down, wherever that is, unless it is about to be started here or nothing is known.
func TestStuck(t *testing.T) {
	r := newRig(t)
	state := func(id agent.ID) (spawn.Status, bool) {
		st := spawn.Status{Agent: id, State: agent.Dead}
		if id.Local() == "agent2" {
			st.State = agent.Idle
		}
		return st, id.Local() != "agent3"
	}
	for id, want := range map[agent.ID]string{
		"agent1": "agent1 is dead", "agent4": "", "agent2": "", "agent3": "",
		"agent1@build1": "agent1@build1 is dead", "agent4@build1": "agent4@build1 is dead", "agent2@build1": "", "agent3@build1": "",
	} {
		list := []store.Task{{ID: "t-1", State: store.TaskInProgress, Assignee: id}}
		soon := func(st spawn.Status) bool { return st.Agent.Local() == "agent4" }
		views := testworld.Got(dispatch.Views(r.Context(), r.db, &task.Judge{}, list, state, soon))(r)
		testworld.Equal(t, views[0].Now, want, "%s", id)
	}
}

// now returns what a list says of a task beside its title, in a list of all.
func (r *rig) now(id string) string {
	r.Helper()
	list := testworld.Got(r.crew(agent.Owner).Book().List(r.Context(), task.Filter{States: []string{store.TaskInProgress, store.TaskOpen, store.TaskBlocked}}))(r)
	views := testworld.Got(dispatch.Views(r.Context(), r.db, &task.Judge{}, list, unknown, func(spawn.Status) bool { return false }))(r)
	for _, v := range views {
		if v.ID == id {
			return v.Now
		}
	}
	r.Fatalf("%s: not listed", id)
	return ""
}

// A blocked task is listed with the reason that it was blocked for, whatever else is noted on it and
// however long the list is.
func TestReason(t *testing.T) {
	r := newRig(t)
	owner := r.crew(agent.Owner)
	ids := map[string]string{"word": r.add("one"), "answer": r.add("two"), "before": r.add("three")}
	testworld.Got(owner.Edit(t.Context(), ids["word"], task.Change{State: store.TaskBlocked, Note: "no network"}))(r)
	r.start(ids["answer"], "agent1")
	r.answer("agent1", r.task(ids["answer"]).Brief, envelope.KindError, "no disk")
	r.pass()
	k := r.task(ids["before"])
	k.State = store.TaskBlocked // as an earlier netsky recorded it
	testworld.Must(r, r.db.Apply(t.Context(), store.UpsertTask(k), store.AddNote{About: k.ID, Author: "owner", Text: "no time"}))
	for _, name := range []string{"word", "answer"} {
		testworld.Got(owner.Book().Note(t.Context(), task.Note{About: ids[name], Text: "agent2 knows more"}))(r)
	}
	for range 300 {
		r.add("something else")
	}
	for name, want := range map[string]string{"word": "no network", "answer": "no disk", "before": "no time"} {
		testworld.Equal(t, r.now(ids[name]), want, "blocked by %s", name)
	}
	testworld.Got(owner.Edit(t.Context(), ids["word"], task.Change{State: store.TaskBlocked, Note: "no power either"}))(r)
	testworld.Equal(t, r.now(ids["word"]), "no power either", "blocked once more")
}

// What a task needs is called there what a list calls it.
func TestStoryNeeds(t *testing.T) {
	r := newRig(t)
	first := r.add("one")
	second := r.add("two", first)
	testworld.Got(r.crew("agent1").Edit(t.Context(), first, task.Change{State: store.TaskDone, Proof: "go test: ok", Assignee: "agent1"}))(r)
	testworld.Must(r, r.db.Apply(t.Context(), record.SetLanding(record.Landing{ID: "l", Agent: "agent1", Task: first, Repo: "/r", Target: "refs/heads/main", Base: "b", Head: "h", State: record.Landed, Started: 1})))
	j := &task.Judge{Work: record.Records{DB: r.db}}
	s := testworld.Got(dispatch.Tell(t.Context(), r.db, j, dispatch.View{Task: r.task(second)}))(r)
	if len(s.Needs) != 1 || s.Needs[0].ID != first || s.Needs[0].Word != task.Landed {
		t.Errorf("needs %+v, want %s, landed", s.Needs, first)
	}
}
