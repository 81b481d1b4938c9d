package retire_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/retire"
	"netsky/work/tree"
)

// TestMain retires agent1's worktree if it runs as the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("RETIRE_HOME"); dir != "" {
		h, err := home.Find(func(name string) string { return map[string]string{"NETSKY_HOME": dir}[name] })
		if err == nil {
			_, err = retire.Retire(context.Background(), retire.Options{Home: h}, "agent1")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type field struct {
	testworld.Repo
	t    *testing.T
	home home.Dir
	tree testworld.Repo // agent1's
	w    tree.Worktree
}

func newField(t *testing.T) *field {
	t.Helper()
	f := &field{Repo: testworld.NewRepo(t, filepath.Join(t.TempDir(), "src")), t: t, home: testworld.FastHome(t)}
	f.Commit("ignore", ".gitignore", ".env\nbuild/\n", ".worktreeinclude", ".env\n")
	f.Write(".env", "A=1")
	f.make()
	return f
}

func (f *field) make() {
	f.t.Helper()
	r := testworld.Got(git.Open(f.t.Context(), f.Dir, ""))(f.t)
	p := testworld.Got(tree.Make(f.t.Context(), f.home, "agent1", r, false))(f.t)
	f.w, f.tree = p.Worktree, f.At(p.Dir)
}

func (f *field) retire() (string, error) {
	return retire.Retire(f.t.Context(), retire.Options{Home: f.home}, "agent1")
}

// gone checks that nothing but the commit is left.
func (f *field) gone(commit string) {
	f.t.Helper()
	if _, err := os.Lstat(f.w.Dir); !os.IsNotExist(err) {
		f.t.Errorf("its directory: %v", err)
	}
	if list, _ := filepath.Glob(f.home.Path(home.WorkDir, ".*")); len(list) > 0 {
		f.t.Errorf("left: %q", list)
	}
	if _, err := tree.Load(f.home, "agent1"); !os.IsNotExist(err) {
		f.t.Errorf("its record: %v", err)
	}
	want := "refs/netsky/retired/agent1-" + commit[:12]
	testworld.Equal(f.t, f.Git("for-each-ref", "--format=%(refname)", "refs/netsky", "refs/heads/netsky"), want, "refs")
	if got := f.Git("worktree", "list", "--porcelain"); strings.Count(got, "worktree ") != 1 {
		f.t.Errorf("worktrees: %s", got)
	}
}

// What has landed is removed, and can be brought back.
func TestRetire(t *testing.T) {
	t.Parallel()
	for name, land := range map[string]func(f *field){
		"merged":                 func(f *field) { f.Git("merge", "-q", "--no-ff", "-m", "m", "netsky/agent1") },
		"kept on another branch": func(f *field) { f.Git("branch", "mine", "netsky/agent1") },
		"squashed":               func(f *field) { f.Git("merge", "-q", "--squash", "netsky/agent1"); f.Git("commit", "-qm", "s") },
		"deleted by hand": func(f *field) {
			f.Git("merge", "-q", "netsky/agent1")
			testworld.Must(f.t, os.RemoveAll(f.w.Dir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			commit := f.tree.Commit("work", "w", "w")
			if _, err := f.retire(); !errors.Is(err, retire.ErrKept) || !strings.Contains(err.Error(), "1 commit has not landed on main") {
				t.Errorf("before it landed: %v", err)
			}
			land(f)
			ref, err := f.retire()
			if err != nil || ref != "refs/netsky/retired/agent1-"+commit[:12] {
				t.Fatalf("%s, %v", ref, err)
			}
			f.gone(commit)
			list, err := retire.Gone(t.Context(), []string{f.w.Repo, f.w.Repo})
			if err != nil || len(list) != 1 || list[0].Subject != "work" || list[0].Agent != "agent1" || list[0].Commit != commit || list[0].Time == 0 {
				t.Fatalf("%+v, %v", list, err)
			}
			if out, err := exec.Command("sh", "-c", list[0].Command).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", list[0].Command, err, out)
			}
			testworld.Equal(t, f.Git("rev-parse", "retired/agent1-"+commit[:12]), commit, "brought back")
			f.make() // a new one
			if ref, err := f.retire(); err != nil || ref == "" {
				t.Errorf("%s, %v", ref, err)
			}
		})
	}
}

// Whatever nobody else has stays, and all with it.
func TestKept(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(f *field)
		want string
	}{
		{"changed", func(f *field) { f.tree.Write("a.txt", "2") }, "1 file is not committed"},
		{"new", func(f *field) { f.tree.Write("x", "1", "dir/y", "2") }, "2 files are not committed"},
		{"committed", func(f *field) { f.tree.Commit("1", "x", "1"); f.tree.Commit("2", "x", "2") }, "2 commits have not landed on main and are on no other branch"},
		{"another branch", func(f *field) { f.tree.Git("checkout", "-qb", "mine") }, "netsky/agent1 is not what is checked out there"},
		{"ignored", func(f *field) { f.tree.Write(".env", "A=2") }, "git ignores .env, and no commit has it"},
		{"an ignored directory", func(f *field) { f.tree.Write("build/x", "A=2", "build/y", "1") }, "git ignores build/, and no commit has it"},
		{"a merge", func(f *field) {
			f.Git("checkout", "-qb", "side")
			f.Commit("side", "side", "1")
			f.Git("checkout", "-q", "main")
			f.tree.Git("merge", "-q", "--no-ff", "--no-commit", "-s", "ours", "side")
		}, "a merge is not finished there"},
		{"hidden", func(f *field) {
			f.tree.Git("update-index", "--assume-unchanged", "a.txt")
			f.tree.Write("a.txt", "2")
		}, "a.txt is changed, and git was told not to look at it"},
		{"hidden by its name", func(f *field) {
			f.tree.Commit("a name that begins as a stage does", "0:a.txt", "two\n")
			f.Git("merge", "-q", "--ff-only", "netsky/agent1")
			f.tree.Git("update-index", "--skip-worktree", "0:a.txt")
			f.tree.Write("0:a.txt", "one\n") // as a.txt
		}, "0:a.txt is changed"},
		{"a submodule", func(f *field) {
			sub := testworld.NewRepo(f.t, filepath.Join(f.t.TempDir(), "sub"))
			f.tree.Git("submodule", "add", "-q", sub.Dir, "mod")
			f.tree.Commit("with a submodule")
			f.Git("merge", "-q", "--ff-only", "netsky/agent1")
		}, "it holds repositories of submodules"},
		{"a repository in a submodule's place", func(f *field) {
			f.tree.Git("update-index", "--add", "--cacheinfo", "160000,"+f.Git("rev-parse", "main")+",mod")
			f.tree.Git("commit", "-q", "-m", "with a submodule")
			f.Git("merge", "-q", "--ff-only", "netsky/agent1")
			f.tree.Git("clone", "-q", f.Dir, filepath.Join(f.w.Dir, "mod"))
		}, "it holds a repository of its own in mod"},
		{"a repository over tracked files", func(f *field) {
			f.tree.Commit("a directory", "d/e/x", "1")
			f.Git("merge", "-q", "--ff-only", "netsky/agent1")
			in := testworld.NewRepo(f.t, filepath.Join(f.w.Dir, "d"))
			in.Commit("of its own", "e/x", "2")
			in.Git("rm", "-q", "a.txt")
			in.Commit("as before", "e/x", "1")
		}, "it holds a repository of its own in d"},
		{"refs of its own", func(f *field) {
			commit := f.tree.Commit("1", "x", "1")
			f.tree.Git("reset", "-q", "--hard", "main")
			f.tree.Git("update-ref", "refs/worktree/mine", commit)
		}, "it has refs of its own"},
		{"a bisection", func(f *field) {
			f.Commit("1", "x", "1")
			f.Commit("2", "x", "2")
			f.tree.Git("merge", "-q", "--ff-only", "main")
			f.tree.Git("bisect", "start", "main", "main~2")
		}, "a bisection is not finished there"},
		{"locked", func(f *field) { f.Git("worktree", "lock", f.w.Dir) }, "git was told to keep the worktree"},
		{"elsewhere", func(f *field) {
			f.Git("worktree", "add", "-q", "-f", filepath.Join(f.Dir, "..", "other"), "netsky/agent1")
		}, "netsky/agent1 is checked out in"},
		{"no target", func(f *field) {
			f.tree.Commit("1", "x", "1")
			f.Git("checkout", "-q", "--detach")
			f.Git("branch", "-qD", "main")
		}, "1 commit is on no other branch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			tt.do(f)
			head, status := f.tree.Git("rev-parse", "HEAD"), f.tree.Git("status", "--porcelain", "--ignored")
			_, err := f.retire()
			testworld.Fails(t, err, tt.want)
			if f.tree.Git("rev-parse", "HEAD") != head || f.tree.Git("status", "--porcelain", "--ignored") != status || f.Git("rev-parse", "netsky/agent1") == "" {
				t.Error("something has changed")
			}
		})
	}
}

