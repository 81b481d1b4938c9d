package work_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work"
	"netsky/work/check"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

func TestStates(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	f := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
	at := func(n int) testworld.Repo {
		r := testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
		p := testworld.Got(tree.Make(t.Context(), h, agent.Clone(n), r, false))(t)
		return f.At(p.Dir)
	}
	clean, dirty, ahead, landed, other, gone, squashed := at(1), at(2), at(3), at(4), at(5), at(6), at(7)
	_ = clean
	landed.Commit("landed", "l", "l")
	f.Git("merge", "-q", "--ff-only", "netsky/agent4")
	squashed.Commit("squashed", "s", "s")
	f.Commit("by hand", "s", "s")
	dirty.Write("new", "2")
	ahead.Commit("ahead", "a.txt", "3")
	gone.Commit("gone", "a.txt", "6")
	other.Git("checkout", "-q", "--detach")
	testworld.Must(t, os.RemoveAll(gone.Dir))
	db := testworld.Got(store.Open(t.Context(), h))(t)
	defer db.Close()
	cmd := check.Command{What: "check", Text: "true"}
	r := work.New(h, work.Options{Records: &record.Records{DB: db}, Command: cmd})
	defer r.Close()
	var last []work.State
	check := func(want ...string) {
		t.Helper()
		last = testworld.Got(r.States(t.Context()))(t)
		var got []string
		for _, s := range last {
			got = append(got, fmt.Sprintf("%s: %s: %s: %s", s.Agent, s.State, strings.Join(s.Facts(), ", "), s.Next))
		}
		if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
			t.Errorf("got\n%s\nwant\n%s", g, w)
		}
	}
	rest := []string{"agent4: landed: landed, behind 1: ", "agent5: clean: no branch is checked out, clean, behind 2: "}
	gonest := "agent6: gone: its directory is gone, ahead 1, behind 2, unchecked, conflicts with agent3 in a.txt: netsky up agent6"
	seven := "agent7: landed: landed, behind 2: "
	first := []string{"agent1: clean: clean, behind 2: ", "agent2: dirty: dirty 1, behind 2: netsky diff agent2"}
	all := func(three string) []string {
		return append(append(append(append([]string{}, first...), three), rest...), gonest, seven)
	}
	check(all("agent3: conflict: ahead 1, behind 2, unchecked, conflicts with agent6 in a.txt: netsky check agent3")...)

	// What was checked is that very tree.
	gonest = "agent6: gone: its directory is gone, clean, behind 2: netsky work retire agent6"
	f.Git("update-ref", "refs/heads/netsky/agent6", "main~2")
	check(all("agent3: ahead: ahead 1, behind 2, unchecked: netsky check agent3")...)
	repo := f.Git("rev-parse", "--path-format=absolute", "--git-common-dir")
	recorded := func(id, tree, word string) {
		t.Helper()
		testworld.Must(t, db.Apply(t.Context(), record.SetCheck(record.Check{ID: id, Agent: "agent3", Repo: repo, Tree: tree, Digest: cmd.Digest(), State: word})))
	}
	recorded("1", last[2].Tree, record.Failed)
	check(all("agent3: ahead: ahead 1, behind 2, failed: netsky diff agent3")...)
	recorded("2", last[2].Tree, record.Passed)
	check(all("agent3: ahead: ahead 1, behind 2, checked: netsky land agent3")...)
	ahead.Git("update-index", "--assume-unchanged", "a.txt")
	ahead.Write("a.txt", "hidden")
	check(all("agent3: ahead: hidden changes in a.txt, ahead 1, behind 2, stale: netsky check agent3")...)
	ahead.Git("update-index", "--no-assume-unchanged", "a.txt")
	ahead.Git("checkout", "-q", "a.txt")
	ahead.Write("loose", "x") // no part of what was checked
	check(all("agent3: dirty: dirty 1, ahead 1, behind 2, stale: netsky diff agent3")...)
	ahead.Git("stash", "-q", "-u")
	check(all("agent3: ahead: stashed 1, ahead 1, behind 2, checked: netsky land agent3")...)
	ahead.Git("stash", "pop", "-q")
	ahead.Commit("more", "m", "m")
	check(all("agent3: ahead: ahead 2, behind 2, stale: netsky check agent3")...)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testworld.Fails(t, testworld.Err(r.States(ctx)), "", "canceled, and no error")
}

