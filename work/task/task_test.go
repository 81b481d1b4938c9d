package task_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/record"
	"netsky/work/task"
)

// records is an open database.
type records struct{ *store.DB }

func (r records) Record(ctx context.Context, ops ...store.Op) error { return r.Apply(ctx, ops...) }

// A desk is a home with records.
type desk struct {
	*testing.T
	home home.Dir
	db   *store.DB
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	t.Parallel()
	d := &desk{T: t, home: testworld.FastHome(t)}
	db := testworld.Got(store.Open(t.Context(), d.home))(t)
	t.Cleanup(func() { db.Close() })
	d.db = db
	return d
}

func (d *desk) book(by agent.ID) task.Book {
	return task.Book{Home: d.home, Records: records{d.db}, By: by, Own: by.IsClone()}
}

// add adds a task and returns its id.
func (d *desk) add(title string, needs ...string) string {
	d.Helper()
	k := testworld.Got(d.book(agent.Owner).Add(d.Context(), task.Wish{Title: title, Needs: needs}))(d)
	return k.ID
}

func (d *desk) task(id string) store.Task {
	d.Helper()
	k := testworld.Got(d.db.Task(d.Context(), id))(d)
	return k
}

// What a task can't have is refused, field by field, and leaves no task.
func TestAddRefuses(t *testing.T) {
	d := newDesk(t)
	for _, tt := range []struct {
		name string
		by   agent.ID
		wish task.Wish
		want string
	}{
		{"no title", agent.Owner, task.Wish{Title: " \n"}, "title: missing"},
		{"a long title", agent.Owner, task.Wish{Title: strings.Repeat("x", 201)}, "title: 201 bytes"},
		{"a long body", agent.Owner, task.Wish{Title: "x", Body: strings.Repeat("x", 64<<10+1)}, "body: 65537 bytes"},
		{"a priority", agent.Owner, task.Wish{Title: "x", Priority: new(10)}, "priority: 10: must be 0 to 9"},
		{"an estimate", agent.Owner, task.Wish{Title: "x", EstimateMinutes: -1}, "estimate_minutes: -1"},
		{"work for another", agent.Clone(1), task.Wish{Title: "x", Assignee: "agent2"}, "agent1 may not assign work to agent2"},
		{"an unknown need", agent.Owner, task.Wish{Title: "x", Needs: []string{"t-nothing"}}, "not on record"},
		{"too many needs", agent.Owner, task.Wish{Title: "x", Needs: make([]string, 51)}, "needs: 51, at most 50"},
	} {
		testworld.Fails(t, testworld.Err(d.book(tt.by).Add(t.Context(), tt.wish)), tt.want, "%s", tt.name)
	}
	if list, err := d.db.Tasks(t.Context(), store.TaskFilter{}); err != nil || len(list.Items) > 0 {
		t.Errorf("on record: %v, %v", list.Items, err)
	}
}

// A clone changes its own tasks and those that nobody has; the others change all.
func TestWhoMayChange(t *testing.T) {
	d := newDesk(t)
	for _, tt := range []struct {
		by       agent.ID
		assignee string
		may      bool
	}{
		{"agent1", "agent1", true}, {"agent1", task.Nobody, true}, {"agent1", "agent2", false},
		{"agent0", "agent2", true}, {"agentinfinity", "agent2", true}, {"owner", "agent2", true},
	} {
		id := d.add("x")
		_, _, _, err := d.book(agent.Owner).Update(t.Context(), id, task.Change{Assignee: tt.assignee})
		testworld.Must(d, err)
		_, k, changed, err := d.book(tt.by).Update(t.Context(), id, task.Change{Priority: new(1)})
		if (err == nil) != tt.may || changed != tt.may || errors.Is(err, task.ErrNotYours) == tt.may {
			t.Errorf("%s, a task of %s: %v, %v", tt.by, tt.assignee, k, err)
		}
	}
}

