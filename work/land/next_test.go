package land_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/land"
	"netsky/work/record"
	"netsky/work/tree"
)

// What a commit has undone says how it lands again, until it has.
func TestUndoneByCommit(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.clone("agent1").Commit("work", "b", "b")
	l := y.land("agent1", land.LandOptions{Unchecked: true})
	y.Commit("on top", "c", "c")
	reversed := func() bool {
		t.Helper()
		db := testworld.Got(store.OpenRead(t.Context(), y.home))(t)
		defer db.Close()
		w := testworld.Got(tree.Load(y.home, "agent1"))(t)
		_, is, err := land.Reversed(t.Context(), record.Records{DB: db}, w, w.Base, w.Branch)
		testworld.Must(t, err)
		return is
	}
	if reversed() {
		t.Error("it is said to be undone before it was")
	}
	u, err := y.desk.Undo(t.Context(), l.ID)
	if want := "`git revert " + u.Undo[:7] + "` on main lands it again"; err != nil || u.Again != want {
		t.Errorf("undo: %q, %v, want %q", u.Again, err, want)
	}
	_, lerr := y.desk.Land(t.Context(), "agent1", land.LandOptions{})
	_, cerr := y.desk.Check(t.Context(), "agent1", land.CheckOptions{})
	for _, err := range []error{lerr, cerr} {
		if !errors.Is(err, land.ErrNothing) || !strings.Contains(err.Error(), "was undone there by "+u.Undo[:7]) || advice.Of(err) != u.Again {
			t.Errorf("%v (%s)", err, advice.Of(err))
		}
	}
	if !reversed() {
		t.Error("it is not said to be undone")
	}
	y.Git("revert", "--no-edit", u.Undo)
	if _, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{}); !errors.Is(err, land.ErrNothing) || advice.Of(err) != "" || reversed() {
		t.Errorf("it has landed again: %v (%s)", err, advice.Of(err))
	}
}

// A refusal says what to do next, each time.
func TestNext(t *testing.T) {
	t.Parallel()
	ask := "`netsky ask agent1 \"merge main into your branch and resolve the conflicts\"`"
	conflict := func(y yard, _ testworld.Repo) { y.Commit("theirs", "a.txt", "theirs") }
	for _, tt := range []struct {
		name   string
		before func(y yard, at testworld.Repo)
		do     func(y yard) error
		want   string
	}{
		{"land, conflict", conflict, landed(land.LandOptions{Unchecked: true}), ask},
		{"check, conflict", conflict, func(y yard) error {
			_, err := y.desk.Check(y.t.Context(), "agent1", land.CheckOptions{})
			return err
		}, ask},
		{"own check, conflict", conflict, func(y yard) error {
			y.desk.Asker = "agent1"
			_, err := y.desk.Check(y.t.Context(), "agent1", land.CheckOptions{})
			return err
		}, "merge main into your branch and resolve the conflicts, then try again"},
		{"land, no check", nil, landed(land.LandOptions{Onto: "main"}), "run `netsky check agent1 --onto main`"},
		{"land, no command", func(y yard, _ testworld.Repo) {}, func(y yard) error {
			y.desk.Command.Text = ""
			return landed(land.LandOptions{Onto: "main"})(y)
		}, "`netsky check agent1 --onto main --set \"COMMAND\"` sets one; or `netsky land agent1 --onto main --unchecked`, which is recorded"},
		{"land, dirty", func(y yard, _ testworld.Repo) { y.Write("a.txt", "mine") }, landed(land.LandOptions{Unchecked: true}),
			"commit or stash them there, then try again; --pr leaves main alone"},
		{"land, dirty by the agent", func(y yard, at testworld.Repo) {
			y.Write("a.txt", "mine")
			err := y.home.SaveLaunch(agent.Launch{Agent: "agent1", Dir: at.Dir})
			testworld.Must(y.t, errors.Join(err, tree.NoteStray(y.home, "agent1", y.Dir+"/a.txt")))
		}, landed(land.LandOptions{Unchecked: true}),
			"agent1 has changed a.txt there, outside of its own worktree: see whether that is to stay; commit or stash them there, then try again; --pr leaves main alone"},
		{"undo, dirty", nil, func(y yard) error {
			l := y.land("agent1", land.LandOptions{Unchecked: true})
			y.Write("a.txt", "mine")
			_, err := y.desk.Undo(y.t.Context(), l.ID)
			return err
		}, "commit or stash them there, then try again"},
		{"undo, conflict", nil, func(y yard) error {
			l := y.land("agent1", land.LandOptions{Unchecked: true})
			y.Commit("later", "a.txt", "later")
			_, err := y.desk.Undo(y.t.Context(), l.ID)
			want := "`git revert " + l.Before[:7] + ".." + l.After[:7] + "` on main, and resolve the conflicts"
			if advice.Of(err) == want {
				return advice.With(err, "by hand")
			}
			return err
		}, "by hand"},
		{"land, in a merge", func(y yard, _ testworld.Repo) {
			y.Git("switch", "-q", "-c", "side")
			y.Commit("side", "s", "s")
			y.Git("switch", "-q", "main")
			y.Git("merge", "-q", "--no-ff", "--no-commit", "side")
		}, landed(land.LandOptions{Unchecked: true}), "finish or abort it (`git merge --abort`)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			at := y.clone("agent1")
			at.Commit("work", "a.txt", "ours")
			if tt.before != nil {
				tt.before(y, at)
			}
			for range 2 {
				err := tt.do(y)
				if err == nil || advice.Of(err) != tt.want {
					t.Errorf("got %v (%s), want the advice %s", err, advice.Of(err), tt.want)
				}
				if strings.HasPrefix(tt.name, "undo") {
					break
				}
			}
		})
	}
}

