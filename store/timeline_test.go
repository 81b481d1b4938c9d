package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/store"
)

func kinds(tl store.Timeline) string {
	var out []string
	for _, e := range tl.Events {
		out = append(out, e.Kind+":"+e.Ref)
	}
	return strings.Join(out, " ")
}

// A brief that a message has caused answers nothing; its thread is named for that
// message. Whichever of them is looked at, the whole story is told.
func TestTimelineThread(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	for i, m := range []store.UpsertMessage{
		{ID: "m-asked", From: "owner", To: "agent0", Text: "/delegate owner shall I go on?"},
		{ID: "m-brief", From: "agent0", To: "owner", Kind: "brief", Text: "shall I go on?", Thread: "m-asked"},
		{ID: "m-yes", From: "owner", To: "agent0", Kind: "reply", Text: "yes, go on", Thread: "m-asked", InReplyTo: "m-brief"},
		{ID: "m-report", From: "agent0", To: "owner", Kind: "reply", Text: "owner answers: yes, go on", InReplyTo: "m-asked"},
		{ID: "m-else", From: "owner", To: "agent0", Text: "something else"},
	} {
		m.Time = store.Time(1000 + i)
		mustApply(t, db, m)
	}
	want := "message:m-asked message:m-brief message:m-yes message:m-report"
	for _, id := range []string{"m-asked", "m-brief", "m-yes", "m-report"} {
		tl := testworld.Got(db.Timeline(t.Context(), id))(t)
		testworld.Equal(t, kinds(tl), want, "Timeline(%s)", id)
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	mustApply(t, db, story()...)
	conversation := "message:m-question queued:m-question input_pending:m-question claimed:m-question input_consumed:m-question " +
		"delivered:m-question task_created:t-first task_started:t-first task_ended:t-first message:m-answer answered:m-question delivered:m-answer"
	for _, tt := range []struct {
		id, subject, full, want string
	}{
		{"m-question", store.SubjectMessage, "m-question", conversation},
		{"m-answer", store.SubjectMessage, "m-answer", conversation},
		{"m-ques", store.SubjectMessage, "m-question", conversation},
		{"t-first", store.SubjectTask, "t-first", conversation + " note:n-1"},
		{"00000000000000aa", store.SubjectSession, "00000000000000aa", "session_start:00000000000000aa message:m-question queued:m-question " +
			"claimed:m-question delivered:m-question message:m-answer answered:m-question log: session_end:00000000000000aa"},
		{"n-1", store.SubjectNote, "n-1", "note:n-1"},
		{"th-1", store.SubjectThread, "th-1", "session_start:00000000000000aa session_end:00000000000000aa"},
		{"agent0", store.SubjectActor, "agent0", "session_start:00000000000000aa message:m-question queued:m-question claimed:m-question " +
			"delivered:m-question task_created:t-first task_started:t-first task_ended:t-first message:m-answer answered:m-question log: session_end:00000000000000aa"},
	} {
		tl, err := db.Timeline(t.Context(), tt.id)
		if err != nil {
			t.Errorf("Timeline(%s): %v", tt.id, err)
			continue
		}
		if tl.Subject != (store.Subject{Kind: tt.subject, ID: tt.full}) {
			t.Errorf("Timeline(%s) is about %+v, want %s %s", tt.id, tl.Subject, tt.subject, tt.full)
		}
		got := kinds(tl)
		if tt.subject == store.SubjectSession {
			got = strings.ReplaceAll(got, " delivered:m-answer", "")
		}
		testworld.Equal(t, got, tt.want, "Timeline(%s)", tt.id)
		if !slices.IsSortedFunc(tl.Events, func(a, b store.TimelineEvent) int { return int(a.Time - b.Time) }) {
			t.Errorf("Timeline(%s) is out of order", tt.id)
		}
	}
}

// An error that says why a message was not delivered does not answer it.
func TestTimelineExpired(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	mustApply(t, db,
		store.UpsertMessage{ID: "m-1", From: "owner", To: "agent1", Text: "x", Time: 1000},
		store.UpsertDelivery{Message: "m-1", Target: "agent1", State: store.Queued, Time: 1001},
		store.UpsertDelivery{Message: "m-1", Target: "agent1", State: store.Expired, Time: 2001},
		store.UpsertMessage{ID: "r-1", From: "agent1", To: "owner", Kind: "error", Text: "not delivered to agent1: it expired", InReplyTo: "m-1", Time: 2000},
	)
	tl, err := db.Timeline(t.Context(), "m-1")
	if want := "message:m-1 queued:m-1 message:r-1 expired:m-1"; err != nil || kinds(tl) != want {
		t.Errorf("%s %v, want %s", kinds(tl), err, want)
	}
}

// A message was written before it was queued, and queued before it was taken, whatever
// its sender's clock said. The time of a file's name is exact; that of its move is the
// kernel's, which is some milliseconds behind.
func TestTimelineOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                                      string
		sent, queued, claimed, delivered, written store.Time
	}{
		{"the kernel's clock is behind", 2998, 3003, 3000, 3001, 2998},
		{"the sender's clock is ahead", 5000, 3000, 3000, 4000, 3000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := mustOpen(t, testworld.Home(t))
			mustApply(t, db,
				store.UpsertMessage{ID: "m-1", From: "owner", To: "agent1", Text: "x", Time: tt.sent},
				store.UpsertDelivery{Message: "m-1", Target: "agent1", State: store.Claimed, Queued: tt.queued, Time: tt.claimed},
				store.UpsertDelivery{Message: "m-1", Target: "agent1", State: store.Delivered, Time: tt.delivered},
			)
			tl := testworld.Got(db.Timeline(t.Context(), "m-1"))(t)
			if got, want := kinds(tl), "message:m-1 queued:m-1 claimed:m-1 delivered:m-1"; got != want || tl.Events[0].Time != tt.written {
				t.Errorf("%s, written at %d, want %s, at %d", got, tl.Events[0].Time, want, tt.written)
			}
			testworld.Equal(t, tl.Message.Time, tt.sent, "the message's own time")
		})
	}
}

