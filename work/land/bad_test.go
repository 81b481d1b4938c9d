package land_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/land"
	"netsky/work/record"
)

// What keeps a landing from being made changes nothing, and is said.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(y yard, at testworld.Repo)
		how    string
		want   []string
		other  bool // not ErrNotYet
	}{
		{name: "a changed file", before: func(y yard, _ testworld.Repo) { y.Write("a.txt", "mine\n") }, want: []string{"has changes that are not committed: a.txt"}},
		{name: "a changed file with an odd name", before: func(y yard, _ testworld.Repo) {
			y.Write("x\nnetsky: landed", "")
			y.Git("add", "-N", "x\nnetsky: landed")
		}, want: []string{`not committed: "x\nnetsky: landed"`}},
		{name: "a staged file", before: func(y yard, _ testworld.Repo) { y.Write("mine.txt", "mine\n"); y.Git("add", "-N", "mine.txt") }, want: []string{"not committed: mine.txt"}},
		{name: "an untracked file", before: func(y yard, _ testworld.Repo) { y.Write("b.txt", "mine\n") }, want: []string{"would be overwritten", "b.txt"}},
		{name: "an ignored file", before: func(y yard, _ testworld.Repo) {
			y.Write(".git/info/exclude", "*.txt\n", "b.txt", "mine\n")
		}, want: []string{"would be overwritten", "b.txt"}},
		{name: "an ignored directory", before: func(y yard, _ testworld.Repo) {
			y.Write(".git/info/exclude", "*.txt\n", "b.txt/x.txt", "mine\n")
		}, want: []string{"would be overwritten", "b.txt/x.txt"}},
		{name: "a file of a repository in an ignored directory", before: func(y yard, _ testworld.Repo) {
			y.Write(".git/info/exclude", "sub/\n")
			y.Git("init", "-q", "sub")
			y.At(y.Dir+"/sub").Git("config", "user.name", "Ada")
			y.At(y.Dir+"/sub").Git("config", "user.email", "ada@example.org")
			y.At(y.Dir+"/sub").Commit("mine", "c.txt", "mine\n")
			y.Write("sub/c.txt", "edited\n")
		}, want: []string{"would be overwritten", "sub/c.txt"}},
		{name: "an ignored file where a directory comes", before: func(y yard, _ testworld.Repo) {
			y.Write(".git/info/exclude", "sub\n", "sub", "mine\n")
		}, want: []string{"would be overwritten", "sub"}},
		{name: "a file that is assumed to be unchanged", before: func(y yard, _ testworld.Repo) {
			y.Git("update-index", "--assume-unchanged", "a.txt")
			y.Write("a.txt", "mine\n")
		}, want: []string{"a.txt"}, other: true},
		{name: "a file that is skipped", before: func(y yard, _ testworld.Repo) {
			y.Git("update-index", "--skip-worktree", "a.txt")
			y.Write("a.txt", "mine\n")
		}, want: []string{"a.txt"}, other: true},
		{name: "a locked index", before: func(y yard, _ testworld.Repo) { y.Write(".git/index.lock", "") }, want: []string{"index.lock"}, other: true},
		{name: "a locked ref", before: func(y yard, _ testworld.Repo) { y.Write(".git/refs/heads/main.lock", "") }, want: []string{"main", "update-ref"}},
		{name: "a merge under way", before: func(y yard, _ testworld.Repo) { y.Write(".git/MERGE_HEAD", y.Git("rev-parse", "HEAD")+"\n") }, want: []string{"in the middle of a merge"}},
		{name: "a rebase under way", before: func(y yard, _ testworld.Repo) {
			y.Commit("x", "x", "x")
			y.Git("-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-q", "-i", "HEAD^")
		}, want: []string{"a rebase of main is under way"}},
		{name: "a bisection under way", before: func(y yard, _ testworld.Repo) {
			y.Commit("x", "x", "x")
			y.Commit("y", "x", "y")
			y.Git("bisect", "start", "HEAD", "HEAD^^")
		}, want: []string{"a bisection of main is under way"}},
		{name: "checked out twice", before: func(y yard, _ testworld.Repo) {
			y.Git("worktree", "add", "-q", "-f", filepath.Join(y.t.TempDir(), "w"), "main")
		}, want: []string{"main is checked out twice"}},
		{name: "checked out in a directory that is gone", before: func(y yard, _ testworld.Repo) {
			y.Git("switch", "-q", "-c", "other")
			dir := filepath.Join(y.t.TempDir(), "w")
			y.Git("worktree", "add", "-q", dir, "main")
			os.RemoveAll(dir)
		}, want: []string{"which is gone"}},
		{name: "pre-commit", how: land.Squash, before: hook("pre-commit", "echo no tabs, please >&2; exit 1"), want: []string{"git commit: no tabs, please", "has the hooks pre-commit"}},
		{name: "commit-msg", how: land.Squash, before: hook("commit-msg", "echo needs a ticket; exit 1"), want: []string{"needs a ticket", "commit-msg"}},
		{name: "pre-merge-commit", how: land.Merging, before: hook("pre-merge-commit", "echo not today; exit 1"), want: []string{"git merge: not today"}},
		{name: "pre-rebase", how: land.Rebase, before: func(y yard, at testworld.Repo) {
			hook("pre-rebase", "echo never rebase; exit 1")(y, at)
			y.Commit("owner's", "o.txt", "o\n")
		}, want: []string{"never rebase"}},
		{name: "a hook that changes files", how: land.Squash, before: hook("pre-commit", "echo more >> a.txt; git add a.txt"), want: []string{"other files than the ones that were checked", "pre-commit"}},
		{name: "a hook that hooksPath names", how: land.Squash, before: func(y yard, _ testworld.Repo) {
			y.Write("../hooks/pre-commit", "#!/bin/sh\necho from afar; exit 1\n")
			os.Chmod(filepath.Join(y.Dir, "../hooks/pre-commit"), 0o755)
			y.Git("config", "core.hooksPath", filepath.Join(y.Dir, "../hooks"))
		}, want: []string{"from afar"}},
		{name: "reference-transaction", before: hook("reference-transaction", `[ "$1" = prepared ] && grep -q refs/heads/main && { echo frozen >&2; exit 1; }; exit 0`), want: []string{"frozen"}},
		{name: "no key to sign with", how: land.Merging, before: func(y yard, _ testworld.Repo) {
			y.Git("config", "commit.gpgsign", "true")
			y.Git("config", "gpg.program", "/bin/false")
		}, want: []string{"gpg failed to sign"}},
		{name: "a branch that is not signed", before: func(y yard, _ testworld.Repo) {
			y.Git("config", "merge.verifySignatures", "true")
		}, want: []string{"has no good signature", "merge.verifySignatures"}},
		{name: "nobody to commit as", how: land.Merging, before: func(y yard, _ testworld.Repo) {
			y.Git("config", "user.useConfigOnly", "true")
			y.Git("config", "--unset", "user.email")
		}, want: []string{"no email was given"}},
		{name: "a rebase that conflicts on its way", how: land.Rebase, before: func(y yard, at testworld.Repo) {
			at.Commit("to and fro", "o.txt", "theirs\n")
			at.Git("rm", "-q", "o.txt")
			at.Commit("fro", "d.txt", "d\n")
			y.Commit("owner's", "o.txt", "o\n")
		}, want: []string{"git rebase", "o.txt"}},
		{name: "another way", how: "guess", before: func(yard, testworld.Repo) {}, want: []string{`"guess": must be`}, other: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			at := y.clone("agent1")
			at.Commit("one", "b.txt", "agent's\n", "a.txt", "agent's\n", "sub/c.txt", "c\n")
			tt.before(y, at)
			main, head := y.Git("rev-parse", "main"), at.Git("rev-parse", "HEAD")
			mine, sub := y.Read("a.txt")+y.Read("b.txt")+y.Read("b.txt/x.txt")+y.Read("sub")+y.Read("sub/c.txt"), y.Git("status", "--porcelain", "--ignored")
			_, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true, How: tt.how})
			if err == nil || errors.Is(err, land.ErrNotYet) == tt.other {
				t.Fatalf("%v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
			if y.Git("rev-parse", "main") != main || at.Git("rev-parse", "HEAD") != head || mine != y.Read("a.txt")+y.Read("b.txt")+y.Read("b.txt/x.txt")+y.Read("sub")+y.Read("sub/c.txt") || sub != y.Git("status", "--porcelain", "--ignored") {
				t.Errorf("something changed:\n%s\n%s", sub, y.Git("status", "--porcelain", "--ignored"))
			}
			if list, _ := y.records(); len(list) > 1 || len(list) == 1 && (list[0].State != record.Void || list[0].Reason == "") {
				t.Errorf("on record: %+v", list)
			}
			y.tidy()
		})
	}
}

