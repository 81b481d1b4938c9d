package dispatch_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/advice"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/dispatch"
	"netsky/work/task"
)

// The owner is told of a task that is blocked for want of an answer, once, and the answer counts if it
// comes all the same; what somebody has decided meanwhile stays, and the answer becomes a note.
func TestLateAnswer(t *testing.T) {
	r := newRig(t)
	testworld.Must(r, r.home.SaveKeeper("agent1", agent.Keeper{Start: "s", StartedMS: time.Now().Add(-time.Hour).UnixMilli()}))
	for _, tt := range []struct {
		name  string
		state string // that the owner gives it before the answer comes; "" is none
		kind  envelope.Kind
		want  string
		notes string // the authors
	}{
		{"counts", "", envelope.KindReply, "claimed agent1 1", "netsky"},
		{"an error", "", envelope.KindError, "blocked agent1 1", "agent1 netsky"},
		{"the owner has blocked it", store.TaskBlocked, envelope.KindReply, "blocked agent1 1", "agent1 owner netsky"},
		{"the owner has cancelled it", store.TaskCancelled, envelope.KindReply, "cancelled agent1 1", "agent1 owner netsky"},
		{"the owner has closed it", store.TaskDone, envelope.KindReply, "done agent1 1", "agent1 owner netsky"},
	} {
		id := r.add(tt.name)
		r.start(id, "agent1")
		brief := r.task(id).Brief
		r.take("agent1")
		r.pass()
		r.begin()
		r.pass()
		r.says(id, "blocked agent1 1")
		told := 0
		for _, e := range r.inbox(agent.Owner, envelope.KindNotice) {
			if strings.Contains(e.Text, "("+tt.name+") is blocked: agent1 ended its turn without an answer; `netsky task start "+dispatch.Short(id)) {
				told++
			}
		}
		testworld.Equal(t, told, 1, "%s: the owner is told", tt.name)
		if tt.state != "" {
			testworld.Got(r.crew(agent.Owner).Edit(t.Context(), id, task.Change{State: tt.state, Note: "so be it", Proof: "seen"}))(r)
		}
		r.answer("agent1", brief, tt.kind, "late")
		r.pass()
		r.begin()
		r.pass()
		r.says(id, tt.want)
		notes := testworld.Got(r.db.Notes(t.Context(), store.NoteFilter{About: id}))(r)
		var authors []string
		for _, n := range notes.Items {
			authors = append(authors, n.Author)
		}
		testworld.Equal(t, strings.Join(authors, " "), tt.notes, "%s: notes by", tt.name)
		if k := r.task(id); k.Brief != "" || k.State == store.TaskDone && k.ClosedBy == "agent1" && k.Proof != "late" {
			t.Errorf("%s: %+v", tt.name, k)
		}
	}
}

// Of an agent that reports nothing it is not known whether it is still at the task: only its end is.
func TestSilentWorker(t *testing.T) {
	r := newRig(t)
	id := r.add("one")
	r.start(id, "agent1")
	began := func(after time.Duration) {
		testworld.Must(r, r.home.SaveKeeper("agent1", agent.Keeper{Start: "s", StartedMS: time.Now().Add(after).UnixMilli()}))
	}
	began(-time.Hour)
	st := r.states["agent1"]
	st.Silent = true
	r.states["agent1"] = st
	r.take("agent1")
	for range 3 {
		r.pass()
	}
	r.says(id, "in_progress agent1 1")
	began(time.Hour) // another program, which knows nothing of the task
	r.pass()
	r.says(id, "in_progress agent1 2")
	testworld.Got(r.crew(agent.Owner).Book().Alter(t.Context(), id, func(k *store.Task) ([]store.Op, error) {
		k.Briefed -= 60_000
		return nil, nil
	}))(r)
	began(-30 * time.Second) // after the brief was sent, before it is taken
	r.take("agent1")
	r.pass()
	r.answer("agent1", r.task(id).Brief, envelope.KindReply, "go test: ok")
	r.pass()
	r.says(id, "claimed agent1 2")
}

// What such an agent has read can't be taken back from it, and goes to nobody else before it has ended or
// answered.
func TestSilentWorkerKeepsIt(t *testing.T) {
	r := newRig(t)
	testworld.Must(r, r.home.SaveLaunch(agent.Launch{Agent: "agent1", Start: "s", Silent: true}))
	began := func(after time.Duration) {
		testworld.Must(r, r.home.SaveKeeper("agent1", agent.Keeper{Start: "s", StartedMS: time.Now().Add(after).UnixMilli()}))
	}
	cancel := func(id, want string) {
		t.Helper()
		e, err := r.crew(agent.Owner).Edit(t.Context(), id, task.Change{State: store.TaskCancelled})
		if err != nil || !strings.Contains(e.Note, want) || want == "" && e.Note != "" {
			t.Errorf("%q, %v; want %q", e.Note, err, want)
		}
	}
	again := func(id string, to agent.ID) error {
		w := r.wish(to)
		w.Again = true
		_, err := r.crew(agent.Owner).Start(t.Context(), id, w)
		return err
	}
	began(-time.Hour)
	unread := r.add("unread")
	r.start(unread, "agent1")
	cancel(unread, "")
	testworld.Must(r, again(unread, "agent2"))

	id := r.add("read")
	r.start(id, "agent1")
	r.take("agent1")
	cancel(id, "agent1 has read it, can't be told to leave it, and may still be at it; `netsky down 1` ends it")
	if err := again(id, "agent2"); !errors.Is(err, dispatch.ErrTaken) || advice.Of(err) == "" {
		t.Errorf("%v", err)
	}
	r.answer("agent1", r.task(id).Brief, envelope.KindReply, "late")
	testworld.Must(r, again(id, "agent2"))

	id = r.add("read, and its program ended")
	r.start(id, "agent1")
	r.take("agent1")
	began(time.Hour)
	cancel(id, "")
	testworld.Must(r, again(id, "agent2"))
}

// A worker that gets a task once more is not told that another had it.
func TestGivenAgain(t *testing.T) {
	r := newRig(t)
	id := r.add("one")
	for _, tt := range []struct {
		to         agent.ID
		want, none string
	}{
		{"agent1", "", "before"},
		{"agent1", "You had this task before.", "given"},
		{"agent2", "It was given out before.", "You had"},
		{"agent2", "You had this task before.", "given"},
	} {
		w := r.wish(tt.to)
		w.Again = true
		testworld.Got(r.crew(agent.Owner).Start(t.Context(), id, w))(r)
		mail := r.inbox(tt.to, envelope.KindBrief)
		if len(mail) != 1 || !strings.Contains(mail[0].Text, tt.want) || strings.Contains(mail[0].Text, tt.none) {
			t.Errorf("to %s: %+v", tt.to, mail)
		}
		r.answer(tt.to, r.task(id).Brief, envelope.KindReply, "ok")
		r.pass()
	}
}
