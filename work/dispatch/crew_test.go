package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/daemon/observe"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
	"netsky/work/dispatch"
	"netsky/work/record"
	"netsky/work/task"
)

type records struct{ *store.DB }

func (r records) Record(ctx context.Context, ops ...store.Op) error { return r.Apply(ctx, ops...) }

// A rig is a home with mailboxes and records, in which the agents are in the states that the test
// says.
type rig struct {
	*testing.T
	home   home.Dir
	bus    *bus.Bus
	db     *store.DB
	keeper *dispatch.Keeper
	states map[agent.ID]spawn.Status
	raised []agent.ID // by Up
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	r := &rig{T: t, home: testworld.FastHome(t), states: make(map[agent.ID]spawn.Status)}
	r.bus = testworld.Bus(t, r.home, agent.Owner, agent.Root, "agent1", "agent2")
	db := testworld.Got(store.Open(t.Context(), r.home))(r)
	t.Cleanup(func() { db.Close() })
	r.db = db
	r.set(agent.Root, agent.Idle)
	r.set("agent1", agent.Idle)
	r.set("agent2", agent.Idle)
	r.begin()
	return r
}

// begin makes another keeper, as a daemon that starts.
func (r *rig) begin() {
	r.keeper = dispatch.NewKeeper(spawn.New(spawn.Site{Home: r.home, Bus: r.bus}), func() *store.DB { return r.db }, r.statuses, slog.New(slog.DiscardHandler))
	r.keeper.Settles = time.Nanosecond
}

func (r *rig) statuses(context.Context) (list spawn.Statuses, err error) {
	for _, st := range r.states {
		list = append(list, st)
	}
	return list, nil
}

func (r *rig) set(id agent.ID, s agent.State) {
	r.states[id] = spawn.Status{Agent: id, State: s, Start: string(id) + "-start", Wanted: s != agent.Down}
}

func (r *rig) crew(by agent.ID) dispatch.Crew {
	return dispatch.Crew{Home: r.home, Bus: r.bus, Records: records{r.db}, By: by, Own: by.IsClone()}
}

func (r *rig) wish(to agent.ID) dispatch.Wish {
	return dispatch.Wish{
		Agent: to,
		Status: func(_ context.Context, id agent.ID) (spawn.Status, error) {
			list, err := r.statuses(r.Context())
			return list.Find(id), err
		},
		Up: func(_ context.Context, id agent.ID) error {
			r.raised = append(r.raised, id)
			r.set(id, agent.Idle)
			return nil
		},
	}
}

func (r *rig) add(title string, needs ...string) string {
	r.Helper()
	k := testworld.Got(r.crew(agent.Owner).Book().Add(r.Context(), task.Wish{Title: title, Body: "all of it", Needs: needs}))(r)
	return k.ID
}

// start gives a task out for the owner.
func (r *rig) start(id string, to agent.ID) dispatch.Started {
	r.Helper()
	s := testworld.Got(r.crew(agent.Owner).Start(r.Context(), id, r.wish(to)))(r)
	return s
}

func (r *rig) task(id string) store.Task {
	r.Helper()
	k := testworld.Got(r.db.Task(r.Context(), id))(r)
	return k
}

// pass mirrors the bus and has the keeper look, twice: what the first one starts is seen by the second.
func (r *rig) pass() {
	r.Helper()
	for range 2 {
		testworld.Must(r, (&observe.Observer{Bus: r.bus, DB: r.db, Log: slog.New(slog.DiscardHandler)}).Sync(r.Context()))
		testworld.Got(r.keeper.Pass(r.Context(), r.db))(r)
	}
}

// inbox returns the ids of what waits for an address, without notices.
func (r *rig) inbox(id agent.ID, kind envelope.Kind) (list []envelope.Envelope) {
	r.Helper()
	all := testworld.Got(r.bus.List(id, bus.Inbox, 100))(r)
	for _, e := range all {
		if e.Envelope.Kind == kind {
			list = append(list, e.Envelope)
		}
	}
	return list
}

