package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/work/git"
)

// opened is the repository, found as netsky finds it.
func opened(t *testing.T, f testworld.Repo) git.Repo {
	t.Helper()
	return testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
}

// A snapshot is what `git add -A` and a commit would make; the worktree, its index and the
// repository's objects stay as they are.
func TestTake(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	f := testworld.NewRepo(t, filepath.Join(dir, "a:b \"ü\xff"))
	f.Commit("second", "gone", "1", "kept", "2", "dir/file", "3", "staged", "4", "uncached", "5", ".gitignore", "ignored\n")
	s := testworld.Got(git.OpenScratch(h, f.Dir+"/.git"))(t)
	clean, err := s.Take(t.Context(), opened(t, f), git.Uncommitted{})
	if err != nil || clean.Dirty != 0 || clean.Commit != clean.Head || clean.Tree != "" || clean.Out != "refs/heads/main" {
		t.Errorf("%+v, %v", clean, err)
	}
	f.Write("a.txt", "changed\n", "new\nü \xff", "new", "staged", "staged", "ignored", "x", "dir2/deep/new", "y")
	f.Git("add", "staged")
	f.Git("rm", "-q", "--cached", "uncached")
	f.Write("staged", "again")
	testworld.Must(t, os.RemoveAll(filepath.Join(f.Dir, "dir")))
	f.Write("dir", "a file now")
	testworld.Must(t, os.Remove(filepath.Join(f.Dir, "gone")))
	before := f.Git("status", "--porcelain")
	objects := f.Git("count-objects", "-v")
	w := testworld.Got(s.Take(t.Context(), opened(t, f), clean))(t)
	if again, err := s.Take(t.Context(), opened(t, f), w); err != nil || again.Tree != w.Tree {
		t.Errorf("%+v, %v", again, err)
	}
	f.Write("a.txt", "Changed\n")
	w = testworld.Got(s.Take(t.Context(), opened(t, f), w))(t)
	testworld.Equal(t, f.Git("status", "--porcelain"), before, "the index has changed")
	testworld.Equal(t, f.Git("count-objects", "-v"), objects, "objects were added")
	testworld.Fails(t, testworld.Err(f.Try("cat-file", "-e", w.Commit)), "", "the repository itself has the snapshot")
	d := git.Dir{Path: f.Dir, Env: s.Env()}
	testworld.Equal(t, testworld.Got(d.First(t.Context(), "rev-parse", w.Commit+"^"))(t), w.Head, "parent")
	f.Git("add", "-A")
	if want := f.Git("write-tree"); w.Tree != want {
		diff, _ := d.List(t.Context(), "diff", "--stat", w.Tree, want)
		t.Errorf("%s, want %s:\n%s", w.Tree, want, diff)
	}
	testworld.Must(t, s.Close())
	testworld.Equal(t, s.Close(), nil)
}

// What can't be in a snapshot is named, and keeps nothing else out of it.
func TestLeft(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	f := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
	f.Git("init", "-q", "unborn")
	f.Write("unborn/x", "", "large", "", "new", "n", "secret", "s")
	testworld.Must(t, os.Truncate(filepath.Join(f.Dir, "large"), 1<<30))
	want := "large unborn/"
	if os.Geteuid() != 0 {
		want = "large secret unborn/"
	}
	testworld.Must(t, os.Chmod(filepath.Join(f.Dir, "secret"), 0))
	s := testworld.Got(git.OpenScratch(h, f.Dir+"/.git"))(t)
	defer s.Close()
	w, err := s.Take(t.Context(), opened(t, f), git.Uncommitted{})
	if err != nil || strings.Join(w.Left, " ") != want {
		t.Errorf("%+v, %v", w, err)
	}
	names, err := git.Dir{Path: f.Dir, Env: s.Env()}.List(t.Context(), "ls-tree", "-r", "--name-only", w.Tree)
	if err != nil || !strings.Contains(names, "new\n") {
		t.Errorf("%q, %v", names, err)
	}
}

// What is written adds up, also if each snapshot alone is small.
func TestFull(t *testing.T) {
	t.Parallel()
	f := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
	s := testworld.Got(git.OpenScratch(testworld.FastHome(t), f.Dir+"/.git"))(t)
	defer s.Close()
	s.Limit(1000)
	var w git.Uncommitted
	for n := range 3 {
		if want := n > 2; s.Full() != want {
			t.Errorf("after %d snapshots: full is %t", n, s.Full())
		}
		f.Write("x", strings.Repeat(string(rune('a'+n)), 400))
		w = testworld.Got(s.Take(t.Context(), opened(t, f), w))(t)
	}
	if !s.Full() {
		t.Error("not full after 1200 bytes")
	}
}

// Only what a crash has left is swept.
func TestSweep(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	s := testworld.Got(git.OpenScratch(h, "/nowhere"))(t)
	defer s.Close()
	count := func() int {
		list := testworld.Got(os.ReadDir(h.Path(git.ScratchDirname)))(t)
		return len(list)
	}
	if err := git.SweepScratch(h, time.Now().Add(-time.Hour)); err != nil || count() != 1 {
		t.Errorf("%d, %v", count(), err)
	}
	if err := git.SweepScratch(h, time.Now().Add(time.Hour)); err != nil || count() != 0 {
		t.Errorf("%d, %v", count(), err)
	}
}
