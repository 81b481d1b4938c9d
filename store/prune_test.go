package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

const day = 24 * time.Hour

func mustPrune(tb testing.TB, db *store.DB, p *store.Pass) {
	tb.Helper()
	for !p.Done() {
		testworld.Must(tb, db.Prune(tb.Context(), p))
	}
}

// letter returns the records of a message that was delivered then.
func letter(id string, from, to agent.ID, at store.Time) []store.Op {
	return []store.Op{
		store.UpsertMessage{ID: id, From: from, To: to, Text: "text of " + id, Time: at},
		store.UpsertDelivery{Message: id, From: from, Target: to, State: store.Delivered, Queued: at, Time: at},
	}
}

// What has ended long ago is removed; what is young, open or needed is not.
func TestPrune(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.FastHome(t))
	now := time.Now()
	old, young := store.At(now.Add(-40*day)), store.At(now.Add(-day))
	var ops []store.Op
	add := func(more ...store.Op) { ops = append(ops, more...) }
	gone := []string{"plain", "answered", "answer", "lost", "expired", "consumed", "of-done", "shown-brief-answered", "its-answer", "code"}
	add(letter("plain", "agent1", "agent2", old)...)
	add(letter("answered", "owner", "agent1", old)...)
	add(store.UpsertMessage{ID: "answer", From: "agent1", To: "owner", Kind: "reply", InReplyTo: "answered", Text: "x", Time: old})
	add(store.UpsertMessage{ID: "lost", From: "agent1", To: "agent2", Text: "never delivered", Time: old})
	add(store.UpsertMessage{ID: "expired", From: "agent1", To: "agent2", Text: "x", Time: old},
		store.UpsertDelivery{Message: "expired", Target: "agent2", State: store.Expired, Time: old})
	add(letter("consumed", "owner", "agent1", old)...)
	add(store.UpsertInput{Actor: "agent1", Thread: "t", Message: "consumed", State: store.InputConsumed, Time: old})
	add(letter("of-done", "owner", "agent1", old)...)
	brief := func(id, kind, via string) {
		add(store.UpsertMessage{ID: id, From: "agent1", To: "owner", Kind: kind, Via: via, Text: "which?", Time: old},
			store.UpsertDelivery{Message: id, Target: "owner", State: store.Delivered, Time: old})
	}
	brief("shown-brief-answered", "brief", "")
	add(store.UpsertMessage{ID: "its-answer", From: "owner", To: "agent1", Kind: "reply", InReplyTo: "shown-brief-answered", Text: "x", Time: old})
	brief("code", "approval", "code") // its item in `netsky needs` is the approval itself

	stays := []string{"young", "late", "queued", "claimed", "poisoned", "pending", "of-open", "held", "question", "brief", "ack", "approval", "answered-now", "now-answer"}
	add(letter("young", "agent1", "agent2", young)...)
	add(store.UpsertMessage{ID: "late", From: "agent1", To: "agent2", Text: "written long ago, delivered yesterday", Time: old},
		store.UpsertDelivery{Message: "late", Target: "agent2", State: store.Delivered, Time: young})
	for _, s := range []store.DeliveryState{store.Queued, store.Claimed, store.Poisoned} {
		add(store.UpsertMessage{ID: string(s), From: "agent1", To: "agent2", Text: "x", Time: old},
			store.UpsertDelivery{Message: string(s), Target: "agent2", State: s, Time: old})
	}
	add(letter("pending", "owner", "agent1", old)...)
	add(store.UpsertInput{Actor: "agent1", Thread: "t", Message: "pending", State: store.InputPending, Time: old})
	add(letter("of-open", "owner", "agent1", old)...)
	add(letter("held", "owner", "agent1", old)...)
	brief("question", "question", "")
	brief("brief", "brief", "")
	brief("approval", "approval", "")
	add(store.UpsertMessage{ID: "ack", From: "agent1", To: "owner", RequiresAck: true, Text: "well?", Time: old},
		store.UpsertDelivery{Message: "ack", Target: "owner", State: store.Delivered, Time: old})
	add(letter("answered-now", "owner", "agent1", old)...)
	add(store.UpsertMessage{ID: "now-answer", From: "agent1", To: "owner", Kind: "reply", InReplyTo: "answered-now", Text: "x", Time: young})

	task := func(id, state, message string, at store.Time) {
		add(store.UpsertTask{ID: id, Title: id, State: state, Message: message, Created: old, Updated: at, Ended: at})
	}
	task("done", store.TaskDone, "of-done", old)
	task("done-now", store.TaskDone, "", young)
	task("open", store.TaskOpen, "of-open", old)
	task("needed", store.TaskDone, "", old)
	task("chain-1", store.TaskDone, "", old)
	task("chain-2", store.TaskCancelled, "", old)
	add(store.AddDependency{Task: "open", Needs: "needed"}, store.AddDependency{Task: "chain-1", Needs: "chain-2"})

	for i := range 3 {
		start := fmt.Sprintf("agent1-%d", i)
		add(store.StartSession{Start: start, Actor: "agent1", Started: old + store.Time(i)}, store.EndSession{Start: start, Time: old + store.Time(i) + 1})
	}
	add(store.StartSession{Start: "running", Actor: "agent2", Started: old})
	add(store.AddLog{Key: "old", Text: "old", Time: old}, store.AddLog{Key: "young", Text: "young", Time: young}, store.AddNote{ID: "note", Text: "remember", Created: old})
	add(store.SetSetting{Key: "k", Value: "v", Updated: old})
	add(store.AddSchedule{ID: "ended", Spec: "@daily", Target: "agent1", Text: "x", Who: "owner", Created: old}, store.EndSchedule{ID: "ended", At: old},
		store.AddSchedule{ID: "active", Spec: "@daily", Target: "agent1", Text: "x", Who: "owner", Created: old})
	mustApply(t, db, ops...)

	pass := func(key string) *store.Pass {
		return &store.Pass{Before: now.Add(-30 * day), Key: key, Why: "a test", Held: func(id string) bool { return id == "held" }}
	}
	mustPrune(t, db, pass("prune-1"))
	for _, id := range gone {
		testworld.ErrorIs(t, testworld.Err(db.Message(t.Context(), id)), store.ErrNotFound, "message %s is still there", id)
		if d, err := db.Deliveries(t.Context(), store.DeliveryFilter{Message: id}); err != nil || len(d.Items) > 0 {
			t.Errorf("delivery of %s: %v, %v", id, d, err)
		}
		if in, err := db.Inputs(t.Context(), id); err != nil || len(in) > 0 {
			t.Errorf("input of %s: %v, %v", id, in, err)
		}
	}
	for _, id := range stays {
		testworld.Equal(t, testworld.Err(db.Message(t.Context(), id)), nil, "message %s", id)
	}
	got := map[string]bool{}
	for _, id := range []string{"done", "done-now", "open", "needed", "chain-1", "chain-2"} {
		if _, err := db.Task(t.Context(), id); err == nil {
			got[id] = true
		}
	}
	if want := map[string]bool{"done-now": true, "open": true, "needed": true}; !maps.Equal(got, want) {
		t.Errorf("tasks %v, want %v", got, want)
	}
	sessions := testworld.Got(db.Sessions(t.Context(), store.SessionFilter{}))(t)
	var starts []string
	for _, s := range sessions.Items {
		starts = append(starts, s.Start)
	}
	if slices.Sort(starts); !slices.Equal(starts, []string{"agent1-2", "running"}) {
		t.Errorf("sessions %v", starts)
	}
	testworld.Equal(t, testworld.Err(db.Note(t.Context(), "note")), nil)
	if s, err := db.Setting(t.Context(), "k"); err != nil || s.Value != "v" {
		t.Errorf("setting %v, %v", s, err)
	}
	if l, err := db.Schedules(t.Context(), true); err != nil || len(l) != 1 || l[0].ID != "active" {
		t.Errorf("schedules %v, %v", l, err)
	}
	logs := testworld.Got(db.Logs(t.Context(), store.LogFilter{}))(t)
	if len(logs.Items) != 2 || logs.Items[1].Text != "young" ||
		!strings.Contains(logs.Items[0].Text, "messages 10") || !strings.Contains(logs.Items[0].Text, "(a test)") {
		t.Errorf("logs %+v", logs.Items)
	}

	mustPrune(t, db, pass("prune-2"))
	if logs, err := db.Logs(t.Context(), store.LogFilter{}); err != nil || len(logs.Items) != 2 {
		t.Errorf("a pass that removed nothing left %+v, %v", logs.Items, err)
	}
	testworld.Must(t, db.Check(t.Context()))
}

