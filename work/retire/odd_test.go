package retire_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/retire"
	"netsky/work/tree"
)

// What is done there after the first look stays as well where git status does not show it.
func TestDoneMeanwhile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, do, want string }{
		{"an ignored file", "echo A=2 >.env", "git ignores .env, and no commit has it"},
		{"a hidden change", "git update-index --assume-unchanged a.txt && echo mine >a.txt", "a.txt is changed"},
		{"a commit on no branch", "git checkout -q --detach && git commit -q --allow-empty -m mine", "netsky/agent1 is no longer what is checked out"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			once := filepath.Join(t.TempDir(), "once")
			hook := fmt.Sprintf("#!/bin/sh\n[ -e '%[1]s' ] && exit; touch '%[1]s'; unset $(git rev-parse --local-env-vars)\ncd '%s' && %s\n", once, f.w.Dir, tt.do)
			testworld.Must(t, os.WriteFile(filepath.Join(f.Dir, ".git", "hooks", "reference-transaction"), []byte(hook), 0o700))
			if _, err := f.retire(); !errors.Is(err, retire.ErrKept) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
			testworld.Equal(t, testworld.Err(os.Lstat(f.w.Dir)), nil)
		})
	}
}

// Commits that only a reflog has are kept as well.
func TestRetireDropped(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		f := newField(t)
		f.tree.Git("checkout", "-q", "--detach")
		f.tree.Commit("1", "x", "1")
		detached := f.tree.Commit("2", "x", "2")
		f.tree.Git("checkout", "-q", "netsky/agent1")
		reset := f.tree.Commit("3", "y", "3")
		f.tree.Git("reset", "-q", "--hard", "HEAD~")
		if gone {
			testworld.Must(t, os.RemoveAll(f.w.Dir))
		}
		testworld.Got(f.retire())(t)
		list, err := retire.Gone(t.Context(), []string{f.w.Repo})
		if err != nil || len(list) != 2 || !strings.Contains(list[0].Subject+list[1].Subject, "What netsky/agent1 had dropped: 3 commits") {
			t.Errorf("%+v, %v", list, err)
		}
		f.Git("reflog", "expire", "--expire=all", "--all")
		f.Git("gc", "-q", "--prune=now")
		for _, commit := range []string{detached, reset} {
			if got, err := f.Try("cat-file", "-t", commit); got != "commit" {
				t.Errorf("gone %t: %s, %v", gone, got, err)
			}
		}
	}
}

// So is what only the worktree's own part of the repository has, where its directory was removed by hand.
func TestRetireRemovedByHand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(f *field) (kept string)
	}{
		{"detached", func(f *field) string {
			f.tree.Git("checkout", "-q", "--detach")
			return f.tree.Commit("1", "x", "1")
		}},
		{"detached, without reflogs", func(f *field) string {
			f.Git("config", "core.logAllRefUpdates", "false")
			f.tree.Git("checkout", "-q", "--detach")
			kept := f.tree.Commit("1", "x", "1")
			f.Git("reflog", "expire", "--expire=all", "--all")
			return kept
		}},
		{"the branch is gone", func(f *field) string {
			kept := f.tree.Commit("1", "x", "1")
			f.Git("update-ref", "-d", "refs/heads/netsky/agent1")
			return kept
		}},
		{"staged", func(f *field) string {
			f.tree.Write("x", "only here")
			f.tree.Git("add", "x")
			return f.tree.Git("rev-parse", ":x")
		}},
		{"in the middle of a merge", func(f *field) string {
			f.tree.Git("checkout", "-q", "-b", "side")
			f.tree.Commit("1", "a.txt", "1")
			f.tree.Git("checkout", "-q", "netsky/agent1")
			f.tree.Write("a.txt", "2", "x", "only here")
			f.tree.Git("add", "x", "a.txt")
			f.tree.Git("commit", "-qm", "2")
			f.tree.Write("x", "staged")
			f.tree.Try("merge", "side")
			f.tree.Git("add", "x")
			f.Git("branch", "keep", "netsky/agent1")
			return f.tree.Git("rev-parse", ":x")
		}},
		{"a ref of its own", func(f *field) string {
			f.tree.Git("checkout", "-q", "--detach")
			kept := f.tree.Commit("1", "x", "1")
			f.tree.Git("update-ref", "refs/worktree/mine", kept)
			f.tree.Git("checkout", "-q", "netsky/agent1")
			f.Git("reflog", "expire", "--expire=all", "--all")
			return kept
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			kept := tt.do(f)
			testworld.Must(t, os.RemoveAll(f.w.Dir))
			testworld.Got(f.retire())(t)
			f.Git("reflog", "expire", "--expire=all", "--all")
			f.Git("gc", "-q", "--prune=now")
			if _, err := f.Try("cat-file", "-e", kept); err != nil {
				t.Errorf("%s is gone\n%s", kept, f.Git("for-each-ref"))
			}
			if list, err := retire.Gone(t.Context(), []string{f.w.Repo}); err != nil || len(list) == 0 {
				t.Errorf("%+v, %v", list, err)
			}
			if list := f.Git("worktree", "list"); strings.Contains(list, "agent1") {
				t.Error(list)
			}
		})
	}
}

