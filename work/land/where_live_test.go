//go:build live

package land_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/merge"
	"netsky/work/record"
)

// Wherever git keeps the repository's data, the files of the owner's directory are the ones that follow.
func TestDataElsewhere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		move func(t *testing.T, r testworld.Repo) testworld.Repo
	}{
		{"a link", func(t *testing.T, r testworld.Repo) testworld.Repo {
			data := filepath.Join(t.TempDir(), ".git") // beside which nothing of it is
			testworld.Must(t, errors.Join(os.Rename(filepath.Join(r.Dir, ".git"), data), os.Symlink(data, filepath.Join(r.Dir, ".git"))))
			return r
		}},
		{"a separate directory", func(t *testing.T, r testworld.Repo) testworld.Repo {
			r.Git("init", "-q", "--separate-git-dir", filepath.Join(t.TempDir(), "data"))
			return r
		}},
		{"a submodule", func(t *testing.T, r testworld.Repo) testworld.Repo {
			above := testworld.NewRepo(t, filepath.Join(filepath.Dir(r.Dir), "above"))
			above.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", r.Dir, "lib")
			in := above.At(filepath.Join(above.Dir, "lib"))
			in.Git("config", "user.name", "Ada")
			in.Git("config", "user.email", "ada@example.org")
			return in
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := tt.move(t, newYard(t).Repo)
			r.Commit("ignore", ".gitignore", "*.key\n")
			y := yardAt(t, r)
			at := y.clone("agent1")
			at.Git("rm", "-q", "a.txt")
			at.Commit("one", "config", "new\n", "b.txt", "b\n") // git has a file of the former name, too
			y.check("agent1")
			l := y.land("agent1", land.LandOptions{})
			testworld.Equal(t, y.Read("config")+y.Read("b.txt")+y.Read("a.txt")+y.Git("status", "--porcelain"), "new\nb\n", "after it landed")
			testworld.Equal(t, testworld.Err(y.desk.Undo(t.Context(), l.ID)), nil)
			testworld.Equal(t, y.Read("config")+y.Read("a.txt")+y.Git("status", "--porcelain"), "one\n", "undone")
			y.Write("b.key", "mine\n")
			at.Write("b.key", "new\n")
			at.Git("add", "-f", "b.key")
			at.Commit("two")
			if _, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true}); !errors.As(err, new(*land.DirtyError)) || y.Read("b.key") != "mine\n" {
				t.Errorf("an ignored file: %v, %q", err, y.Read("b.key"))
			}
			y.tidy()
		})
	}
}

// A branch does not move while git takes the directory where it is checked out for none.
func TestSetBare(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.clone("agent1").Commit("one", "b.txt", "b\n")
	l := y.land("agent1", land.LandOptions{Unchecked: true})
	y.clone("agent1").Commit("two", "c.txt", "c\n")
	y.Git("config", "core.bare", "true")
	_, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true})
	_, uerr := y.desk.Undo(t.Context(), l.ID)
	for _, err := range []error{err, uerr} {
		testworld.ErrorIs(t, err, git.ErrBare)
	}
	testworld.Equal(t, y.Git("rev-parse", "main"), l.After, "main has moved")
}

// A name that stands for another branch lands there, with its files.
func TestAlias(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.Git("symbolic-ref", "refs/heads/master", "refs/heads/main")
	at := y.clone("agent1")
	at.Commit("one", "b.txt", "b\n")
	l := y.land("agent1", land.LandOptions{Unchecked: true, Onto: "master"})
	if l.Target != "refs/heads/main" || y.Read("b.txt") != "b\n" || y.Git("status", "--porcelain") != "" || y.Git("symbolic-ref", "refs/heads/master") != "refs/heads/main" {
		t.Errorf("%+v\n%s", l, y.Git("status"))
	}
	y.Git("symbolic-ref", "refs/heads/mine", "refs/heads/netsky/agent1")
	at.Commit("two", "c.txt", "c\n")
	testworld.Fails(t, testworld.Err(y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true, Onto: "mine"})), "on itself", "onto itself")
}