// What is written after the first look, and hidden from git by another .git, stays all the same.
func TestReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text string }{
		{"nowhere", "gitdir: /nonexistent/worktrees/agent1"},
		{"an entry that is gone", "gitdir: COMMON/worktrees/agent9"},
		{"another repository", "gitdir: OTHER/.git/worktrees/there"},
		{"nothing of git's", "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			other := testworld.NewRepo(t, filepath.Join(t.TempDir(), "other"))
			other.Git("worktree", "add", "-q", filepath.Join(other.Dir, "..", "there"))
			link := strings.NewReplacer("COMMON", filepath.Join(f.Dir, ".git"), "OTHER", other.Dir).Replace(tt.text)
			hook := fmt.Sprintf("#!/bin/sh\ncd '%s' && echo mine >b.txt && echo '%s' >.git\n", f.w.Dir, link)
			testworld.Must(t, os.WriteFile(filepath.Join(f.Dir, ".git", "hooks", "reference-transaction"), []byte(hook), 0o700))
			testworld.ErrorIs(t, testworld.Err(f.retire()), retire.ErrKept)
			if text, err := os.ReadFile(filepath.Join(f.w.Dir, "b.txt")); string(text) != "mine\n" {
				t.Errorf("b.txt: %q, %v", text, err)
			}
		})
	}
}

// Without its repository, only a worktree that is gone as well is forgotten.
func TestRetireOrphan(t *testing.T) {
	t.Parallel()
	f := newField(t)
	testworld.Must(t, os.RemoveAll(f.Dir))
	if _, err := f.retire(); !errors.Is(err, retire.ErrKept) || !strings.Contains(err.Error(), "its repository") {
		t.Error(err)
	}
	testworld.Must(t, os.RemoveAll(f.w.Dir))
	testworld.Equal(t, testworld.Got(f.retire())(t), "")
	if _, err := tree.Load(f.home, "agent1"); !os.IsNotExist(err) {
		t.Errorf("its record: %v", err)
	}
}