// answer has a worker take its mail and answer the task's brief.
func (r *rig) answer(by agent.ID, brief string, kind envelope.Kind, text string) {
	r.Helper()
	r.take(by)
	testworld.Got(r.bus.Send(r.Context(), envelope.Envelope{From: by, To: agent.Owner, Kind: kind, InReplyTo: brief, Text: text, Time: time.Now()}))(r)
}

// take has a worker take all its mail.
func (r *rig) take(by agent.ID) {
	r.Helper()
	testworld.Got(r.bus.Drain(r.Context(), by, 100, func(envelope.Envelope) error { return nil }))(r)
}

// says checks a task in few words.
func (r *rig) says(id, want string) {
	r.Helper()
	k := r.task(id)
	if got := fmt.Sprintf("%s %s %d", k.Word(), k.Assignee, k.Starts); got != want {
		r.Errorf("%s: %s, want %s: %+v", k.Title, got, want, k)
	}
}

// A task goes out as one brief, and its answer makes it claimed; an error blocks it.
func TestAnswerCloses(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		kind envelope.Kind
		want string
	}{{envelope.KindReply, "claimed agent1 1"}, {envelope.KindError, "blocked agent1 1"}} {
		id := r.add("one")
		r.start(id[:8], "agent1")
		r.says(id, "in_progress agent1 1")
		mail := r.inbox("agent1", envelope.KindBrief)
		if len(mail) != 1 || mail[0].ID != r.task(id).Brief || mail[0].From != agent.Owner || !strings.Contains(mail[0].Text, "Task "+id+": one\n\nall of it\n") {
			t.Fatalf("the brief: %+v", mail)
		}
		if of, ok := task.OfBrief(mail[0].ID); !ok || of != id {
			t.Errorf("the brief's id %s is of %s", mail[0].ID, of)
		}
		r.pass()
		r.says(id, "in_progress agent1 1")
		r.answer("agent1", mail[0].ID, tt.kind, "go test: ok")
		r.pass()
		r.says(id, tt.want)
		k := r.task(id)
		notes := testworld.Got(r.db.Notes(t.Context(), store.NoteFilter{About: id}))(r)
		if tt.kind == envelope.KindReply && (k.Proof != "go test: ok" || k.ClosedBy != "agent1" || k.ActualMinutes != 1 || k.Ended == 0 || len(notes.Items) > 0) {
			t.Errorf("closed: %+v, notes %v", k, notes.Items)
		}
		if tt.kind == envelope.KindError && (len(notes.Items) != 1 || notes.Items[0].Text != "go test: ok" || notes.Items[0].Author != "agent1") {
			t.Errorf("blocked: notes %v", notes.Items)
		}
		testworld.Equal(t, k.Brief, "", "the brief is still open")
	}
}

// Only the worker's answer to who has given the task counts.
func TestAnswerOfAnother(t *testing.T) {
	r := newRig(t)
	id := r.add("one")
	r.start(id, "agent1")
	brief := r.task(id).Brief
	r.answer("agent2", brief, envelope.KindReply, "it is done")
	testworld.Got(r.bus.Send(t.Context(), envelope.Envelope{From: "agent1", To: "agent2", Kind: envelope.KindReply, InReplyTo: brief, Text: "and here", Time: time.Now()}))(r)
	r.pass()
	r.says(id, "in_progress agent1 1")
	r.take("agent1")
	testworld.Must(r, r.home.SaveKeeper("agent1", agent.Keeper{Start: "s", StartedMS: time.Now().Add(-time.Hour).UnixMilli()}))
	r.pass()
	r.says(id, "blocked agent1 1") // it has ended its turn
	r.answer("agent1", brief, envelope.KindReply, "go test: ok")
	r.pass()
	r.says(id, "claimed agent1 1")
	if k := r.task(id); k.Proof != "go test: ok" {
		t.Errorf("%+v", k)
	}
}

