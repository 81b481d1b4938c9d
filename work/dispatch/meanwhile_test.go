package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/dispatch"
	"netsky/work/task"
)

// meddled are records in which something happens once a task has a brief, before that is sent.
type meddled struct {
	records
	do func()
}

func (m *meddled) Dependencies(ctx context.Context, id string) ([]store.Dependency, error) {
	if k, err := m.Task(ctx, id); err == nil && k.Brief != "" && m.do != nil {
		do := m.do
		m.do = nil
		do()
	}
	return m.records.Dependencies(ctx, id)
}

// The brief of a task that is taken back before the brief is there to be withdrawn does not stay with
// its worker, and nobody is told that it was given out.
func TestTakenBackBeforeTheBrief(t *testing.T) {
	for name, tt := range map[string]struct {
		change task.Change
		again  bool
		want   string
		briefs int
	}{
		"cancelled":            {task.Change{State: store.TaskCancelled}, false, "cancelled agent1 1", 0},
		"blocked":              {task.Change{State: store.TaskBlocked, Note: "why"}, false, "blocked agent1 1", 0},
		"given out once more":  {task.Change{State: store.TaskBlocked, Note: "why"}, true, "in_progress agent1 2", 1},
		"done, says the owner": {task.Change{State: store.TaskDone}, false, "done agent1 1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			id := r.add("one")
			c := r.crew(agent.Owner)
			c.Records = &meddled{records{r.db}, func() {
				testworld.Got(r.crew(agent.Owner).Edit(t.Context(), id, tt.change))(r)
				if tt.again {
					r.start(id, "agent1")
				}
			}}
			s, err := c.Start(t.Context(), id, r.wish("agent1"))
			if err == nil || !strings.Contains(err.Error(), "was changed meanwhile") || s.Task.Brief != "" {
				t.Errorf("%+v, %v", s.Task, err)
			}
			r.pass()
			r.says(id, tt.want)
			if list := r.inbox("agent1", envelope.KindBrief); len(list) != tt.briefs || len(list) > 0 && list[0].ID != r.task(id).Brief {
				t.Errorf("the worker has %d briefs, want %d", len(list), tt.briefs)
			}
		})
	}
}

// Of two who start a task, the one that comes too late is not told that it was given out.
func TestStartedMeanwhile(t *testing.T) {
	r := newRig(t)
	id := r.add("one")
	w := r.wish("agent2")
	r.set("agent2", agent.Down)
	w.Up = func(context.Context, agent.ID) error { r.start(id, "agent1"); return nil }
	s, err := r.crew(agent.Owner).Start(t.Context(), id, w)
	if err == nil || s.Task.ID != "" {
		t.Errorf("%+v, %v", s.Task, err)
	}
	r.says(id, "in_progress agent1 1")
}

// A task that comes to wait for another while its agent comes up is not started.
func TestNeedsMeanwhile(t *testing.T) {
	r := newRig(t)
	id, late := r.add("one"), r.add("late")
	r.set("agent2", agent.Down)
	w := r.wish("agent2")
	w.Up = func(ctx context.Context, _ agent.ID) error {
		_, _, _, err := r.crew(agent.Owner).Book().Update(ctx, id, task.Change{Needs: []string{late}})
		return err
	}
	if s, err := r.crew(agent.Owner).Start(t.Context(), id, w); err == nil || !strings.Contains(err.Error(), "needs "+dispatch.Short(late)) || s.Task.ID != "" {
		t.Errorf("%+v, %v", s.Task, err)
	}
	r.says(id, "open  0")
}

