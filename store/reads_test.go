package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/store"
)

// Every page begins where the last ended, also among records of one moment.
func TestPages(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	var ops []store.Op
	for i := range 23 {
		at := store.Time(1000 + i/5)
		id := fmt.Sprintf("id-%02d", i)
		from, to := agent.Owner, agent.ID("agent1")
		if i%3 == 0 {
			from, to = to, from
		}
		ops = append(ops, store.UpsertMessage{ID: id, From: from, To: to, Text: "x", Time: at},
			store.UpsertDelivery{Message: id, Target: to, State: store.Queued, Time: at},
			store.StartSession{Start: id, Actor: agent.Clone(i + 1), Started: at},
			store.UpsertTask{ID: id, Title: id, Created: at, Updated: at},
			store.AddNote{ID: id, Text: id, Created: at}, store.AddLog{Key: id, Text: id, Time: at},
			store.UpsertUpdate{ID: id, State: "x", Started: at, Updated: at})
	}
	mustApply(t, db, ops...)
	ctx := t.Context()
	for name, page := range map[string]func(p store.Page) ([]string, string, error){
		"messages": func(p store.Page) ([]string, string, error) {
			l, err := db.Messages(ctx, store.MessageFilter{Page: p})
			return ids(l.Items, func(m store.Message) string { return m.ID }), l.Cursor, err
		},
		"messages with one": func(p store.Page) ([]string, string, error) {
			l, err := db.Messages(ctx, store.MessageFilter{With: agent.Owner, Page: p})
			return ids(l.Items, func(m store.Message) string { return m.ID }), l.Cursor, err
		},
		"messages in a state": func(p store.Page) ([]string, string, error) {
			l, err := db.Messages(ctx, store.MessageFilter{With: agent.Owner, State: store.Queued, Page: p})
			return ids(l.Items, func(m store.Message) string { return m.ID }), l.Cursor, err
		},
		"deliveries": func(p store.Page) ([]string, string, error) {
			l, err := db.Deliveries(ctx, store.DeliveryFilter{Page: p})
			return ids(l.Items, func(d store.Delivery) string { return d.Message }), l.Cursor, err
		},
		"sessions": func(p store.Page) ([]string, string, error) {
			l, err := db.Sessions(ctx, store.SessionFilter{Page: p})
			return ids(l.Items, func(s store.Session) string { return s.Start }), l.Cursor, err
		},
		"tasks": func(p store.Page) ([]string, string, error) {
			l, err := db.Tasks(ctx, store.TaskFilter{Page: p})
			return ids(l.Items, func(k store.Task) string { return k.ID }), l.Cursor, err
		},
		"notes": func(p store.Page) ([]string, string, error) {
			l, err := db.Notes(ctx, store.NoteFilter{Page: p})
			return ids(l.Items, func(n store.Note) string { return n.ID }), l.Cursor, err
		},
		"logs": func(p store.Page) ([]string, string, error) {
			l, err := db.Logs(ctx, store.LogFilter{Page: p})
			return ids(l.Items, func(l store.Log) string { return l.Key }), l.Cursor, err
		},
		"updates": func(p store.Page) ([]string, string, error) {
			l, err := db.Updates(ctx, p)
			return ids(l.Items, func(u store.Update) string { return u.ID }), l.Cursor, err
		},
	} {
		var got []string
		p := store.Page{Limit: 4}
		for {
			items, cursor, err := page(p)
			testworld.Must(t, err)
			got = append(got, items...)
			if p.Cursor = cursor; cursor == "" || len(got) > 100 {
				break
			}
		}
		slices.Reverse(got)
		if len(got) != 23 || !slices.IsSorted(got) {
			t.Errorf("%s in pages of 4: %v, want all 23 from the newest", name, got)
		}
		if _, _, err := page(store.Page{Cursor: "nonsense"}); err == nil {
			t.Errorf("%s: no error for a wrong cursor", name)
		}
	}
}

func ids[T any](items []T, id func(T) string) []string {
	out := []string{}
	for _, v := range items {
		out = append(out, id(v))
	}
	return out
}