// Each state asks for what explains it.
func TestStates(t *testing.T) {
	d := newDesk(t)
	for _, tt := range []struct {
		name   string
		change task.Change
		want   string
	}{
		{"done", task.Change{State: store.TaskDone}, "proof: missing"},
		{"blocked", task.Change{State: store.TaskBlocked}, "note: missing"},
		{"another word", task.Change{State: "finished"}, "state: \"finished\": must be open"},
		{"claimed", task.Change{State: task.Claimed}, "must be open"}, // is nothing that can be set
		{"minutes", task.Change{ActualMinutes: new(-5)}, "actual_minutes: -5"},
		{"an assignee", task.Change{Assignee: "bob"}, "assignee"},
		{"no title", task.Change{Title: new(string)}, "title: missing"},
	} {
		id := d.add("x")
		before := d.task(id)
		if _, _, _, err := d.book(agent.Root).Update(t.Context(), id, tt.change); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
		testworld.Equal(t, d.task(id), before, "%s: changed all the same", tt.name)
	}
}

// The owner's word needs no proof, and is what the records have of who closed a task, and when, also if
// its worker had claimed it before. The manager's is not enough for what left a commit.
func TestOwnersWord(t *testing.T) {
	d := newDesk(t)
	for _, tt := range []struct {
		name    string
		claimed bool
		by      agent.ID
		want    string // the word, and who closed it
		now     bool   // it ended by that
	}{
		{"an open one", false, agent.Owner, "done owner", true},
		{"a claim", true, agent.Owner, "done owner", true},
		{"a claim with a commit, by the manager", true, agent.Root, "claimed agent0", false},
	} {
		id := d.add("x")
		long := store.At(time.Now().Add(-time.Hour))
		if tt.claimed {
			testworld.Got(d.book("agent1").Alter(t.Context(), id, func(k *store.Task) ([]store.Op, error) {
				k.Proof = "ok"
				task.Close(k, "agent1", "abc", long)
				return nil, nil
			}))(d)
		}
		_, k, _, err := d.book(tt.by).Update(t.Context(), id, task.Change{State: store.TaskDone})
		if got := k.Word() + " " + string(k.ClosedBy); err != nil || got != tt.want || (k.Ended > long) != tt.now {
			t.Errorf("%s: %s, %v, ended %v", tt.name, got, err, k.Ended)
		}
	}
}

// Who waits for whom can't be a circle, and the one that it would be is named.
func TestCircles(t *testing.T) {
	d := newDesk(t)
	first := d.add("first")
	second := d.add("second", first)
	third := d.add("third", second[:8])
	b := d.book(agent.Owner)
	_, _, _, err := b.Update(t.Context(), first, task.Change{Needs: []string{third}})
	want := "a circle: " + first + " waits for " + third + ", which waits for " + second + ", which waits for " + first
	testworld.Fails(t, err, want)
	if _, _, _, err := b.Update(t.Context(), first, task.Change{Needs: []string{first}}); err == nil || !strings.Contains(err.Error(), "a circle: "+first+" waits for "+first) {
		t.Errorf("a task that waits for itself: %v", err)
	}
	if list, err := b.Needs(t.Context(), first); err != nil || len(list) > 0 {
		t.Errorf("the first needs %v, %v", list, err)
	}
	if _, _, _, err := b.Update(t.Context(), third, task.Change{Needs: []string{first}}); err != nil {
		t.Errorf("the long and the short way: %v", err)
	}
	testworld.Must(d, d.db.Apply(t.Context(), task.Free(third)))
	if list, err := b.Needs(t.Context(), third); err != nil || len(list) > 0 {
		t.Errorf("the third still needs %v, %v", list, err)
	}
}

// A change counts though the clock was set back since the last one.
func TestClockSetBack(t *testing.T) {
	d := newDesk(t)
	id := d.add("x")
	k := d.task(id)
	k.Updated = store.At(time.Now().Add(time.Hour))
	testworld.Must(d, d.db.Apply(t.Context(), store.UpsertTask(k)))
	if _, _, _, err := d.book(agent.Owner).Update(t.Context(), id, task.Change{State: store.TaskBlocked, Note: "why"}); err != nil {
		t.Fatal(err)
	}
	testworld.Equal(t, d.task(id).State, store.TaskBlocked, "it")
	_, err := d.book(agent.Owner).Alter(t.Context(), id, func(k *store.Task) ([]store.Op, error) { k.State = store.TaskCancelled; return nil, nil })
	if got := d.task(id).State; err != nil || got != store.TaskCancelled {
		t.Errorf("it is %s, %v", got, err)
	}
}