// Where git keeps refs in tables, a file stands in the place of each directory of refs.
func TestRetireReftable(t *testing.T) {
	t.Parallel()
	f := newField(t)
	entry := testworld.Got(f.w.Entry())(t)
	testworld.Must(t, os.MkdirAll(filepath.Join(entry, "refs"), 0o755))
	testworld.Must(t, os.WriteFile(filepath.Join(entry, "refs", "heads"), []byte("this repository uses the reftable format\n"), 0o600))
	head := f.tree.Git("rev-parse", "HEAD")
	testworld.Got(f.retire())(t)
	f.gone(head)
}

// What git could not make is no reason to keep anything.
func TestRetireUnmade(t *testing.T) {
	t.Parallel()
	f := &field{Repo: testworld.NewRepo(t, filepath.Join(t.TempDir(), "src")), t: t, home: testworld.FastHome(t)}
	f.Git("branch", "netsky") // so there is no room for netsky/agent1
	r := testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
	if _, err := tree.Make(t.Context(), f.home, "agent1", r, false); err == nil || !strings.Contains(err.Error(), "there is a branch named netsky") {
		t.Fatal(err)
	}
	testworld.Equal(t, testworld.Got(f.retire())(t), "")
	if list, err := tree.List(f.home); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// An ignored file stays, however many ignored directories may go.
func TestManyIgnored(t *testing.T) {
	t.Parallel()
	f := newField(t)
	for i := range 150 {
		f.tree.Write(fmt.Sprintf("d%d/build/x", i), "1")
	}
	f.tree.Write("z/.env", "A=2")
	_, err := retire.Retire(t.Context(), retire.Options{Home: f.home, Directories: true}, "agent1")
	if !errors.Is(err, retire.ErrKept) || !strings.Contains(err.Error(), "git ignores z/.env") {
		t.Error(err)
	}
	testworld.Must(t, os.Remove(filepath.Join(f.w.Dir, "z/.env")))
	testworld.Equal(t, testworld.Err(retire.Retire(t.Context(), retire.Options{Home: f.home, Directories: true}, "agent1")), nil)
}

// The branch that an agent's has become another name for stays.
func TestRetireAlias(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.Git("symbolic-ref", "refs/heads/netsky/agent1", "refs/heads/main")
	testworld.Must(t, os.RemoveAll(f.w.Dir))
	commit := f.Git("rev-parse", "main")
	testworld.Got(f.retire())(t)
	f.gone(commit)
	testworld.Equal(t, f.Git("rev-parse", "refs/heads/main"), commit, "main")
}