// A message of another's that bears a brief's id is not the brief, whatever becomes of it.
func TestForgedBrief(t *testing.T) {
	r := newRig(t)
	id := r.add("one")
	r.start(id, "agent1")
	brief := r.task(id).Brief
	testworld.Got(r.bus.Send(t.Context(), envelope.Envelope{ID: brief, From: "agent2", To: "agent1", Kind: envelope.KindNotice, Text: "x", Time: time.Now()}))(r)
	r.pass()
	testworld.Got(r.bus.Retract(t.Context(), "agent1", func(e envelope.Envelope) bool { return e.From == "agent2" }))(r)
	r.pass()
	d := testworld.Got(r.db.Deliveries(t.Context(), store.DeliveryFilter{Message: brief, From: "agent2"}))(r)
	if len(d.Items) != 1 || d.Items[0].State != store.Cancelled {
		t.Errorf("its delivery: %+v", d.Items)
	}
	r.says(id, "in_progress agent1 1")
	r.take("agent1")
	testworld.Got(r.bus.Send(t.Context(), envelope.Envelope{ID: brief, From: "agent3", To: "agent1", Kind: envelope.KindNotice, Text: "x", Time: time.Now()}))(r)
	testworld.Must(r, r.home.SaveKeeper("agent1", agent.Keeper{Start: "s", StartedMS: time.Now().Add(-time.Hour).UnixMilli()}))
	r.pass()
	r.says(id, "blocked agent1 1") // it has ended its turn, though such a message waits
	r.answer("agent1", brief, envelope.KindReply, "go test: ok")
	r.pass()
	r.says(id, "claimed agent1 1")
}

// A worker that has said by its tools what came of the task is not overruled by its answer.
func TestToolsOutrankTheAnswer(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		change task.Change
		want   string
	}{
		{task.Change{State: store.TaskBlocked, Note: "no network"}, "blocked agent1 1"},
		{task.Change{State: store.TaskDone, Proof: "mine"}, "claimed agent1 1"},
	} {
		id := r.add("one")
		r.start(id, "agent1")
		brief := r.task(id).Brief
		_, _, _, err := r.crew("agent1").Book().Update(t.Context(), id, tt.change)
		testworld.Must(r, err)
		r.answer("agent1", brief, envelope.KindReply, "as I said")
		r.pass()
		r.says(id, tt.want)
		if k := r.task(id); k.Brief != "" || k.Proof == "as I said" {
			t.Errorf("%+v", k)
		}
		// And an answer of then does not close what is begun again.
		_, _, _, err = r.crew("agent1").Book().Update(t.Context(), id, task.Change{State: store.TaskInProgress})
		testworld.Must(r, err)
		r.pass()
		r.says(id, "in_progress agent1 1")
	}
}

// A task waits for those that it needs, and starts by itself, in a daemon that knows only the records.
func TestWaitsForOthers(t *testing.T) {
	r := newRig(t)
	first, second := r.add("first"), r.add("second")
	third := r.add("third", first, second)
	if s := r.start(third, "agent2"); len(s.Waits) != 2 {
		t.Fatalf("waits for %v", s.Waits)
	}
	r.says(third, "open agent2 0")
	if k := r.task(third); k.Starter != agent.Owner {
		t.Errorf("%+v", k)
	}
	r.start(first, "agent1")
	r.start(second, "agent1")
	r.answer("agent1", r.task(first).Brief, envelope.KindReply, "a proof")
	r.pass()
	r.says(third, "open agent2 0")
	r.begin()
	r.answer("agent1", r.task(second).Brief, envelope.KindReply, "another")
	r.pass()
	r.says(third, "in_progress agent2 1")
	if mail := r.inbox("agent2", envelope.KindBrief); len(mail) != 1 || !strings.Contains(mail[0].Text, first+" first (claimed): a proof\n") {
		t.Errorf("%+v", mail)
	}
}