// Of many that take a task at once, none overwrites what another has changed.
func TestAtOnce(t *testing.T) {
	d := newDesk(t)
	id := d.add("x")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := d.book(agent.Root).Alter(t.Context(), id, func(k *store.Task) ([]store.Op, error) {
				k.Starts++
				return nil, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if k := d.task(id); k.Starts != 8 {
		t.Errorf("counted %d of 8", k.Starts)
	}
}

// What only its worker calls done is never called so.
func TestWord(t *testing.T) {
	t.Parallel()
	const tree, other = "aaaa", "bbbb"
	check := func(tree, state, about string) record.Check {
		return record.Check{ID: "c-" + tree + state + about, Agent: "agent1", Repo: map[bool]string{false: "r", true: "other"}[about == "elsewhere"], Task: about, Tree: tree, Digest: "c", State: state}
	}
	for _, tt := range []struct {
		name string
		task store.Task
		now  string // the tree that landing would make; "" is unknown
		ops  []store.Op
		want string
	}{
		{name: "open", task: store.Task{State: store.TaskOpen}, want: "open"},
		{name: "to be started", task: store.Task{State: store.TaskOpen, Starter: agent.Owner}, want: "waiting"},
		{name: "its worker's word", task: store.Task{ClosedBy: "agent1"}, want: "claimed"},
		{name: "the owner's", task: store.Task{ClosedBy: agent.Owner, Head: "h"}, want: "done"},
		{name: "the manager's, without a commit", task: store.Task{ClosedBy: agent.Root}, want: "done"},
		{name: "the manager's, of a repository", task: store.Task{ClosedBy: agent.Root, Head: "h"}, want: "claimed"},
		{name: "from before it was recorded who closes", task: store.Task{}, want: "claimed"},
		{name: "checked", task: store.Task{ClosedBy: "agent1", Head: "h"}, now: tree, ops: []store.Op{record.SetCheck(check(tree, record.Passed, ""))}, want: "proved"},
		{name: "checked in another repository", task: store.Task{ClosedBy: "agent1", Head: "h"}, now: tree, ops: []store.Op{record.SetCheck(check(tree, record.Passed, "elsewhere"))}, want: "claimed"},
		{name: "checked before the last commit", task: store.Task{ClosedBy: "agent1", Head: "h"}, now: other, ops: []store.Op{record.SetCheck(check(tree, record.Passed, ""))}, want: "claimed"},
		{name: "the tree is unknown", task: store.Task{ClosedBy: "agent1", Head: "h"}, ops: []store.Op{record.SetCheck(check(tree, record.Passed, ""))}, want: "claimed"},
		{name: "red", task: store.Task{ClosedBy: "agent1", Head: "h"}, now: tree, ops: []store.Op{record.SetCheck(check(tree, record.Failed, ""))}, want: "claimed"},
		{name: "nothing committed", task: store.Task{ClosedBy: "agent1"}, now: tree, ops: []store.Op{record.SetCheck(check(tree, record.Passed, ""))}, want: "claimed"},
		{name: "nothing committed for it", task: store.Task{ClosedBy: "agent1", Begun: "h", Head: "h"}, now: tree, ops: []store.Op{record.SetCheck(check(tree, record.Passed, ""))}, want: "claimed"},
		{name: "something committed for it", task: store.Task{ClosedBy: "agent1", Begun: "g", Head: "h"}, now: tree, ops: []store.Op{record.SetCheck(check(tree, record.Passed, ""))}, want: "proved"},
		{name: "nothing committed for it, and other work landed", task: store.Task{ClosedBy: "agent1", Begun: "h", Head: "h", Ended: 50}, ops: []store.Op{
			record.SetLanding(record.Landing{ID: "l", Agent: "agent1", Target: "refs/heads/main", Base: "b", Head: "h", State: record.Landed, Started: 60})}, want: "claimed"},
		{name: "nothing committed for it, and landed by name", task: store.Task{ClosedBy: "agent1", Begun: "h", Head: "h", Ended: 50}, ops: []store.Op{
			record.SetLanding(record.Landing{ID: "l", Agent: "agent1", Task: "t-1", Target: "refs/heads/main", Base: "b", Head: "h", State: record.Landed, Started: 60})}, want: "landed"},
		{name: "landed", task: store.Task{ClosedBy: "agent1", Head: "h", Ended: 50}, ops: []store.Op{
			record.SetLanding(record.Landing{ID: "l", Agent: "agent1", Target: "refs/heads/main", Base: "b", Head: "h2", State: record.Landed, Started: 60})}, want: "landed"},
		{name: "no commit of its own, and a later task's landed twice", task: store.Task{ClosedBy: "agent1", Head: "b", Ended: 50}, ops: []store.Op{
			record.SetLanding(record.Landing{ID: "l", Agent: "agent1", Target: "refs/heads/main", Base: "b", Head: "h2", State: record.Landed, Started: 60}),
			record.SetLanding(record.Landing{ID: "l2", Agent: "agent1", Target: "refs/heads/main", Base: "h2", Head: "h3", State: record.Landed, Started: 70})}, want: "claimed"},
		{name: "landed before", task: store.Task{ClosedBy: "agent1", Head: "h", Ended: 50}, ops: []store.Op{
			record.SetLanding(record.Landing{ID: "l", Agent: "agent1", Target: "refs/heads/main", Base: "b", Head: "h2", State: record.Landed, Started: 40})}, want: "claimed"},
		{name: "landed and undone", task: store.Task{ClosedBy: "agent1", Head: "h", Ended: 50}, ops: []store.Op{
			record.SetLanding(record.Landing{ID: "l", Agent: "agent1", Target: "refs/heads/main", Base: "b", Head: "h", State: record.Undone, Started: 60})}, want: "claimed"},
		{name: "no commit of its own landed", task: store.Task{ClosedBy: "agent1", Head: "b", Ended: 50}, ops: []store.Op{
			record.SetLanding(record.Landing{ID: "l", Agent: "agent1", Target: "refs/heads/main", Base: "b", Head: "h2", State: record.Landed, Started: 60})}, want: "claimed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			testworld.Must(d, d.db.Apply(t.Context(), tt.ops...))
			k := tt.task
			k.ID, k.Assignee = "t-1", "agent1"
			if k.State == "" {
				k.State = store.TaskDone
			}
			j := task.Judge{Work: record.Records{DB: d.db}, Check: "c", Current: func(context.Context, agent.ID) (string, string, error) {
				if tt.now == "" {
					return "", "", errors.New("not committed")
				}
				return "r", tt.now, nil
			}}
			testworld.Equal(t, j.Word(t.Context(), k), tt.want)
			for _, after := range []string{"", task.Proved, task.Landed, task.Claimed} {
				j.After = after
				want := k.State == store.TaskDone && (tt.want != "claimed" || k.Head == k.Begun || after == task.Claimed) && (tt.want != "proved" || after != task.Landed)
				testworld.Equal(t, j.Enough(t.Context(), k), want, "enough after %q", after)
			}
			j.Owns = func(context.Context, agent.ID, string, string, string) bool { return false }
			if got := j.Word(t.Context(), k); got == task.Proved || got == task.Landed && !strings.Contains(tt.name, "by name") {
				t.Errorf("called %s though its worker has changed nothing", got)
			}
			j.Holds = func(context.Context, record.Landing) bool { return false }
			if got := j.Word(t.Context(), k); got == task.Landed {
				t.Error("called landed though the target does not have it any more")
			}
			if tt.want != "done" && k.Word() == "done" {
				t.Error("called done where there is no evidence to look at")
			}
		})
	}
}

// A worker that closes a task which it has never begun is not proved, or landed, by what its branch held
// before.
func TestClosedUnbegun(t *testing.T) {
	for _, begins := range []bool{false, true} {
		t.Run(fmt.Sprint(begins), func(t *testing.T) {
			d := newDesk(t)
			id, head, want := d.add("x"), "before", "claimed"
			b := d.book("agent1")
			b.Head = func(context.Context, agent.ID) string { return head }
			update := func(c task.Change) store.Task {
				t.Helper()
				_, k, _, err := b.Update(t.Context(), id, c)
				testworld.Must(d, err)
				return k
			}
			update(task.Change{Assignee: "1"})
			if begins {
				update(task.Change{State: store.TaskInProgress})
				head, want = "after", "proved"
			}
			k := update(task.Change{State: store.TaskDone, Proof: "go test: ok"})
			testworld.Must(d, d.db.Apply(t.Context(), record.SetCheck(record.Check{ID: "c", Agent: "agent1", Repo: "r", Tree: "aaaa", Digest: "c", State: record.Passed})))
			j := task.Judge{Work: record.Records{DB: d.db}, Check: "c", Current: func(context.Context, agent.ID) (string, string, error) { return "r", "aaaa", nil }}
			testworld.Equal(t, j.Word(t.Context(), k), want)
			testworld.Must(d, d.db.Apply(t.Context(), record.SetLanding(record.Landing{ID: "l", Agent: "agent1", Target: "refs/heads/main", Base: "b", Head: head, State: record.Landed, Started: k.Ended})))
			if got := j.Word(t.Context(), k); (got == task.Landed) != begins {
				t.Errorf("its branch landed: %q", got)
			}
		})
	}
}

// The owner's word makes what is claimed done; a clone's does not.
func TestAccept(t *testing.T) {
	d := newDesk(t)
	id := d.add("x")
	b := d.book(agent.Clone(1))
	b.Head = func(context.Context, agent.ID) string { return "aaaa" }
	for _, tt := range []struct {
		by   task.Book
		want string
	}{{b, "claimed"}, {b, "claimed"}, {d.book(agent.Root), "claimed"}, {d.book(agent.Owner), "done"}} {
		_, k, _, err := tt.by.Update(t.Context(), id, task.Change{State: store.TaskDone, Proof: "go test: ok"})
		if err != nil || k.Word() != tt.want || k.Head != "aaaa" {
			t.Errorf("by %s: %+v, %v, want %s", tt.by.By, k, err, tt.want)
		}
	}
}

// Where a task was begun stays while its worker goes on with it, and no longer.
func TestBegun(t *testing.T) {
	d := newDesk(t)
	id := d.add("x")
	at := ""
	b := d.book(agent.Root)
	b.Head = func(_ context.Context, id agent.ID) string { return string(id) + " at " + at }
	for n, tt := range []struct {
		change task.Change
		want   string
	}{
		{task.Change{State: store.TaskInProgress, Assignee: "1"}, "agent1 at 0"},
		{task.Change{State: store.TaskBlocked, Note: "why"}, "agent1 at 0"},
		{task.Change{State: store.TaskInProgress}, "agent1 at 0"},
		{task.Change{State: store.TaskBlocked, Note: "why"}, "agent1 at 0"},
		{task.Change{State: store.TaskInProgress, Assignee: "2"}, "agent2 at 4"},
		{task.Change{State: store.TaskDone, Proof: "x"}, "agent2 at 4"},
		{task.Change{State: store.TaskInProgress}, "agent2 at 6"},
		{task.Change{Assignee: task.Nobody}, ""},
	} {
		at = strconv.Itoa(n)
		if _, k, _, err := b.Update(t.Context(), id, tt.change); err != nil || k.Begun != tt.want {
			t.Errorf("%d: begun at %q, %v, want %q", n, k.Begun, err, tt.want)
		}
	}
}

func FuzzOfBrief(f *testing.F) {
	f.Add("t-0123456789abcdef", 3)
	f.Fuzz(func(t *testing.T, id string, n int) {
		n = max(n, 0)
		got, ok := task.OfBrief(task.BriefID(id, n))
		if want := id != "" && n < 1<<31; ok != want || ok && got != id {
			t.Errorf("OfBrief(%q) = %q, %v", task.BriefID(id, n), got, ok)
		}
		if got, ok := task.OfBrief(id); ok && !strings.HasPrefix(id, "brief-"+got+"-") {
			t.Errorf("OfBrief(%q) = %q", id, got)
		}
	})
}