// A question stays answered when the record of its answer is gone, and becomes open by
// nothing that is recorded again.
func TestPrunedAnswer(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.FastHome(t))
	now := time.Now()
	old := store.At(now.Add(-40 * day))
	question := letter("question", "agent1", "agent2", store.At(now))
	mustApply(t, db, question...)
	mustApply(t, db, letter("answer", "agent2", "agent1", old)...)
	mustApply(t, db, store.UpsertMessage{ID: "answer", From: "agent2", InReplyTo: "question", Kind: "reply"},
		store.UpsertMessage{ID: "reply", From: "agent2", To: "agent1", Kind: "reply", InReplyTo: "question", Text: "x", Time: old})
	mustPrune(t, db, &store.Pass{Before: now.Add(-30 * day), Key: "k"})
	if _, err := db.Message(t.Context(), "reply"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("the answer is still there: %v", err)
	}
	mustApply(t, db, question...)
	if d, err := db.Delivery(t.Context(), "question", "agent1", "agent2"); err != nil || d.State != store.Answered || d.Answer != "reply" {
		t.Errorf("%+v, %v", d, err)
	}
}

// What asks the owner keeps its file until it is answered.
func TestRecordedQuestion(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.FastHome(t))
	mustApply(t, db, store.UpsertMessage{ID: "q", From: "agent1", To: "owner", Kind: "question", Text: "which?"},
		store.UpsertDelivery{Message: "q", Target: "owner", State: store.Delivered})
	testworld.Equal(t, db.Recorded(t.Context(), "q"), false, "an open question may be removed")
	mustApply(t, db, store.UpsertMessage{ID: "a", From: "owner", To: "agent1", Kind: "reply", InReplyTo: "q", Text: "this"})
	testworld.Equal(t, db.Recorded(t.Context(), "q"), true, "an answered question may not be removed")
}

