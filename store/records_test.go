package store_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/store"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// story is one op of each kind at least, in the order in which it happened.
func story() []store.Op {
	return []store.Op{
		store.UpsertActor{ID: "agent0", Runtime: "claude", Dir: "/src", Objective: "ship it", Desired: store.DesiredUp, Updated: 1000},
		store.StartSession{Start: "00000000000000aa", Actor: "agent0", Runtime: "claude", Tmux: "agent0", PID: 10, PIDStart: 99, Started: 1001},
		store.SessionState{Start: "00000000000000aa", State: agent.Idle, Thread: "th-1", Time: 1002},
		store.UpsertMessage{ID: "m-question", From: "owner", To: "agent0", Text: "what?", Time: 1003, Via: "cli", RequiresAck: true,
			Attachments: []string{"attach/a.png"}, Metadata: map[string]json.RawMessage{"chat": raw(`"c1"`)}},
		store.UpsertDelivery{Message: "m-question", Target: "agent0", State: store.Queued, Time: 1004},
		store.UpsertInput{Actor: "agent0", Thread: "th-1", Message: "m-question", State: store.InputPending, Time: 1005},
		store.UpsertDelivery{Message: "m-question", Target: "agent0", State: store.Claimed, Time: 1006},
		store.UpsertInput{Actor: "agent0", Thread: "th-1", Message: "m-question", State: store.InputConsumed, Time: 1007},
		store.UpsertDelivery{Message: "m-question", Target: "agent0", State: store.Delivered, Time: 1008},
		store.UpsertTask{ID: "t-first", Title: "find out", State: store.TaskDone, AskedBy: "owner", Assignee: "agent0",
			Message: "m-question", Proof: "abc", Created: 1009, Started: 1010, Ended: 1011, Updated: 1011},
		store.UpsertTask{ID: "t-later", Title: "then", Updated: 1012},
		store.AddDependency{Task: "t-later", Needs: "t-first", Created: 1013},
		store.UpsertMessage{ID: "m-answer", From: "agent0", To: "owner", Kind: "reply", Text: "that.", InReplyTo: "m-question", Time: 1014, Hops: 1},
		store.UpsertDelivery{Message: "m-answer", Target: "owner", State: store.Delivered, Time: 1015},
		store.AddNote{ID: "n-1", About: "t-first", Author: "agent0", Text: "was easy", Created: 1016},
		store.AddLog{Key: "k-1", Time: 1017, Part: "up", Actor: "agent0", Text: "up", Fields: map[string]any{"n": 1.0}},
		store.SetSetting{Key: "quiet", Value: "1h", Who: "owner", Updated: 1018},
		store.UpsertUpdate{ID: "u-1", State: "built", Commands: []string{"go build"}, Backup: "netsky.bak", Started: 1019, Updated: 1019},
		store.EndSession{Start: "00000000000000aa", State: agent.Down, Status: new(0), LastLines: "bye\n", Time: 1020},
	}
}

// Whatever is applied twice, or late, changes nothing.
func TestIdempotent(t *testing.T) {
	t.Parallel()
	home := testworld.Home(t)
	db := mustOpen(t, home)
	for _, op := range story() {
		mustApply(t, db, op)
	}
	want := dump(t, home)
	for _, table := range tables {
		testworld.Contains(t, want, table+".", "nothing in %s", table)
	}
	for _, op := range story() {
		mustApply(t, db, op)
		if got := dump(t, home); got != want {
			t.Fatalf("%T applied again:\n%s\nwant\n%s", op, got, want)
		}
	}
	mustApply(t, db, story()...)
	testworld.Equal(t, dump(t, home), want, "all applied again")
}