// A task that is closed is not always enough: the one that needs it waits until it is, and says for what.
func TestWaitsForEnough(t *testing.T) {
	r := newRig(t)
	first := r.add("first")
	second := r.add("second", first)
	r.start(second, "agent2")
	r.start(first, "agent1")
	enough := false
	r.keeper.Enough = func(context.Context, *store.DB, store.Task) bool { return enough }
	r.answer("agent1", r.task(first).Brief, envelope.KindReply, "a proof")
	r.pass()
	r.says(second, "open agent2 0")
	j := &task.Judge{Work: record.Records{DB: r.db}, After: task.Landed}
	_, err := r.crew(agent.Owner).Book().Alter(t.Context(), first, func(k *store.Task) ([]store.Op, error) { k.Head = "h"; return nil, nil })
	testworld.Must(r, err)
	views, err := dispatch.Views(t.Context(), r.db, j, []store.Task{r.task(second)}, unknown, nil)
	if err != nil || views[0].Now != "needs "+dispatch.Short(first)+" landed" {
		t.Errorf("%+v, %v", views, err)
	}
	enough = true
	r.pass()
	r.says(second, "in_progress agent2 1")
}

// What needs a cancelled task is blocked, and who wanted it is told once; it may start without.
func TestCancelledNeed(t *testing.T) {
	r := newRig(t)
	first := r.add("first")
	second := r.add("second", first)
	r.start(second, "agent1")
	testworld.Got(r.crew(agent.Owner).Edit(t.Context(), first, task.Change{State: store.TaskCancelled}))(r)
	r.pass()
	r.begin()
	r.pass()
	r.says(second, "blocked agent1 0")
	if mail := r.inbox(agent.Owner, envelope.KindNotice); len(mail) != 1 || !strings.Contains(mail[0].Text, "(second) is blocked: it needs "+first) {
		t.Errorf("told: %+v", mail)
	}
	testworld.ErrorIs(t, testworld.Err(r.crew(agent.Owner).Start(t.Context(), second, r.wish(""))), dispatch.ErrNeeds, "started")
	w := r.wish("")
	w.Anyway = true
	testworld.Got(r.crew(agent.Owner).Start(t.Context(), second, w))(r)
	r.says(second, "in_progress agent1 1")
}

// What a crash leaves between the record and the brief is completed, once.
func TestBriefIsSentOnce(t *testing.T) {
	r := newRig(t)
	id := r.add("one")
	testworld.Got(r.crew(agent.Owner).Book().Alter(t.Context(), id, func(k *store.Task) ([]store.Op, error) { // as Start records it
		k.State, k.Assignee, k.Starter, k.Starts, k.Started = store.TaskInProgress, "agent1", agent.Owner, 1, 1
		k.Brief = task.BriefID(id, 1)
		return nil, nil
	}))(r)
	r.pass()
	forget := func() { // as if killed before it was recorded that the brief was sent
		testworld.Got(r.crew(agent.Owner).Book().Alter(t.Context(), id, func(k *store.Task) ([]store.Op, error) {
			k.Briefed = 0
			return nil, nil
		}))(r)
		r.begin()
		r.pass()
	}
	forget()
	taken := 0
	testworld.Got(r.bus.Drain(t.Context(), "agent1", 100, func(e envelope.Envelope) error { taken++; return nil }))(r)
	forget()
	testworld.Got(r.bus.Drain(t.Context(), "agent1", 100, func(e envelope.Envelope) error { taken++; return nil }))(r)
	testworld.Equal(t, taken, 1, "the worker got it")
	r.says(id, "in_progress agent1 1")
}