func TestFilters(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	mustApply(t, db, story()...)
	mustApply(t, db, store.UpsertMessage{ID: "m-other", From: "agent1", To: "agent2", Text: "100%", Time: 2000, Thread: "th-9"},
		store.UpsertDelivery{Message: "m-other", Target: "agent2", State: store.Queued, Time: 2000})
	for _, tt := range []struct {
		name string
		f    store.MessageFilter
		want string
	}{
		{"all", store.MessageFilter{}, "m-other m-answer m-question"},
		{"from", store.MessageFilter{From: "owner"}, "m-question"},
		{"to", store.MessageFilter{To: "owner"}, "m-answer"},
		{"with", store.MessageFilter{With: "owner"}, "m-answer m-question"},
		{"kind", store.MessageFilter{Kind: "reply"}, "m-answer"},
		{"without", store.MessageFilter{Without: []string{"reply", "other"}}, "m-other m-question"},
		{"thread", store.MessageFilter{Thread: "th-9"}, "m-other"},
		{"answers", store.MessageFilter{InReplyTo: "m-question"}, "m-answer"},
		{"text", store.MessageFilter{Text: "0%"}, "m-other"},
		{"since", store.MessageFilter{Since: 1014}, "m-other m-answer"},
		{"none", store.MessageFilter{From: "owner", To: "owner"}, ""},
		{"answered", store.MessageFilter{State: store.Answered}, "m-question"},
		{"delivered", store.MessageFilter{State: store.Delivered}, "m-answer"},
		{"queued", store.MessageFilter{State: store.Queued}, "m-other"},
		{"queued, of another", store.MessageFilter{State: store.Queued, With: "owner"}, ""},
		{"answered, of both", store.MessageFilter{State: store.Answered, With: "owner"}, "m-question"},
	} {
		l := testworld.Got(db.Messages(t.Context(), tt.f))(t)
		testworld.Equal(t, strings.Join(ids(l.Items, func(m store.Message) string { return m.ID }), " "), tt.want, "%s", tt.name)
	}
	for id, want := range map[string]bool{"m-question": true, "m-other": false, "nobody": false} {
		testworld.Equal(t, db.Recorded(t.Context(), id), want, "Recorded(%s)", id)
	}
	last := testworld.Got(db.LastLog(t.Context()))(t)
	mustApply(t, db, store.AddLog{Key: "k2", Text: "one"}, store.AddLog{Key: "k3", Text: "two"})
	l := testworld.Got(db.Logs(t.Context(), store.LogFilter{Forward: true, After: last, Page: store.Page{Limit: 1}}))(t)
	if len(l.Items) != 1 || l.Items[0].Text != "one" || l.Cursor == "" {
		t.Errorf("logs after %d: %+v, want the older of two first", last, l)
	}
}

// A log is found by its ID, and those from the first one on in order.
func TestLogByID(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	mustApply(t, db, store.AddLog{Key: "a", Text: "one"}, store.AddLog{Key: "b", Text: "two"})
	l := testworld.Got(db.Logs(t.Context(), store.LogFilter{Forward: true}))(t)
	if len(l.Items) != 2 || l.Items[0].Text != "one" {
		t.Fatalf("from the beginning: %+v", l.Items)
	}
	for _, want := range l.Items {
		if got, err := db.Log(t.Context(), want.ID); err != nil || got.Key != want.Key {
			t.Errorf("Log(%d) = %+v, %v", want.ID, got, err)
		}
	}
	testworld.ErrorIs(t, testworld.Err(db.Log(t.Context(), 99)), store.ErrNotFound, "Log(99)")
	for _, read := range []func(store.Page) error{
		func(p store.Page) error { _, err := db.Logs(t.Context(), store.LogFilter{Page: p}); return err },
		func(p store.Page) error { _, err := db.Messages(t.Context(), store.MessageFilter{Page: p}); return err },
		func(p store.Page) error { _, err := db.Find(t.Context(), "x", p); return err },
	} {
		testworld.ErrorIs(t, read(store.Page{Cursor: "x"}), store.ErrCursor, "a cursor of nobody's")
	}
}

// Several messages are read at once, and what became of them, each of its sender.
func TestOfMany(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	now := time.Unix(1, 0)
	db.Now = func() time.Time { return now }
	mustApply(t, db,
		store.UpsertMessage{ID: "m-1", From: "agent1", To: "owner", Text: "first", Time: 1},
		store.UpsertMessage{ID: "m-1", From: "agent2", To: "owner", Text: "namesake", Time: 2},
		store.UpsertMessage{ID: "m-2", From: "agent1", To: "owner", Text: "second", Time: 3},
		store.UpsertMessage{ID: "m-3", From: "agent1", To: "owner", Kind: "ack", Text: "x", Time: 4},
		store.UpsertMessage{ID: "m-4", From: "agent1", To: "owner", Time: 5},
		store.UpsertDelivery{Message: "m-1", From: "agent1", Target: "owner", State: store.Delivered},
		store.UpsertDelivery{Message: "m-1", From: "agent2", Target: "owner", State: store.Poisoned},
	)
	of := []store.Sent{{ID: "m-1", From: "agent2"}, {ID: "m-2", From: "agent1"}, {ID: "m-2", From: "agent9"}}
	m := testworld.Got(db.Messages(t.Context(), store.MessageFilter{Of: of}))(t)
	testworld.EqualList(t, ids(m.Items, func(m store.Message) string { return m.Text }), []string{"second", "namesake"}, "messages")
	d := testworld.Got(db.Deliveries(t.Context(), store.DeliveryFilter{Of: of}))(t)
	if len(d.Items) != 1 || d.Items[0].State != store.Poisoned || d.Items[0].Changed != store.At(now) {
		t.Errorf("deliveries: %+v", d.Items)
	}
	if m, err := db.Messages(t.Context(), store.MessageFilter{Of: []store.Sent{}}); err != nil || len(m.Items) != 0 {
		t.Errorf("of none: %+v, %v", m.Items, err)
	}
	last := testworld.Got(db.LastFrom(t.Context(), []agent.ID{"agent1", "agent2", "agent3"}, []string{"ack"}))(t)
	if len(last) != 2 || last["agent1"].Text != "second" || last["agent2"].Text != "namesake" {
		t.Errorf("last words: %+v", last)
	}
}