// A start that is refused frees no task from what it needs.
func TestAnywayRefused(t *testing.T) {
	r := newRig(t)
	need := r.add("need")
	id := r.add("one", need)
	w := r.wish("agent2")
	w.Anyway = true
	for _, tt := range []struct {
		err  error
		left int
	}{{dispatch.ErrEnded, 1}, {nil, 0}} {
		state := store.TaskOpen
		if tt.err != nil {
			state = store.TaskCancelled
		}
		_, _, _, err := r.crew(agent.Owner).Book().Update(t.Context(), id, task.Change{State: state})
		testworld.Must(r, err)
		testworld.ErrorIs(t, testworld.Err(r.crew(agent.Owner).Start(t.Context(), id, w)), tt.err)
		list, err := r.crew(agent.Owner).Book().Needs(t.Context(), id)
		testworld.Must(r, err)
		if len(list) != tt.left || slices.ContainsFunc(list, func(k store.Task) bool { return k.ID != need }) {
			t.Errorf("after %v it needs %d others, want %d", tt.err, len(list), tt.left)
		}
	}
	r.says(id, "in_progress agent2 1")
}

// A brief that is still unread when its task is taken back does not stay, though whoever took it back was
// killed before withdrawing it.
func TestTakenBackAndKilled(t *testing.T) {
	r := newRig(t)
	id := r.add("one")
	r.start(id, "agent1")
	_, _, _, err := r.crew(agent.Owner).Book().Update(t.Context(), id, task.Change{State: store.TaskCancelled})
	testworld.Must(r, err)
	r.pass()
	if list := r.inbox("agent1", envelope.KindBrief); len(list) != 0 {
		t.Errorf("the worker has %d briefs", len(list))
	}
	r.pass()
	if k := r.task(id); k.Brief != "" || k.State != store.TaskCancelled {
		t.Errorf("%+v", k)
	}
}

// Who is at the end of a budget is held before the brief is in the mailbox, whoever sends that.
func TestHeldBeforeTheBrief(t *testing.T) {
	r := newRig(t)
	waits := r.add("two", r.add("one"))
	r.start(waits, "agent1")
	held := 0
	hold := func(worker agent.ID) error {
		testworld.Equal(t, len(r.inbox(worker, envelope.KindBrief)), 0, "briefs of %s", worker)
		held++
		return nil
	}
	c := r.crew(agent.Owner)
	c.Hold = func(context.Context) error { return hold("agent2") }
	_, err := c.Start(t.Context(), r.add("three"), r.wish("agent2"))
	testworld.Must(r, err)
	r.keeper.Hold = func(context.Context, *store.DB) error { return hold("agent1") }
	needs, err := c.Book().Needs(t.Context(), waits)
	testworld.Must(r, err)
	_, _, _, err = c.Book().Update(t.Context(), needs[0].ID, task.Change{State: store.TaskDone})
	testworld.Must(r, err)
	r.pass()
	r.says(waits, "in_progress agent1 1")
	testworld.Equal(t, held, 2, "asked")
}

// spooling are records that accept nothing at the moment.
type spooling struct{ records }

func (spooling) Record(context.Context, ...store.Op) error { return store.ErrSpooled }

// What is only spooled is not said to be given out, and not sent.
func TestSpooledStart(t *testing.T) {
	r := newRig(t)
	c := r.crew(agent.Owner)
	c.Records = spooling{records{r.db}}
	s, err := c.Start(t.Context(), r.add("one"), r.wish("agent1"))
	if !errors.Is(err, store.ErrSpooled) || s.Task.ID != "" || len(r.inbox("agent1", envelope.KindBrief)) != 0 {
		t.Errorf("%+v, %v", s.Task, err)
	}
}

// A brief does not call done what only a worker calls so.
func TestBriefOnClaimed(t *testing.T) {
	r := newRig(t)
	first, second := r.add("first"), r.add("second")
	third := r.add("third", first, second)
	for id, by := range map[string]agent.ID{first: "agent1", second: agent.Owner} {
		_, _, _, err := r.crew(by).Book().Update(t.Context(), id, task.Change{State: store.TaskDone, Proof: "go test: ok"})
		testworld.Must(r, err)
	}
	r.start(third, "agent2")
	mail := r.inbox("agent2", envelope.KindBrief)
	if len(mail) != 1 || !strings.Contains(mail[0].Text, first+" first (claimed): go test: ok") || !strings.Contains(mail[0].Text, second+" second (done): go test: ok") ||
		strings.Contains(mail[0].Text, "are done") {
		t.Errorf("%+v", mail)
	}
}