// Nobody is given what another works on.
func TestStartIsRefused(t *testing.T) {
	r := newRig(t)
	id := r.add("one")
	r.start(id, "agent1")
	for _, to := range []agent.ID{"agent1", "agent2"} {
		testworld.ErrorIs(t, testworld.Err(r.crew(agent.Owner).Start(t.Context(), id, r.wish(to))), dispatch.ErrTaken, "to %s", to)
	}
	if n := len(r.inbox("agent2", envelope.KindBrief)); n > 0 {
		t.Errorf("agent2 got %d briefs", n)
	}
	r.answer("agent1", r.task(id).Brief, envelope.KindReply, "ok")
	r.pass()
	testworld.ErrorIs(t, testworld.Err(r.crew(agent.Owner).Start(t.Context(), id, r.wish("agent2"))), dispatch.ErrEnded, "what has ended")
	testworld.ErrorIs(t, testworld.Err(r.crew("agent2").Start(t.Context(), r.add("two"), r.wish("agent1"))), task.ErrNotYours, "a clone for another")
	own := r.add("three")
	if s, err := r.crew("agent2").Start(t.Context(), own, r.wish("")); err != nil || !s.Own {
		t.Errorf("a clone for itself: %+v, %v", s, err)
	}
	r.says(own, "in_progress agent2 0")
	testworld.Fails(t, testworld.Err(r.crew(agent.Owner).Start(t.Context(), r.add("four"), r.wish(""))), "is assigned to nobody", "nobody")
}

// An agent that is down is started; with Queue the brief waits for it.
func TestStartsTheAgent(t *testing.T) {
	r := newRig(t)
	r.set("agent1", agent.Down)
	r.start(r.add("one"), "agent1")
	testworld.Equal(t, fmt.Sprint(r.raised), "[agent1]", "started")
	r.set("agent2", agent.Down)
	w := r.wish("agent2")
	w.Queue = true
	testworld.Got(r.crew(agent.Owner).Start(t.Context(), r.add("two"), w))(r)
	if len(r.raised) != 1 || len(r.inbox("agent2", envelope.KindBrief)) != 1 {
		t.Errorf("started %v", r.raised)
	}
	w.Agent = "agent9"
	testworld.Fails(t, testworld.Err(r.crew(agent.Owner).Start(t.Context(), r.add("three"), w)), "no mailbox yet", "an agent without a mailbox")
}

// A dead worker's task waits for it, who asked is told once, and it goes on or to another.
func TestDeadWorker(t *testing.T) {
	r := newRig(t)
	id := r.add("one")
	r.start(id, "agent1")
	first := r.task(id).Brief
	r.set("agent1", agent.CrashLooping)
	r.pass()
	r.begin()
	r.pass()
	if mail := r.inbox(agent.Owner, envelope.KindNotice); len(mail) != 1 || !strings.Contains(mail[0].Text, "agent1 is crash-looping") {
		t.Errorf("told: %+v", mail)
	}
	if s := r.start(id, "agent1"); !s.Kept || len(r.raised) != 1 {
		t.Errorf("back to the same: %+v", s)
	}
	r.says(id, "in_progress agent1 1")
	r.set("agent1", agent.Down)
	r.start(id, "agent2")
	r.says(id, "in_progress agent2 2")
	if mail := r.inbox("agent2", envelope.KindBrief); len(mail) != 1 || !strings.Contains(mail[0].Text, "agent1 had it before") {
		t.Errorf("handed on: %+v", mail)
	}
	testworld.Equal(t, len(r.inbox("agent1", envelope.KindBrief)), 0, "agent1 still has")
	r.answer("agent1", first, envelope.KindReply, "late")
	r.pass()
	r.says(id, "in_progress agent2 2")
	r.answer("agent2", r.task(id).Brief, envelope.KindReply, "ok")
	r.pass()
	r.says(id, "claimed agent2 2")
}

// What a worker has committed for a task counts from where it was when the task was given to it; what
// it goes on with, from where it began.
func TestBegun(t *testing.T) {
	r := newRig(t)
	repo := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
	for _, id := range []agent.ID{"agent1", "agent2"} {
		testworld.Must(r, r.home.SaveLaunch(agent.Launch{Agent: id, Dir: repo.Dir}))
	}
	first, second := repo.Git("rev-parse", "HEAD"), ""
	id := r.add("one")
	for _, step := range []struct {
		to     agent.ID
		change task.Change
		want   *string
	}{
		{to: "agent1", want: &first},
		{to: "agent1", change: task.Change{State: store.TaskBlocked, Note: "why"}, want: &first},
		{to: "agent2", change: task.Change{State: store.TaskBlocked, Note: "why"}, want: &second},
		{to: "agent1", change: task.Change{State: store.TaskBlocked, Note: "why"}, want: &second},
	} {
		if step.change.State != "" {
			testworld.Got(r.crew(agent.Owner).Edit(t.Context(), id, step.change))(r)
		}
		r.start(id, step.to)
		testworld.Equal(t, r.task(id).Begun, *step.want, "%s began at", step.to)
		if second == "" {
			second = repo.Commit("more", "a.txt", "more")
		}
	}
}