func hook(name, text string) func(yard, testworld.Repo) {
	return func(y yard, _ testworld.Repo) {
		testworld.Program(y.t, filepath.Join(y.Dir, ".git", "hooks", name), "#!/bin/sh\n"+text+"\n")
	}
}

func TestMovedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"build", "built", "journal", "begun", "move", "files"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.clone("agent1").Commit("one", "b.txt", "b\n")
			y.Git("switch", "-q", "-c", "side")
			hook("commit-msg", "exit 0")(y, y.Repo)
			var moved string
			if step == "files" { // only with a worktree there are files; the ref is moved behind its back
				y.Git("switch", "-q", "main")
			}
			y.desk.Step = func(name string) {
				if name == step && moved == "" {
					moved = y.Git("commit-tree", "main^{tree}", "-p", "main", "-m", "owner's")
					y.Git("update-ref", "refs/heads/main", moved)
				}
			}
			_, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true, How: land.Squash})
			if !errors.Is(err, land.ErrNotYet) || moved == "" || y.Git("rev-parse", "main") != moved || y.Git("status", "--porcelain") != "" {
				t.Errorf("%v\n%s", err, y.Git("status"))
			}
			y.tidy()
		})
	}
}

func TestCheckRun(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.Commit("ignore", ".gitignore", ".env\n", ".worktreeinclude", ".env\n")
	y.Write(".env", "A=1\n")
	y.clone("agent1").Commit("one", "b.txt", "b\n")
	set := func(text string) {
		t.Helper()
		y.desk.Command.Text = text
		testworld.Must(t, y.desk.Command.Agree(y.home))
	}
	y.desk.Environ = append(os.Environ(), "NETSKY_HOME=/secret", "AGENT_N=1", "NETSKY_TOKEN=secret")
	set("cat .env; pwd; env; echo changed > a.txt; mkdir -p ro/x; chmod 500 ro; git status --porcelain; test -z \"$NETSKY_HOME$AGENT_N$NETSKY_TOKEN\"")
	k := y.check("agent1")
	log, err := y.home.ReadFile(k.Log, 1<<20)
	if k.State != record.Passed || err != nil || !strings.Contains(string(log), "A=1\n"+y.home.Path(home.WorkDir, ".scratch", k.ID)) || !strings.Contains(string(log), " M a.txt") {
		t.Errorf("%+v %v\n%s", k, err, log)
	}
	if strings.Contains(string(log), "secret") {
		t.Errorf("%s", log)
	}
	y.tidy()
	y.desk.Within = 50 * time.Millisecond
	set("sleep 1000 & sleep 1000")
	if k := y.check("agent1"); k.State != record.Broken || !strings.Contains(k.Reason, "timed out after") {
		t.Errorf("%+v", k)
	}
	y.desk.Within = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	y.desk.Step = func(name string) {
		if name == "run" {
			cancel()
		}
	}
	if k, err := y.desk.Check(ctx, "agent1", land.CheckOptions{}); err != nil || k.State != record.Broken || k.Reason != "cut off" {
		t.Errorf("%+v %v", k, err)
	}
	y.tidy()
	y.desk.Command.Text = "true # never agreed to"
	testworld.ErrorIs(t, testworld.Err(y.desk.Check(t.Context(), "agent1", land.CheckOptions{})), land.ErrAgree)
	y.desk.Command.Text = ""
	testworld.ErrorIs(t, testworld.Err(y.desk.Check(t.Context(), "agent1", land.CheckOptions{})), land.ErrNoCheck)
	testworld.ErrorIs(t, testworld.Err(y.desk.Check(t.Context(), "agent2", land.CheckOptions{})), land.ErrNoCheck)
	testworld.ErrorIs(t, testworld.Err(y.desk.Land(t.Context(), "agent2", land.LandOptions{})), land.ErrNoWorktree)
}