// News of the same message may come in any order, as long as the message is
// on record before its delivery.
func TestOrderOfDeliveries(t *testing.T) {
	t.Parallel()
	ops := []store.Op{
		store.UpsertDelivery{Message: "m1", Target: "agent1", State: store.Queued, Time: 10},
		store.UpsertDelivery{Message: "m1", Target: "agent1", State: store.Claimed, Time: 20},
		store.UpsertDelivery{Message: "m1", Target: "agent1", State: store.Delivered, Time: 30},
		store.UpsertMessage{ID: "r1", From: "agent1", To: "owner", Kind: "error", InReplyTo: "m1", Time: 40},
		store.UpsertMessage{ID: "r2", From: "agent1", To: "owner", Kind: "reply", InReplyTo: "m1", Time: 50},
		store.UpsertMessage{ID: "r3", From: "agent1", To: "owner", Kind: "reply", InReplyTo: "m1", Time: 60},
		store.UpsertMessage{ID: "r4", From: "agent2", To: "owner", Kind: "reply", InReplyTo: "m1", Time: 35},
		store.UpsertDelivery{Message: "m2", Target: "agent1", State: store.Poisoned, Reason: "too long", Time: 30},
		store.UpsertMessage{ID: "e2", From: "agent1", To: "owner", Kind: "error", InReplyTo: "m2", Time: 40},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	want := ""
	for range 30 {
		home := testworld.Home(t)
		db := mustOpen(t, home)
		mustApply(t, db, store.UpsertMessage{ID: "m1", From: "owner", To: "agent1", Text: "x", Time: 5},
			store.UpsertMessage{ID: "m2", From: "owner", To: "agent1", Text: "x", Time: 6})
		mustApply(t, db, ops...)
		l := testworld.Got(db.Deliveries(t.Context(), store.DeliveryFilter{}))(t)
		got := testworld.Got(json.Marshal(l.Items))(t)
		if want == "" {
			want = string(got)
			a, b := l.Items[0], l.Items[1]
			if a.Message != "m1" {
				a, b = b, a
			}
			if a.State != store.Answered || a.Answer != "r2" || a.Queued != 10 || a.Claimed != 20 || a.Delivered != 30 || a.Answered != 50 {
				t.Errorf("m1: %+v, want answered by r2 at 50, and all its times", a)
			}
			if b.State != store.Poisoned || b.Answer != "e2" || b.Reason != "too long" {
				t.Errorf("m2: %+v, want poisoned, told by e2", b)
			}
		}
		var x, y []store.Delivery
		testworld.Must(t, json.Unmarshal(got, &x))
		testworld.Must(t, json.Unmarshal([]byte(want), &y))
		byMessage := func(l []store.Delivery) map[string]store.Delivery {
			m := map[string]store.Delivery{}
			for _, d := range l {
				m[d.Message] = d
			}
			return m
		}
		if !reflect.DeepEqual(byMessage(x), byMessage(y)) {
			t.Fatalf("in the order %+v:\n%s\nwant\n%s", ops, got, want)
		}
		rng.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	}
}

func TestDeliveryMovesForward(t *testing.T) {
	t.Parallel()
	type step struct {
		state    store.DeliveryState
		attempts int
	}
	for _, tt := range []struct {
		name  string
		steps []step
		want  store.DeliveryState
	}{
		{"late claim", []step{{store.Delivered, 0}, {store.Claimed, 0}}, store.Delivered},
		{"late queue", []step{{store.Claimed, 0}, {store.Queued, 0}}, store.Claimed},
		{"taken back", []step{{store.Queued, 0}, {store.Cancelled, 0}}, store.Cancelled},
		{"found after all", []step{{store.Cancelled, 0}, {store.Delivered, 0}}, store.Delivered},
		{"poison is not undone", []step{{store.Poisoned, 0}, {store.Queued, 0}}, store.Poisoned},
		{"poison tried again", []step{{store.Poisoned, 0}, {store.Queued, 1}}, store.Queued},
		{"and again poison", []step{{store.Poisoned, 0}, {store.Queued, 1}, {store.Poisoned, 1}}, store.Poisoned},
		{"news of the first try", []step{{store.Queued, 1}, {store.Poisoned, 0}}, store.Queued},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := mustOpen(t, testworld.Home(t))
			mustApply(t, db, store.UpsertMessage{ID: "m", From: "owner", Text: "x"})
			for i, s := range tt.steps {
				mustApply(t, db, store.UpsertDelivery{Message: "m", Target: "agent1", State: s.state, Attempts: s.attempts, Time: store.Time(i + 1)})
			}
			l := testworld.Got(db.Deliveries(t.Context(), store.DeliveryFilter{Message: "m"}))(t)
			if len(l.Items) != 1 || l.Items[0].State != tt.want {
				t.Errorf("after %v: %+v, want %s", tt.steps, l.Items, tt.want)
			}
		})
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	start := func(id string, at store.Time) store.Op {
		return store.StartSession{Start: id, Actor: "agent1", Started: at}
	}
	end := func(id string, at store.Time) store.Op { return store.EndSession{Start: id, Status: new(3), Time: at} }
	type want struct {
		open   bool
		reason string
		ended  store.Time
		status bool
	}
	unseen := want{reason: store.EndedUnseen, ended: 20}
	for _, tt := range []struct {
		name string
		ops  []store.Op
		a, b want
	}{
		{"one open", []store.Op{start("a", 10), start("b", 20)}, unseen, want{open: true}},
		{"told late", []store.Op{start("b", 20), start("a", 10)}, unseen, want{open: true}},
		{"end found later", []store.Op{start("a", 10), start("b", 20), end("a", 15)}, want{ended: 15, status: true}, want{open: true}},
		{"ended in time", []store.Op{start("a", 10), end("a", 15), start("b", 20)}, want{ended: 15, status: true}, want{open: true}},
		{"both ended", []store.Op{start("a", 10), end("a", 15), start("b", 20), end("b", 30)}, want{ended: 15, status: true}, want{ended: 30, status: true}},
		{"first end stays", []store.Op{start("a", 10), end("a", 15), start("b", 20),
			store.EndSession{Start: "a", Signal: "SIGKILL", Reason: "down", Time: 17}}, want{ended: 15, status: true, reason: "down"}, want{open: true}},
		{"state after the end", []store.Op{start("a", 10), end("a", 15), store.SessionState{Start: "a", State: agent.Busy, Time: 16}, start("b", 20)},
			want{ended: 15, status: true}, want{open: true}},
		{"another actor's", []store.Op{start("a", 10), end("a", 15), start("b", 20), store.StartSession{Start: "c", Actor: "agent2", Started: 30}},
			want{ended: 15, status: true}, want{open: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := mustOpen(t, testworld.Home(t))
			mustApply(t, db, tt.ops...)
			for id, w := range map[string]want{"a": tt.a, "b": tt.b} {
				s := testworld.Got(db.Session(t.Context(), id))(t)
				got := want{s.Ended == 0, s.Reason, s.Ended, s.Status != nil && *s.Status == 3}
				testworld.Equal(t, got, w, "%s", id)
				if s.State == agent.Busy || s.Signal != "" {
					t.Errorf("%s: state %s, signal %q", id, s.State, s.Signal)
				}
			}
		})
	}
}