// What a worker had taken and not finished when it ended is taken back before another gets the task:
// its next start neither gets it again nor owes an answer.
func TestTakenFromTheDead(t *testing.T) {
	r := newRig(t)
	for _, seen := range []bool{false, true} {
		id := r.add("one")
		r.start(id, "agent1")
		brief := r.task(id).Brief
		in := testworld.Got(r.bus.Receive(t.Context(), "agent1", bus.ReceiveOptions{}))(r)
		d := testworld.Got(in.Next(t.Context()))(r)
		testworld.Must(r, courier.Owe(r.home, "agent1", d.Envelope()))
		if seen {
			testworld.Must(r, d.Confirm())
		}
		testworld.Must(r, in.Close())
		r.set("agent1", agent.Down)
		testworld.Equal(t, r.start(id, "agent2").Note, "", "note")
		r.says(id, "in_progress agent2 2")
		for _, p := range []bus.Place{bus.Inbox, bus.Claimed} {
			if n, err := r.bus.Count("agent1", p); n != 0 || err != nil {
				t.Errorf("agent1 has %d in %s, %v", n, p, err)
			}
		}
		if courier.ReadLedger(r.home, "agent1").Owes(brief) {
			t.Error("agent1 still owes an answer")
		}
	}
}

// A worker that was started anew and has lost its brief gets the task again; one that has merely
// ended its turn without a word does not.
func TestLostBrief(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		name    string
		started time.Duration // of the worker, after it got the brief
		want    string
	}{{"started since", time.Hour, "in_progress agent1 2"}, {"the same start", -time.Hour, "blocked agent1 1"}} {
		id := r.add(tt.name)
		r.start(id, "agent1")
		r.take("agent1")
		testworld.Must(r, r.home.SaveKeeper("agent1", agent.Keeper{Start: "s", StartedMS: time.Now().Add(tt.started).UnixMilli()}))
		r.set("agent1", agent.Busy)
		r.pass()
		r.says(id, "in_progress agent1 1")
		r.set("agent1", agent.Idle)
		r.pass()
		r.says(id, tt.want)
		if tt.started > 0 {
			mail := r.inbox("agent1", envelope.KindBrief)
			if len(mail) != 1 || !strings.Contains(mail[0].Text, "You had this task before") {
				t.Errorf("%+v", mail)
			}
			r.answer("agent1", r.task(id).Brief, envelope.KindReply, "ok")
			r.pass()
			r.says(id, "claimed agent1 2")
		}
	}
}

// A brief that was taken back before it was read blocks the task; a task that is cancelled takes its
// brief back.
func TestTakenBack(t *testing.T) {
	r := newRig(t)
	one, two := r.add("one"), r.add("two")
	r.start(one, "agent1")
	r.start(two, "agent2")
	testworld.Got(r.bus.Retract(t.Context(), "agent1", func(envelope.Envelope) bool { return true }))(r)
	r.pass()
	r.says(one, "blocked agent1 1")
	if mail := r.inbox(agent.Owner, envelope.KindNotice); len(mail) != 1 || !strings.Contains(mail[0].Text, "(one) is blocked: agent1 did not get it: ") {
		t.Errorf("told: %+v", mail)
	}
	testworld.Got(r.crew(agent.Owner).Edit(t.Context(), two, task.Change{State: store.TaskCancelled, Note: "not needed"}))(r)
	r.pass()
	r.says(two, "cancelled agent2 1")
	if k := r.task(two); k.Brief != "" || len(r.inbox("agent2", envelope.KindBrief)) > 0 {
		t.Errorf("%+v", k)
	}
}