func TestTimelineNames(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	mustApply(t, db, store.UpsertMessage{ID: "f-aaaa1111", From: "owner", Text: "x", Thread: "thread-x"},
		store.UpsertMessage{ID: "f-aaaa2222", From: "owner", Text: "x"}, store.UpsertMessage{ID: "f-aaaa", From: "owner", Text: "x"})
	for _, tt := range []struct {
		id   string
		want error
	}{
		{"f-aaaa1", nil},
		{"f-aaaa", nil}, // in full, though others begin so
		{"thread-x", nil}, {"thread", nil},
		{"f-aaa", store.ErrNotFound}, // too short
		{"f-aaaa3", store.ErrNotFound},
		{"", store.ErrNotFound},
		{"f-aaaa'--", store.ErrNotFound},
	} {
		testworld.ErrorIs(t, testworld.Err(db.Timeline(t.Context(), tt.id)), tt.want, "Timeline(%q)", tt.id)
	}
	mustApply(t, db, store.UpsertMessage{ID: "f-bbbb1111", From: "owner", Text: "x"}, store.UpsertTask{ID: "f-bbbb2222", Title: "x"})
	_, err := db.Timeline(t.Context(), "f-bbbb")
	if !errors.Is(err, store.ErrAmbiguous) || !strings.Contains(err.Error(), "task f-bbbb2222") {
		t.Errorf("Timeline(f-bbbb): %v, want ErrAmbiguous with the names", err)
	}
	// The thread of a task's brief has the task's id.
	mustApply(t, db, store.UpsertTask{ID: "t-cccc1111", Title: "x"}, store.UpsertMessage{ID: "brief-1", From: "owner", Text: "x", Thread: "t-cccc1111"})
	if tl, err := db.Timeline(t.Context(), "t-cccc"); err != nil || tl.Task == nil || tl.Task.ID != "t-cccc1111" {
		t.Errorf("Timeline(t-cccc): %v, %v", tl.Subject, err)
	}
}

// A circle of answers ends, and a very long thread is cut and says so.
func TestTimelineIsBounded(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	mustApply(t, db, store.UpsertMessage{ID: "circle-a", From: "owner", Text: "x", InReplyTo: "circle-b", Time: 1},
		store.UpsertMessage{ID: "circle-b", From: "owner", Text: "x", InReplyTo: "circle-a", Time: 2})
	tl, err := db.Timeline(t.Context(), "circle-a")
	if err != nil || len(tl.Events) != 2 || tl.More {
		t.Errorf("a circle: %v, %v, want two events", tl, err)
	}
	var ops []store.Op
	for i := range 700 {
		ops = append(ops, store.UpsertMessage{ID: fmt.Sprintf("chain-%04d", i), From: "owner", Text: "x", InReplyTo: fmt.Sprintf("chain-%04d", i-1), Time: store.Time(i + 1)})
	}
	mustApply(t, db, ops...)
	tl, err = db.Timeline(t.Context(), "chain-0350")
	if err != nil || !tl.More || len(tl.Events) == 0 || len(tl.Events) > 1000 {
		t.Errorf("a chain of 700: %d events, more %v, %v", len(tl.Events), tl.More, err)
	}
}

// Whatever a person types or a browser sends as an id or a cursor is answered
// or refused.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"m-question", "m-ques", "agent0", "1003.1", "", "'; --", "~~~~~~~", "\x00\xff", "9223372036854775808.1", "m-%____"} {
		f.Add(s)
	}
	db := mustOpen(f, testworld.Home(f))
	mustApply(f, db, story()...)
	f.Fuzz(func(t *testing.T, s string) {
		if tl, err := db.Timeline(t.Context(), s); err == nil && !strings.HasPrefix(tl.Subject.ID, s) {
			t.Errorf("Timeline(%q) is about %q", s, tl.Subject.ID)
		} else if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("Timeline(%q): %v", s, err)
		}
		l, err := db.Messages(t.Context(), store.MessageFilter{Text: s, Page: store.Page{Cursor: s}})
		if err == nil && s == "" && len(l.Items) != 2 {
			t.Errorf("all messages: %d, want 2", len(l.Items))
		}
	})
}