// The records come back as they went in, and so does their JSON.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	mustApply(t, db, story()...)
	m, err := db.Message(t.Context(), "m-question")
	testworld.Must(t, err)
	data, err := json.Marshal(m)
	testworld.Must(t, err)
	want := `{"id":"m-question","from":"owner","to":"agent0","text":"what?","time":"1970-01-01T00:00:01.003Z","via":"cli",` +
		`"requires_ack":true,"attachments":["attach/a.png"],"metadata":{"chat":"c1"}}`
	testworld.Equal(t, string(data), want, "message %s", data)
	s, err := db.Session(t.Context(), "00000000000000aa")
	testworld.Must(t, err)
	if s.Status == nil || *s.Status != 0 || s.LastLines != "bye\n" || s.State != agent.Down || s.Thread != "th-1" {
		t.Errorf("session %+v", s)
	}
	d, err := db.Dependencies(t.Context(), "t-first")
	if err != nil || len(d) != 1 || d[0].Task != "t-later" {
		t.Errorf("dependencies %v, %v", d, err)
	}
	in, err := db.Inputs(t.Context(), "m-question")
	if err != nil || len(in) != 1 || in[0].State != store.InputConsumed {
		t.Errorf("inputs %v, %v", in, err)
	}
	testworld.Len(t, testworld.Got(db.PendingInputs(t.Context(), "agent0"))(t), 0, "pending")
	u, err := db.Updates(t.Context(), store.Page{})
	if err != nil || len(u.Items) != 1 || u.Items[0].Commands[0] != "go build" {
		t.Errorf("updates %v, %v", u, err)
	}
	all, err := db.Settings(t.Context())
	if err != nil || len(all) != 1 || all[0].Value != "1h" {
		t.Errorf("settings %v, %v", all, err)
	}
	testworld.ErrorIs(t, testworld.Err(db.Message(t.Context(), "nobody")), store.ErrNotFound, "Message(nobody)")
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	mustApply(t, db, story()...)
	mustApply(t, db, store.UpsertActor{ID: "agent10"}, store.UpsertActor{ID: "agent2"},
		store.StartSession{Start: "b1", Actor: "agent2", Started: 5}, store.StartSession{Start: "b2", Actor: "agent2", Started: 6},
		store.UpsertTask{ID: "t-now", Title: "now", State: store.TaskInProgress, Assignee: "agent2", Priority: 9})
	for i, state := range []store.DeliveryState{store.Queued, store.Queued, store.Claimed, store.Poisoned, store.Delivered} {
		id := fmt.Sprint("w-", i)
		mustApply(t, db, store.UpsertMessage{ID: id, From: "owner", To: "agent2", Text: "x"}, store.UpsertDelivery{Message: id, Target: "agent2", State: state})
	}
	s := testworld.Got(db.Snapshot(t.Context()))(t)
	testworld.EqualList(t, ids(s.Actors, func(a store.ActorNow) string { return string(a.ID) }), []string{"agent0", "agent2", "agent10"}, "actors")
	a := s.Actors[1]
	if a.Session == nil || a.Session.Start != "b2" || a.Queued != 2 || a.Claimed != 1 || a.Poison != 1 || a.Tasks != 1 {
		t.Errorf("agent2: %+v, want its last session, 2 queued, 1 claimed, 1 poisoned, 1 task", a)
	}
	if s.Actors[2].Session != nil || s.Waiting[store.Queued] != 2 || len(s.Messages) != 7 || s.LastLog != 1 {
		t.Errorf("snapshot %+v", s)
	}
	if got := ids(s.Tasks, func(k store.Task) string { return k.ID }); !slices.Equal(got, []string{"t-now", "t-later"}) {
		t.Errorf("tasks %v, want what is in progress first and nothing that has ended", got)
	}
}
