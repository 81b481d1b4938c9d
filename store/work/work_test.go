package work_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/store/prune"
	"netsky/store/work"
)

func mustOpen(t *testing.T, h home.Dir) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// all returns what is on record, a line each.
func all(t *testing.T, db *store.DB) string {
	t.Helper()
	r, ctx := work.Records{DB: db}, t.Context()
	trees, err1 := r.Worktrees(ctx)
	checks, err2 := r.Checks(ctx, work.Filter{})
	landings, err3 := r.Landings(ctx, work.Filter{})
	comments, err4 := r.Comments(ctx, work.Filter{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
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
			work.SetWorktree(work.Worktree{Agent: "agent1", Branch: "refs/heads/netsky/agent1", State: work.Retired, Changed: 20}),
			work.SetWorktree(work.Worktree{Agent: "agent1", Branch: "refs/heads/netsky/agent1", State: work.Live, Changed: 10}),
		}, "agent1 retired refs/heads/netsky/agent1"},
		{"a check", []store.Op{
			work.SetCheck(work.Check{ID: "c", Tree: "t", State: work.Failed, Status: 1, Reason: "exit status 1"}),
			work.SetCheck(work.Check{ID: "c", Tree: "t", State: work.Running}),
			work.SetCheck(work.Check{ID: "c", Tree: "t", State: work.Passed}),
		}, "c failed exit status 1"},
		{"a landing", []store.Op{
			work.SetLanding(work.Landing{ID: "l", Target: "refs/heads/main", State: work.Landed, After: "aa"}),
			work.SetLanding(work.Landing{ID: "l", Target: "refs/heads/main", State: work.Begun}),
		}, "l landed aa"},
		{"one undone", []store.Op{
			work.SetLanding(work.Landing{ID: "l", Target: "refs/heads/main", State: work.Begun}),
			work.SetLanding(work.Landing{ID: "l", Target: "refs/heads/main", State: work.Landed, After: "aa"}),
			work.SetLanding(work.Landing{ID: "l", Target: "refs/heads/main", State: work.Undone, After: "aa", Undo: "bb"}),
			work.SetLanding(work.Landing{ID: "l", Target: "refs/heads/main", State: work.Void}),
		}, "l undone aa"},
		{"a comment", []store.Op{
			work.SetComment(work.Comment{ID: "k", Agent: "agent1", Text: "why?", State: work.Sent, Message: "m"}),
			work.SetComment(work.Comment{ID: "k", Agent: "agent1", Text: "why?", State: work.Pending}),
		}, "k sent why?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := mustOpen(t, testworld.FastHome(t))
			for _, op := range tt.ops {
				if err := db.Apply(t.Context(), op); err != nil {
					t.Fatal(err)
				}
			}
			if got := all(t, db); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// What can't be about anything is refused.
func TestInvalid(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.FastHome(t))
	for _, op := range []store.Op{
		work.SetWorktree(work.Worktree{Agent: "owner"}), work.SetCheck(work.Check{Tree: "t"}), work.SetCheck(work.Check{ID: "c"}),
		work.SetLanding(work.Landing{ID: "l"}), work.SetComment(work.Comment{ID: "k"}),
	} {
		if err := db.Apply(t.Context(), op); err == nil {
			t.Errorf("%+v was recorded", op)
		}
	}
}

// With a database that can't be opened, what became of work is kept, and recorded when there is
// one again.
func TestWithoutDatabase(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	file := h.Path(home.DBFile)
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	j := store.NewJournal(h)
	err := j.Record(t.Context(), work.SetCheck(work.Check{ID: "c", Tree: "t", State: work.Passed, Started: store.At(time.Now())}))
	if !errors.Is(err, store.ErrSpooled) {
		t.Fatalf("Record: %v", err)
	}
	if err := errors.Join(j.Close(), os.Remove(file)); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, h)
	if _, err := db.ReplaySpool(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := all(t, db); got != "c passed " {
		t.Errorf("on record: %q", got)
	}
}

// What is not finished stays, and so does the check that a young landing rests on.
func TestPruned(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.FastHome(t))
	now := time.Now()
	old, young := store.At(now.Add(-40*24*time.Hour)), store.At(now)
	err := db.Apply(t.Context(),
		work.SetCheck(work.Check{ID: "gone", Tree: "t", State: work.Passed, Started: old}),
		work.SetCheck(work.Check{ID: "rests", Tree: "t", State: work.Passed, Started: old}),
		work.SetCheck(work.Check{ID: "runs", Tree: "t", State: work.Running, Started: old}),
		work.SetLanding(work.Landing{ID: "over", Target: "m", State: work.Void, Started: old}),
		work.SetLanding(work.Landing{ID: "begun", Target: "m", State: work.Begun, Started: old}),
		work.SetLanding(work.Landing{ID: "landed", Target: "m", State: work.Landed, After: "aa", Evidence: "rests", Started: young}),
		work.SetComment(work.Comment{ID: "said", Agent: "agent1", Text: "x", State: work.Sent, Created: old}),
		work.SetComment(work.Comment{ID: "waits", Agent: "agent1", Text: "x", State: work.Pending, Created: old}))
	if err != nil {
		t.Fatal(err)
	}
	for p := (&prune.Pass{Before: now.Add(-30 * 24 * time.Hour), Key: "k"}); !p.Done(); {
		if err := db.Prune(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	want := "runs running \nrests passed \nlanded landed aa\nbegun begun \nwaits pending x"
	if got := all(t, db); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What may be noted on is all that has an id.
func TestResolve(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	err := db.Apply(t.Context(),
		work.SetLanding(work.Landing{ID: "landed2345", Agent: "agent1", Repo: "/r", Target: "refs/heads/main", State: work.Landed, Started: 1}),
		work.SetCheck(work.Check{ID: "checked234", Agent: "agent1", Repo: "/r", Tree: "abc", State: work.Passed, Started: 1}),
		store.UpsertTask{ID: "t-abcdef12", Title: "x"})
	if err != nil {
		t.Fatal(err)
	}
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