// bulk records n old messages with their deliveries and logs, and as many young ones.
func bulk(tb testing.TB, h home.Dir, n int) {
	tb.Helper()
	mustOpen(tb, h)
	old, young := time.Now().Add(-40*day).UnixMilli(), time.Now().Add(-day).UnixMilli()
	text := strings.Repeat("some words to an agent ", 16)
	fill := func(name string, at int64, n int) []string {
		count := fmt.Sprintf("WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) ", n)
		return []string{
			"INSERT INTO messages (id, sender, target, text, time) " + count +
				fmt.Sprintf("SELECT lower(hex(randomblob(4))) || '-%s-' || i, 'agent' || (i %% 50 + 1), 'agent' || ((i + 7) %% 50 + 1), '%s', %d + i FROM c", name, text, at),
			fmt.Sprintf(`INSERT INTO deliveries (message, sender, target, filed, rank, queued, claimed, delivered, changed)
				SELECT id, sender, target, 'delivered', 5, time, time, time, time FROM messages WHERE time > %[1]d AND time <= %[1]d + %[2]d`, at, n),
			"INSERT INTO logs (key, time, level, part, actor, about, text) " + count +
				fmt.Sprintf("SELECT '%s-' || i, %d + i, 'INFO', 'courier', 'agent' || (i %% 50 + 1), '%s-' || i, 'turn finished, 1200 tokens' FROM c", name, at, name),
		}
	}
	mustSQL(tb, h.Path(home.DBFile), slices.Concat([]string{"PRAGMA foreign_keys = 1", "BEGIN"}, fill("old", old, n), fill("young", young, n), []string{"COMMIT"})...)
}

// pruneChild is a process that prunes, and prints after each step.
func pruneChild(h home.Dir) error {
	ctx := context.Background()
	db, err := store.Open(ctx, h)
	if err != nil {
		return err
	}
	p := &store.Pass{Before: time.Now().Add(-30 * day), Key: "pass-" + agent.NewStart(), Why: "a test"}
	for !p.Done() {
		if err := db.Prune(ctx, p); err != nil {
			return err
		}
		fmt.Println(p.Total())
	}
	for {
		s, err := db.Space(ctx)
		if err != nil || !s.Spare() {
			return errors.Join(err, db.Close())
		}
		if err := db.Shorten(ctx); err != nil {
			return err
		}
		fmt.Println("short")
	}
}

// A database that an earlier netsky made is rewritten once.
func TestRewrite(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	bulk(t, h, 5000)
	mustSQL(t, h.Path(home.DBFile), "PRAGMA auto_vacuum = 0", "VACUUM")
	db := mustOpen(t, h)
	was := testworld.Got(db.Space(t.Context()))(t)
	mustPrune(t, db, &store.Pass{Before: time.Now().Add(-30 * day), Key: "k"})
	testworld.Must(t, db.Rewrite(t.Context()))
	mustApply(t, db, store.AddLog{Text: "still the same file"})
	is := testworld.Got(db.Space(t.Context()))(t)
	if !was.Whole() || is.Whole() || is.File > was.File*2/3 || db.Replaced() != 0 {
		t.Errorf("%+v, was %+v", is, was)
	}
	testworld.Must(t, db.Check(t.Context()))
}