// An older report than the last one is no news.
func TestSessionState(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	mustApply(t, db, store.StartSession{Start: "a", Actor: "agent1", Started: 10},
		store.SessionState{Start: "a", State: agent.Idle, Time: 30},
		store.SessionState{Start: "a", State: agent.Busy, Time: 20, PID: 7, PIDStart: 8, Thread: "th"},
		store.SessionState{Start: "nobody", State: agent.Busy, Time: 20},
		store.EndSession{Start: "unknown", Actor: "agent2", Time: 40})
	s, err := db.Session(t.Context(), "a")
	testworld.Must(t, err)
	if s.State != agent.Idle || s.Changed != 30 || s.PID != 7 || s.PIDStart != 8 || s.Thread != "th" {
		t.Errorf("%+v, want idle since 30, pid 7, thread th", s)
	}
	l, err := db.Sessions(t.Context(), store.SessionFilter{Open: true})
	testworld.Must(t, err)
	testworld.Equal(t, len(l.Items), 1, "open sessions")
	if s, err = db.Session(t.Context(), "unknown"); err != nil || s.Actor != "agent2" || s.Ended != 40 {
		t.Errorf("an end without a start: %+v, %v, want a session of agent2", s, err)
	}
}

// What lies in the spool must not undo what came after it.
func TestLateNews(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	mustApply(t, db,
		store.UpsertActor{ID: "agent1", Runtime: "demo", Desired: store.DesiredDown, Updated: 20},
		store.UpsertActor{ID: "agent1", Runtime: "codex", Objective: "x", Desired: store.DesiredUp, Updated: 10},
		store.SetSetting{Key: "quiet", Value: "off", Updated: 20}, store.SetSetting{Key: "quiet", Value: "1h", Updated: 10},
		store.UpsertTask{ID: "t1", Title: "t", State: store.TaskDone, Updated: 20}, store.UpsertTask{ID: "t1", Title: "t", Updated: 10})
	a := testworld.Got(db.Actor(t.Context(), "agent1"))(t)
	if a.Runtime != "demo" || a.Desired != store.DesiredDown || a.Objective != "x" || a.Role != agent.RoleWorker || a.Created != 10 {
		t.Errorf("%+v, want demo, down, objective x, created 10", a)
	}
	if s, err := db.Setting(t.Context(), "quiet"); err != nil || s.Value != "off" {
		t.Errorf("%+v, %v, want off", s, err)
	}
	k := testworld.Got(db.Task(t.Context(), "t1"))(t)
	if k.State != store.TaskDone || k.ActualMinutes != 1 {
		t.Errorf("%+v, want done in 1 minute", k)
	}
}