// The next step is one that is not refused.
func TestNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		at      string // what the owner has checked out
		command string
		do      func(mine, agent1 testworld.Repo)
		up      bool
		want    string // facts, and the next step
	}{
		{"no check", "", "", nil, false, `ahead 1: netsky check agent1 --set "COMMAND"`},
		{"a check", "", "true", nil, false, "ahead 1, unchecked: netsky check agent1"},
		{"detached", "--detach", "", nil, false, `ahead 1, no branch to land on: netsky check agent1 --onto BRANCH --set "COMMAND"`},
		{"detached, then on a branch", "--detach", "true", func(mine, _ testworld.Repo) { mine.Git("switch", "-q", "main") }, false,
			"ahead 1, no branch to land on: netsky check agent1 --onto main"},
		{"the owner is elsewhere", "", "true", func(mine, _ testworld.Repo) { mine.Git("switch", "-q", "-c", "other") }, false,
			"ahead 1, lands on main, unchecked: netsky check agent1"},
		{"the target is gone", "", "", func(mine, _ testworld.Repo) { mine.Git("branch", "-q", "-m", "trunk") }, false,
			`ahead 1, main, its target, is gone: netsky check agent1 --onto trunk --set "COMMAND"`},
		{"conflict with the target", "", "true", func(mine, _ testworld.Repo) { mine.Commit("theirs", "a.txt", "theirs") }, false,
			`ahead 1, behind 1, conflicts with main in a.txt: netsky ask agent1 "merge main into your branch and resolve the conflicts"`},
		{"a name of two lines", "", "true", func(mine, at testworld.Repo) {
			at.Commit("ours", "x\nagent2: landed", "ours")
			mine.Commit("theirs", "x\nagent2: landed", "theirs")
		}, false, `ahead 2, behind 1, conflicts with main in "x\nagent2: landed": netsky ask agent1 "merge main into your branch and resolve the conflicts"`},
		{"a branch of its own", "", "true", func(_, at testworld.Repo) { at.Git("switch", "-q", "-c", "topic") }, false,
			`on topic, ahead 1, unchecked: netsky ask agent1 "bring your work to the branch netsky/agent1 and check that out"`},
		{"dirty", "", "", func(_, at testworld.Repo) { at.Write("new", "x") }, false, "dirty 1, ahead 1: netsky diff agent1"},
		{"a rebase", "", "", func(mine, at testworld.Repo) {
			mine.Commit("theirs", "a.txt", "theirs")
			at.Commit("ours", "a.txt", "ours")
			if out, err := at.Try("rebase", "main"); err == nil {
				t.Errorf("git rebase: %s", out)
			}
		}, false, "in the middle of a rebase, dirty 1: netsky diff agent1"},
		{"a bisection", "", "", func(_, at testworld.Repo) {
			at.Git("bisect", "start", "HEAD", "HEAD~1")
			at.Git("checkout", "-q", "--detach")
		}, false,
			`in the middle of a bisection, ahead 1: netsky check agent1 --set "COMMAND"`},
		{"no branch", "", "", func(_, at testworld.Repo) { at.Git("checkout", "-q", "--detach") }, false, `no branch is checked out, ahead 1: netsky check agent1 --set "COMMAND"`},
		{"gone", "", "", func(_, at testworld.Repo) { os.RemoveAll(at.Dir) }, false, "its directory is gone, ahead 1: netsky up agent1"},
		{"gone, and the agent runs", "", "", func(_, at testworld.Repo) { os.RemoveAll(at.Dir) }, true, "its directory is gone, ahead 1: netsky restart agent1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := testworld.FastHome(t)
			mine := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
			if tt.at != "" {
				mine.Git("checkout", "-q", tt.at)
			}
			r := testworld.Got(git.Open(t.Context(), mine.Dir, ""))(t)
			p := testworld.Got(tree.Make(t.Context(), h, "agent1", r, false))(t)
			at := mine.At(p.Dir)
			at.Commit("work", "a.txt", "ours")
			if tt.do != nil {
				tt.do(mine, at)
			}
			db := testworld.Got(store.Open(t.Context(), h))(t)
			defer db.Close()
			s := work.New(h, work.Options{
				Records: &record.Records{DB: db}, Command: check.Command{What: "check", Text: tt.command}, Up: func(context.Context, agent.ID) bool { return tt.up },
			})
			defer s.Close()
			list, err := s.States(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatalf("%+v, %v", list, err)
			}
			testworld.Equal(t, strings.Join(list[0].Facts(), ", ")+": "+list[0].Next, tt.want)
			testworld.Contains(t, list[0].Does, "agent1", "%s does", list[0].Next)
		})
	}
}