func landed(o land.LandOptions) func(yard) error {
	return func(y yard) error {
		_, err := y.desk.Land(y.t.Context(), "agent1", o)
		return err
	}
}

// A second check of the same work waits for the first, and takes its result.
func TestCheckTwice(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.clone("agent1").Commit("work", "b", "b")
	ran, end := filepath.Join(y.home.Root(), "ran"), filepath.Join(y.home.Root(), "end")
	y.desk.Command.Text = "echo >> '" + ran + "'; while [ ! -e '" + end + "' ]; do sleep 0.01; done"
	testworld.Must(t, y.desk.Command.Agree(y.home))
	first := make(chan error, 1)
	go func() {
		_, err := y.desk.Check(t.Context(), "agent1", land.CheckOptions{})
		first <- err
	}()
	testworld.Wait(t, "the check to run", func() bool {
		_, err := os.Stat(ran)
		return err == nil
	})
	other := y.desk
	other.Say = func(format string, _ ...any) {
		if strings.Contains(format, "a check of its work is running") {
			if err := os.WriteFile(end, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	c, err := other.Check(t.Context(), "agent1", land.CheckOptions{})
	if err != nil || !c.Known || c.State != record.Passed {
		t.Errorf("the second: %+v, %v", c, err)
	}
	testworld.Equal(t, <-first, nil)
	if data, _ := os.ReadFile(ran); string(data) != "\n" {
		t.Errorf("it ran %d times", len(data))
	}
}

// What landed, and that it was undone, is logged once each.
func TestLogged(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.clone("agent1").Commit("work", "b", "b")
	l := y.land("agent1", land.LandOptions{Unchecked: true})
	testworld.Got(y.desk.Undo(t.Context(), l.ID))(t)
	y.desk.Recover(t.Context())
	db := testworld.Got(store.OpenRead(t.Context(), y.home))(t)
	defer db.Close()
	list := testworld.Got(db.Logs(t.Context(), store.LogFilter{Part: "land", Page: store.Page{Limit: 10}}))(t)
	var got []string
	for _, e := range list.Items {
		got = append(got, string(e.Actor)+" "+e.About+" "+e.Text)
	}
	want := []string{
		"agent1 " + l.ID + " what landed on main was undone; it is at " + l.Before[:7],
		"agent1 " + l.ID + " landed on main, " + l.Before[:7] + " to " + l.After[:7] + ", by fast-forward, unchecked",
	}
	testworld.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "got %q, want %q", got, want)
}