// A file that the branch still tracks, and the owner no longer does, is in nobody's way.
func TestTrackedNoMore(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.Commit("env", ".env", "1\n")
	at := y.clone("agent1")
	for _, how := range []string{land.Squash, land.Merging} {
		at.Commit("work", "b.txt", how)
		if how == land.Squash {
			y.Git("rm", "-q", "--cached", ".env")
			y.Commit("ignore it", ".gitignore", ".env\n")
			y.Write(".env", "mine\n")
		}
		y.land("agent1", land.LandOptions{Unchecked: true, How: how})
		if y.Read(".env") != "mine\n" || y.Read("b.txt") != how || y.Git("status", "--porcelain") != "" {
			t.Errorf("%s: %q\n%s", how, y.Read(".env"), y.Git("status"))
		}
	}
}

// What gpg says of a signed commit is no part of a message.
func TestSignedMessage(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	at := y.clone("agent1")
	at.Commit("work", "b.txt", "b")
	testworld.Program(t, filepath.Join(y.Dir, ".git", "gpg"), "#!/bin/sh\ncat >/dev/null; printf '%s\\n' '-----BEGIN PGP SIGNATURE-----' x '-----END PGP SIGNATURE-----'; echo '[GNUPG:] SIG_CREATED ' >&2; echo gpg says >&2\n")
	y.Git("config", "gpg.program", filepath.Join(y.Dir, ".git", "gpg"))
	at.Git("commit", "-q", "--amend", "--no-edit", "-S")
	y.Git("config", "log.showSignature", "true")
	y.land("agent1", land.LandOptions{Unchecked: true, How: land.Squash})
	if got := y.Git("cat-file", "commit", "main"); strings.Contains(got, "gpg says") || !strings.HasSuffix(got, "\n\nwork\n\nNetsky-Agent: agent1") {
		t.Error(got)
	}
}

// What could not be told after a crash is not begun.
func TestNotUTF8(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.clone("agent1").Commit("one", "b.txt", "b\n")
	y.Git("branch", "a\xffb")
	y.Git("worktree", "add", "-q", "-b", "side", filepath.Join(filepath.Dir(y.Dir), "c\xffd"))
	before := y.Git("rev-parse", "main")
	for _, name := range []string{"a\xffb", "side"} {
		_, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true, Onto: name})
		if !errors.Is(err, land.ErrNotYet) || !strings.Contains(err.Error(), "is not UTF-8") || y.Git("rev-parse", name) != before {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What landed has not landed any more once the owner has moved the branch back; what was rewritten there
// has.
func TestHolds(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	at := y.clone("agent1")
	at.Commit("one", "b.txt", "b\n")
	l := y.land("agent1", land.LandOptions{Unchecked: true})
	holds := func(want bool) {
		t.Helper()
		testworld.Equal(t, (&land.Holder{Home: y.home}).Holds(t.Context(), l.Landing), want, "holds")
	}
	holds(true)
	y.Commit("the owner's", "c.txt", "c\n")
	holds(true)
	y.Git("reset", "-q", "--hard", l.Before)
	holds(false)
	y.Commit("the same, rewritten", "b.txt", "b\n")
	holds(true)
	y.Git("switch", "-q", "-c", "other")
	y.Git("branch", "-q", "-D", "main")
	holds(true)
}

// What is only empty, or taken over, is nothing of a worker's own.
func TestOwns(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	at := y.clone("agent1")
	begun := at.Commit("before", "b.txt", "b\n")
	main := y.Commit("the owner's", "c.txt", "c\n")
	owns := func(begun, before string) bool {
		return (&land.Holder{Home: y.home}).Owns(t.Context(), "agent1", begun, at.Git("rev-parse", "HEAD"), before)
	}
	for _, tt := range []struct {
		name string
		do   func()
		want bool
	}{
		{"an empty commit", func() { at.Commit("nothing") }, false},
		{"a merge", func() { at.Git("merge", "-q", "--no-edit", "main") }, false},
		{"a rebase", func() { at.Git("rebase", "-q", "main") }, false},
		{"a commit", func() { at.Commit("something", "d.txt", "d\n") }, true},
		{"a commit and a merge", func() {
			at.Commit("something", "d.txt", "d\n")
			at.Git("merge", "-q", "--no-edit", "main")
		}, true},
		{"a commit on a side", func() {
			at.Git("checkout", "-q", "-b", "side")
			at.Commit("something", "d.txt", "d\n")
			at.Git("checkout", "-q", "netsky/agent1")
			at.Git("merge", "-q", "--no-ff", "--no-edit", "side")
			at.Git("branch", "-q", "-D", "side")
		}, true},
		{"it has landed", func() { at.Commit("something", "d.txt", "d\n"); y.Git("merge", "-q", "--no-edit", "netsky/agent1") }, true},
	} {
		at.Git("reset", "-q", "--hard", begun)
		tt.do()
		before := ""
		if tt.name == "it has landed" {
			before = main
		}
		testworld.Equal(t, owns(begun, before), tt.want, "%s", tt.name)
	}
	testworld.Equal(t, owns("not a commit", ""), true, "what can't be told counts as nothing")
}

// A check says nothing of the same files in another repository.
func TestCheckedElsewhere(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	other := yardAt(t, testworld.NewRepo(t, filepath.Join(t.TempDir(), "other")))
	other.home, other.desk = y.home, y.desk
	y.clone("agent1").Commit("one", "b.txt", "b\n")
	other.clone("agent2").Commit("one", "b.txt", "b\n")
	y.check("agent1")
	if p := other.state("agent2"); p.Proof != land.Unchecked || p.Tree != y.state("agent1").Tree {
		t.Errorf("%+v", p)
	}
	testworld.ErrorIs(t, testworld.Err(other.desk.Land(t.Context(), "agent2", land.LandOptions{})), land.ErrNotYet)
}

// What is checked is all that would land, though the owner's checkout is sparse.
func TestCheckedWhole(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"", land.Squash} {
		y := newYard(t)
		y.Commit("more", "in/a", "a", "out/a", "a")
		y.Git("sparse-checkout", "set", "in")
		y.Git("config", "core.hooksPath", "hooks") // so that the commit is made in a worktree
		y.desk.Command.Text = "test -e out/a"
		testworld.Must(t, y.desk.Command.Agree(y.home))
		y.clone("agent1").Commit("one", "in/a", "two")
		if k := y.check("agent1"); k.State != record.Passed {
			t.Errorf("%+v", k)
		}
		y.land("agent1", land.LandOptions{How: how})
		testworld.Equal(t, y.Git("show", "main:out/a")+y.Read("out/a")+y.Read("in/a"), "atwo")
	}
}

