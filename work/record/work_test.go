package record_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/record"
)

func mustOpen(t *testing.T, h home.Dir) *store.DB {
	t.Helper()
	db := testworld.Got(store.Open(t.Context(), h))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// all returns what is on record, a line each.
func all(t *testing.T, db *store.DB) string {
	t.Helper()
	r, ctx := record.Records{DB: db}, t.Context()
	trees, err1 := r.Worktrees(ctx)
	checks, err2 := r.Checks(ctx, record.Filter{})
	landings, err3 := r.Landings(ctx, record.Filter{})
	comments, err4 := r.Comments(ctx, record.Filter{})
	testworld.Must(t, errors.Join(err1, err2, err3, err4))
	var lines []string
	for _, w := range trees {
		lines = append(lines, string(w.Agent)+" "+w.State+" "+w.Branch)
	}
	for _, k := range checks {
		lines = append(lines, k.ID+" "+k.State+" "+k.Reason)
	}
	for _, l := range landings {
		lines = append(lines, l.ID+" "+l.State+" "+l.After)
	}
	for _, k := range comments {
		lines = append(lines, k.ID+" "+k.State+" "+k.Text)
	}
	return strings.Join(lines, "\n")
}

// A record goes on to its end, and never back, in whichever order what is told of it arrives.
func TestStates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		ops  []store.Op
		want string
	}{
		{"a worktree", []store.Op{
			record.SetWorktree(record.Worktree{Agent: "agent1", Branch: "refs/heads/netsky/agent1", State: record.Retired, Changed: 20}),
			record.SetWorktree(record.Worktree{Agent: "agent1", Branch: "refs/heads/netsky/agent1", State: record.Live, Changed: 10}),
		}, "agent1 retired refs/heads/netsky/agent1"},
		{"a check", []store.Op{
			record.SetCheck(record.Check{ID: "c", Tree: "t", State: record.Failed, Status: 1, Reason: "exit status 1"}),
			record.SetCheck(record.Check{ID: "c", Tree: "t", State: record.Running}),
			record.SetCheck(record.Check{ID: "c", Tree: "t", State: record.Passed}),
		}, "c failed exit status 1"},
		{"a landing", []store.Op{
			record.SetLanding(record.Landing{ID: "l", Target: "refs/heads/main", State: record.Landed, After: "aa"}),
			record.SetLanding(record.Landing{ID: "l", Target: "refs/heads/main", State: record.Begun}),
		}, "l landed aa"},
		{"one undone", []store.Op{
			record.SetLanding(record.Landing{ID: "l", Target: "refs/heads/main", State: record.Begun}),
			record.SetLanding(record.Landing{ID: "l", Target: "refs/heads/main", State: record.Landed, After: "aa"}),
			record.SetLanding(record.Landing{ID: "l", Target: "refs/heads/main", State: record.Undone, After: "aa", Undo: "bb"}),
			record.SetLanding(record.Landing{ID: "l", Target: "refs/heads/main", State: record.Void}),
		}, "l undone aa"},
		{"a comment", []store.Op{
			record.SetComment(record.Comment{ID: "k", Agent: "agent1", Text: "why?", State: record.Sent, Message: "m"}),
			record.SetComment(record.Comment{ID: "k", Agent: "agent1", Text: "why?", State: record.Pending}),
		}, "k sent why?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := mustOpen(t, testworld.FastHome(t))
			for _, op := range tt.ops {
				testworld.Must(t, db.Apply(t.Context(), op))
			}
			testworld.Equal(t, all(t, db), tt.want)
		})
	}
}

// What can't be about anything is refused.
func TestInvalid(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.FastHome(t))
	for _, op := range []store.Op{
		record.SetWorktree(record.Worktree{Agent: "owner"}), record.SetCheck(record.Check{Tree: "t"}), record.SetCheck(record.Check{ID: "c"}),
		record.SetLanding(record.Landing{ID: "l"}), record.SetComment(record.Comment{ID: "k"}),
	} {
		testworld.Fails(t, db.Apply(t.Context(), op), "", "%+v was recorded", op)
	}
}

// With a database that can't be opened, what became of work is kept, and recorded when there is
// one again.
func TestWithoutDatabase(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	file := h.Path(home.DBFile)
	testworld.Must(t, os.Mkdir(file, 0o700))
	j := store.NewJournal(h)
	err := j.Record(t.Context(), record.SetCheck(record.Check{ID: "c", Tree: "t", State: record.Passed, Started: store.At(time.Now())}))
	if !errors.Is(err, store.ErrSpooled) {
		t.Fatalf("Record: %v", err)
	}
	testworld.Must(t, errors.Join(j.Close(), os.Remove(file)))
	db := mustOpen(t, h)
	testworld.Got(db.ReplaySpool(t.Context()))(t)
	testworld.Equal(t, all(t, db), "c passed ", "on record")
}

// What is not finished stays, and so does the check that a young landing rests on.
func TestPruned(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.FastHome(t))
	now := time.Now()
	old, young := store.At(now.Add(-40*24*time.Hour)), store.At(now)
	testworld.Must(t, db.Apply(t.Context(),
		record.SetCheck(record.Check{ID: "gone", Tree: "t", State: record.Passed, Started: old}),
		record.SetCheck(record.Check{ID: "rests", Tree: "t", State: record.Passed, Started: old}),
		record.SetCheck(record.Check{ID: "runs", Tree: "t", State: record.Running, Started: old}),
		record.SetLanding(record.Landing{ID: "over", Target: "m", State: record.Void, Started: old}),
		record.SetLanding(record.Landing{ID: "begun", Target: "m", State: record.Begun, Started: old}),
		record.SetLanding(record.Landing{ID: "landed", Target: "m", State: record.Landed, After: "aa", Evidence: "rests", Started: young}),
		record.SetComment(record.Comment{ID: "said", Agent: "agent1", Text: "x", State: record.Sent, Created: old}),
		record.SetComment(record.Comment{ID: "waits", Agent: "agent1", Text: "x", State: record.Pending, Created: old})))
	for p := (&store.Pass{Before: now.Add(-30 * 24 * time.Hour), Key: "k"}); !p.Done(); {
		testworld.Must(t, db.Prune(t.Context(), p))
	}
	want := "runs running \nrests passed \nlanded landed aa\nbegun begun \nwaits pending x"
	testworld.Equal(t, all(t, db), want)
}

// What may be noted on is all that has an id.
func TestResolve(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	testworld.Must(t, db.Apply(t.Context(),
		record.SetLanding(record.Landing{ID: "landed2345", Agent: "agent1", Repo: "/r", Target: "refs/heads/main", State: record.Landed, Started: 1}),
		record.SetCheck(record.Check{ID: "checked234", Agent: "agent1", Repo: "/r", Tree: "abc", State: record.Passed, Started: 1}),
		store.UpsertTask{ID: "t-abcdef12", Title: "x"}))
	for id, want := range map[string]store.Subject{
		"landed2345": {Kind: store.SubjectLanding, ID: "landed2345"},
		"checked234": {Kind: store.SubjectCheck, ID: "checked234"},
		"t-abcdef":   {Kind: store.SubjectTask, ID: "t-abcdef12"},
		"nobody":     {}, "landed": {}, "": {},
	} {
		got, err := db.Resolve(t.Context(), id)
		if got != want || errors.Is(err, store.ErrNotFound) != (want.ID == "") {
			t.Errorf("Resolve(%q) = %v, %v; want %v", id, got, err, want)
		}
	}
}