// What was undone by a commit is not said to have landed, until that is reverted; a check that runs is
// said to.
func TestUndone(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	mine := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
	r := testworld.Got(git.Open(t.Context(), mine.Dir, ""))(t)
	p := testworld.Got(tree.Make(t.Context(), h, "agent1", r, false))(t)
	at := mine.At(p.Dir)
	db := testworld.Got(store.Open(t.Context(), h))(t)
	defer db.Close()
	s := work.New(h, work.Options{Records: &record.Records{DB: db}})
	defer s.Close()
	check := func(want string) {
		t.Helper()
		list, err := s.States(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		testworld.Equal(t, list[0].State+": "+strings.Join(list[0].Facts(), ", "), want)
	}
	before := mine.Git("rev-parse", "main")
	after := at.Commit("work", "b", "b")
	mine.Git("merge", "-q", "--ff-only", "netsky/agent1")
	recorded := func(state, undo string) {
		t.Helper()
		l := record.Landing{ID: "1", Agent: "agent1", Repo: r.Common, Target: "refs/heads/main", How: "fast-forward", Head: after, Before: before, After: after, State: state, Undo: undo}
		testworld.Must(t, db.Apply(t.Context(), record.SetLanding(l)))
	}
	recorded(record.Landed, "")
	check("landed: landed")
	mine.Git("revert", "--no-edit", after)
	undo := mine.Git("rev-parse", "main")
	recorded(record.Undone, undo)
	check("undone: undone, behind 1")
	at.Commit("more", "c", "c")
	check("ahead: ahead 1, behind 1")
	lock := testworld.Got(h.Lock(home.CheckLock("agent1")))(t)
	check("ahead: ahead 1, behind 1, checking")
	testworld.Must(t, lock.Unlock())
	at.Git("reset", "-q", "--hard", after)
	mine.Git("revert", "--no-edit", undo)
	check("landed: landed, behind 2")
}

// Commits that an agent has made on another branch, in another worktree say, are named.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	f := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
	r := testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
	testworld.Got(tree.Make(t.Context(), h, "agent1", r, false))(t)
	other := f.At(filepath.Join(t.TempDir(), "other"))
	f.Git("worktree", "add", "-q", "-b", "side", other.Dir)
	other.Commit("the owner's", "o", "o")
	other.Commit("one\n\nNetsky-Agent: agent1", "x", "1")
	other.Commit("two\n\nNetsky-Agent: agent1", "x", "2")
	reader := work.New(h, work.Options{})
	defer reader.Close()
	want := func(facts string, next bool) {
		t.Helper()
		list, err := reader.States(t.Context())
		if err != nil || len(list) != 1 || strings.Join(list[0].Facts(), ", ") != facts || strings.Contains(list[0].Next, "netsky ask agent1") != next {
			t.Errorf("%+v, %v", list, err)
		}
	}
	want("2 commits on side, clean", true)
	f.Git("merge", "-q", "--ff-only", "side")
	want("clean, behind 3", false)
}