// One caller's wrong record is undone alone, whole.
func TestApplyIsWhole(t *testing.T) {
	t.Parallel()
	home := testworld.Home(t)
	db := mustOpen(t, home)
	for _, bad := range []store.Op{
		store.UpsertDelivery{Message: "nobody", Target: "agent1", State: store.Queued},
		store.UpsertDelivery{Message: "m", Target: "agent1", State: store.Answered},
		store.UpsertDelivery{Message: "m", Target: "agent1", State: "lost"},
		store.UpsertActor{ID: "Agent 1"},
		store.StartSession{Actor: "agent1"},
		store.UpsertMessage{},
		store.UpsertTask{ID: "t", Title: "t", State: "lost"},
		store.UpsertTask{ID: "t"},
		store.AddDependency{Task: "t", Needs: "u"},
		store.AddDependency{Task: "t", Needs: "t"},
		store.UpsertInput{Actor: "agent1", State: "lost"},
		store.SetSetting{Value: "x"},
		store.UpsertUpdate{ID: "u"},
		store.EndSession{},
	} {
		testworld.Fails(t, db.Apply(t.Context(), store.AddLog{Text: "before"}, bad), "", "%+v: no error", bad)
	}
	testworld.Equal(t, dump(t, home), "", "on record")
}

func TestTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   store.Time
		want string
	}{
		{0, `""`},
		{1795262400123, `"2026-11-21T12:00:00.123Z"`},
		{1795262400000, `"2026-11-21T12:00:00.000Z"`},
	} {
		got, err := json.Marshal(tt.in)
		if err != nil || string(got) != tt.want {
			t.Errorf("Marshal(%d) = %s, %v, want %s", tt.in, got, err, tt.want)
		}
		var back store.Time
		if err := json.Unmarshal(got, &back); err != nil || back != tt.in {
			t.Errorf("Unmarshal(%s) = %d, %v, want %d", got, back, err, tt.in)
		}
	}
	var bad store.Time
	if json.Unmarshal([]byte(`"yesterday"`), &bad) == nil || json.Unmarshal([]byte(`5`), &bad) == nil {
		t.Error("no error for what is no time")
	}
}

// Two agents that both count their messages from 1 lose none, and an answer is
// for the one it was sent to.
func TestSameIDOfTwoSenders(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	for _, from := range []agent.ID{"agent2", "agent3"} {
		mustApply(t, db, store.UpsertMessage{ID: "1", From: from, To: "agent1", Text: "from " + string(from)},
			store.UpsertDelivery{Message: "1", From: from, Target: "agent1", State: store.Delivered})
	}
	mustApply(t, db, store.UpsertMessage{ID: "r", From: "agent1", To: "agent3", Kind: "reply", InReplyTo: "1", Text: "x"})
	l, err := db.Deliveries(t.Context(), store.DeliveryFilter{Message: "1"})
	testworld.Must(t, err)
	got := map[agent.ID]store.DeliveryState{}
	for _, d := range l.Items {
		got[d.From] = d.State
	}
	if want := (map[agent.ID]store.DeliveryState{"agent2": store.Delivered, "agent3": store.Answered}); !reflect.DeepEqual(got, want) {
		t.Errorf("deliveries of 1: %v, want %v", got, want)
	}
	m, err := db.Messages(t.Context(), store.MessageFilter{ID: "1"})
	if err != nil || len(m.Items) != 2 {
		t.Errorf("messages 1: %v, %v, want two", m.Items, err)
	}
	if tl, err := db.Timeline(t.Context(), "1"); err != nil || strings.Count(kinds(tl), "message:1") != 2 {
		t.Errorf("Timeline(1): %v, %v, want both", kinds(tl), err)
	}
}

// A task of a second is not said to have taken a minute.
func TestTook(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		minutes        int
		started, ended store.Time
		want           string
	}{
		{0, 0, 0, ""}, {1, 1000, 2000, "at most a minute"}, {1, 1000, 81_000, "1 min"}, {1, 0, 2000, "1 min"}, {90, 1000, 2000, "90 min"},
	} {
		k := store.Task{ActualMinutes: tt.minutes, Started: tt.started, Ended: tt.ended}
		testworld.Equal(t, k.Took(), tt.want, "%+v: took", tt)
	}
}
