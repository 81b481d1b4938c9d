package work_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work"
	"netsky/work/check"
	"netsky/work/diff"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

var toldCheck = check.Command{What: "check", Text: "true"}

type world struct {
	home home.Dir
	db   *store.DB
	repo testworld.Repo // of agent1
	look *work.Looker
}

func mustWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{home: testworld.FastHome(tb)}
	main := testworld.NewRepo(tb, filepath.Join(tb.TempDir(), "src"))
	r := testworld.Got(git.Open(tb.Context(), main.Dir, ""))(tb)
	p := testworld.Got(tree.Make(tb.Context(), w.home, "agent1", r, false))(tb)
	w.repo = main.At(p.Dir)
	w.db = testworld.Got(store.Open(tb.Context(), w.home))(tb)
	tb.Cleanup(func() { w.db.Close() })
	w.look = work.NewLooker(work.LookerOptions{Home: w.home, Records: func() *store.DB { return w.db }, Check: func() check.Command { return toldCheck }})
	tb.Cleanup(func() { w.look.Close() })
	return w
}

// However many ask, git answers one of them; a check that is recorded has the work read again.
func TestLookStates(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.repo.Commit("more", "b.txt", "2")
	times := make(chan time.Time, 20)
	var all sync.WaitGroup
	for range cap(times) {
		all.Go(func() {
			list, at, err := w.look.States(t.Context())
			if err != nil || len(list) != 1 || list[0].State != "ahead" || list[0].Proof != "unchecked" {
				t.Errorf("%+v, %v", list, err)
			}
			times <- at
		})
	}
	all.Wait()
	at := <-times
	for range cap(times) - 1 {
		if other := <-times; !other.Equal(at) {
			t.Errorf("git was asked at %v and at %v", at, other)
		}
	}
	list, _, _ := w.look.States(t.Context())
	_, id, err := w.look.Tree(t.Context(), "agent1")
	if err != nil || id != list[0].Tree || id == "" {
		t.Errorf("the tree is %q, %v, want %q", id, err, list[0].Tree)
	}
	wt, err := tree.Load(w.home, "agent1")
	testworld.Must(t, err)
	testworld.Must(t, w.db.Apply(t.Context(), record.SetCheck(record.Check{ID: "k", Agent: "agent1", Repo: wt.Repo, Tree: id, Digest: toldCheck.Digest(), State: record.Passed, Command: "true"})))
	if list, again, err := w.look.States(t.Context()); err != nil || again.Equal(at) || list[0].Proof != "checked" {
		t.Errorf("after a check: %+v, %v", list, err)
	}
}

// Changes are read whole or one file at a time, within bounds; what is not there is told apart.
func TestChange(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.repo.Write("new*.go", "package x\n", "big.txt", strings.Repeat("line\n", 200_000))
	c, at, err := w.look.Change(t.Context(), "agent1", "")
	if err != nil || len(c.Files) != 2 || !c.More {
		t.Fatalf("%d files, %v, %v", len(c.Files), c.More, err)
	}
	if _, again, _ := w.look.Change(t.Context(), "agent1", ""); !again.Equal(at) {
		t.Error("it was read twice")
	}
	c, _, err = w.look.Change(t.Context(), "agent1", "new*.go")
	if err != nil || len(c.Files) != 1 || c.Files[0].Added != 1 || c.More {
		t.Errorf("%+v, %v", c, err)
	}
	for i := range 10 { // what is kept is bounded
		_, _, err := w.look.Change(t.Context(), "agent1", fmt.Sprint(i))
		testworld.Must(t, err)
	}
	if _, again, _ := w.look.Change(t.Context(), "agent1", ""); again.Equal(at) {
		t.Error("ten other changes are kept beside it")
	}
	if _, _, err := w.look.Change(t.Context(), "agent2", ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no worktree: %v", err)
	}
	testworld.Must(t, os.RemoveAll(w.repo.Dir))
	if _, _, err := w.look.Change(t.Context(), "agent1", "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

// Who waits for another's git gives up when it is time, and nothing is read any more once it is closed.
func TestWaits(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	testworld.Must(t, w.look.Open(t.Context(), "agent1", func(*diff.Change) error {
		cancel()
		if _, _, err := w.look.States(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("while another reads: %v", err)
		}
		return nil
	}))
	_, _, err := w.look.States(t.Context())
	testworld.Must(t, err)
	testworld.Must(t, w.look.Close())
	if _, _, err := w.look.Tree(t.Context(), agent.Clone(1)); err == nil {
		t.Error("it is read after Close")
	}
	left, _ := filepath.Glob(w.home.Path(git.ScratchDirname, "*"))
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Where git takes too long, it is not asked again by each page that is read.
func TestTooLong(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	testworld.Must(t, os.RemoveAll(w.repo.Dir)) // then it matters whether the agent is up
	asked := 0
	slow := work.NewLooker(work.LookerOptions{
		Home: w.home, Records: func() *store.DB { return w.db }, Check: func() check.Command { return toldCheck },
		Up: func(ctx context.Context, _ agent.ID) bool { asked++; <-ctx.Done(); return false },
	})
	t.Cleanup(func() { slow.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for range 3 {
		if _, _, err := slow.States(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that it took too long", err)
		}
		ctx = t.Context()
	}
	testworld.Equal(t, asked, 1, "asked")
}