// A merge obeys the attributes of the branch that it is into, whatever is checked out.
func TestAttributes(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.Commit("attributes", "sub/.gitattributes", "* merge=union\n", "sub/x", "1\n")
	y.clone("agent1").Commit("one", "sub/x", "1\nagent's\n")
	y.Commit("mine", "sub/x", "1\nmine\n")
	y.Git("switch", "-q", "--orphan", "other")
	y.Commit("nothing")
	fc := merge.New(y.home)
	defer fc.Close()
	if c, err := fc.Look(t.Context()); err != nil || len(c.Conflicts) > 0 {
		t.Errorf("%+v, %v", c.Conflicts, err)
	}
	y.land("agent1", land.LandOptions{Unchecked: true})
	testworld.Equal(t, y.Git("show", "main:sub/x"), "1\nmine\nagent's")
	y.Git("switch", "-q", "main")
	y.Git("switch", "-q", "-c", "third", "main~2")
	y.Write("sub/.gitattributes", "")
	y.Git("commit", "-q", "-a", "-m", "no attributes")
	y.Commit("mine", "sub/x", "1\nother\n")
	testworld.ErrorIs(t, testworld.Err(y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true, Onto: "third"})), land.ErrNotYet)
}

// A pipe in the place of a file of git's that an agent has put into its worktree's part of the repository is
// waited for by nobody.
func TestPipeOfAnother(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.clone("agent1").Commit("one", "b.txt", "b")
	y.clone("agent2")
	dir := filepath.Join(y.Dir, ".git/worktrees/agent2/rebase-merge")
	testworld.Must(t, errors.Join(os.Mkdir(dir, 0o700), syscall.Mkfifo(filepath.Join(dir, "head-name"), 0o600)))
	landed := make(chan error, 1)
	go func() {
		_, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true})
		landed <- err
	}()
	select {
	case err := <-landed:
		testworld.Equal(t, err, nil)
	case <-time.After(time.Minute):
		t.Error("the landing waits for the pipe")
	}
}
