//go:build live

package land_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/record"
)

// What looks odd and is in nobody's way lands.
func TestOdd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(y yard) // the worktree is made
		last   func(y yard) // the work is done
		files  []string
		how    string
		want   func(y yard) string // what is wrong afterwards
	}{
		{name: "names", files: []string{"sp ace/ü", "1", "new\nline", "2", "\xff\xfe", "3", "-x", "4", ":(top)y", "5", "\"q\"\t", "6"}, want: func(y yard) string {
			return diff(y.Read("sp ace/ü")+y.Read("new\nline")+y.Read("\xff\xfe")+y.Read("-x")+y.Read(":(top)y")+y.Read("\"q\"\t"), "123456")
		}},
		{name: "other files that are not tracked", last: func(y yard) { y.Write("mine.txt", "mine", "in/mine", "mine") }, files: []string{"sub/b", "b"}, want: func(y yard) string {
			return diff(y.Read("mine.txt")+y.Read("in/mine")+y.Read("sub/b"), "minemineb")
		}},
		{name: "a touched file", last: func(y yard) {
			os.Chtimes(filepath.Join(y.Dir, "a.txt"), time.Unix(1, 0), time.Unix(1, 0))
		}, files: []string{"a.txt", "two"}, want: func(y yard) string { return diff(y.Read("a.txt"), "two") }},
		{name: "a file becomes a directory", files: []string{"d/x", "x"}, before: func(y yard) { y.Commit("d", "d", "file") }, want: func(y yard) string { return diff(y.Read("d/x"), "x") }},
		{name: "sparse", before: func(y yard) {
			y.Commit("more", "in/a", "a", "out/a", "a")
			y.Git("sparse-checkout", "set", "in")
		}, files: []string{"in/a", "two"}, want: func(y yard) string { return diff(y.Read("in/a")+y.Read("out/a")+y.Git("show", "main:out/a"), "twoa") }},
		{name: "not checked out", last: func(y yard) { y.Git("switch", "-q", "-c", "other") }, files: []string{"a.txt", "two"}, how: land.Squash, want: func(y yard) string {
			return diff(y.Read("a.txt")+y.Git("show", "main:a.txt"), "one\ntwo")
		}},
		{name: "post-merge", last: func(y yard) { hook("post-merge", "pwd >> .git/ran")(y, y.Repo) }, files: []string{"a.txt", "two"}, want: func(y yard) string { return diff(y.Read(".git/ran"), y.Dir+"\n") }},
		{name: "post-merge fails", last: func(y yard) { hook("post-merge", "exit 1")(y, y.Repo) }, files: []string{"a.txt", "two"}, want: func(y yard) string { return diff(y.Read("a.txt"), "two") }},
		{name: "a configuration that would ask or move more", before: func(y yard) {
			y.Git("config", "rebase.updateRefs", "true")
			y.Git("config", "core.editor", "false")
			y.Git("config", "rebase.autoStash", "true")
			y.Git("config", "merge.ff", "false")
		}, files: []string{"a.txt", "two"}, how: land.Merging, want: func(y yard) string { return diff(y.Read("a.txt"), "two") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			if tt.before != nil {
				tt.before(y)
			}
			at := y.clone("agent1")
			if tt.name == "a file becomes a directory" {
				at.Git("rm", "-q", "d")
			}
			at.Commit("one", tt.files...)
			before := y.Git("status", "--porcelain")
			if tt.last != nil {
				tt.last(y)
				before = y.Git("--no-optional-locks", "status", "--porcelain")
			}
			if k := y.check("agent1"); k.State != record.Passed {
				t.Fatalf("%+v", k)
			}
			l := y.land("agent1", land.LandOptions{How: tt.how})
			if y.Git("rev-parse", "main") != l.After || y.Git("status", "--porcelain") != before {
				t.Errorf("%s", y.Git("status"))
			}
			testworld.Equal(t, tt.want(y), "")
			if _, err := y.desk.Undo(t.Context(), l.ID); err != nil || y.Git("status", "--porcelain") != before || y.Git("rev-parse", "main") != l.Before {
				t.Errorf("undo: %v", err)
			}
			y.tidy()
		})
	}
}

func diff(got, want string) string {
	if got == want {
		return ""
	}
	return "got " + got + ", want " + want
}

func TestDetached(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.Git("checkout", "-q", "--detach")
	y.clone("agent1").Commit("one", "b.txt", "b\n")
	testworld.Fails(t, testworld.Err(y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true})), "none to land on")
	l := y.land("agent1", land.LandOptions{Unchecked: true, Onto: "main"})
	if y.Git("rev-parse", "main") != l.After || y.Git("rev-parse", "HEAD") != l.Before {
		t.Errorf("%+v", l)
	}
	testworld.Fails(t, testworld.Err(y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true, Onto: "nowhere"})), "no branch nowhere")
	for _, name := range []string{"refs/tags/v1", "refs/remotes/origin/main", "main~1", "main@{1}", "netsky/agent1", "refs/heads/"} {
		if _, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true, Onto: name}); err == nil || !strings.Contains(err.Error(), "is not a branch") && !strings.Contains(err.Error(), "land on itself") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestShallow(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.Commit("two", "a.txt", "two\n")
	dir := filepath.Join(t.TempDir(), "clone")
	y.Git("clone", "-q", "--depth=1", "file://"+y.Dir, dir)
	c := y.At(dir)
	c.Git("config", "user.name", "Ada")
	c.Git("config", "user.email", "ada@example.org")
	s := yardAt(t, c)
	at := s.clone("agent1")
	at.Commit("three", "b.txt", "b\n")
	s.check("agent1")
	s.land("agent1", land.LandOptions{How: land.Merging})
	c.Git("fetch", "-q", "--depth=1", "origin", "main")
	orphan := c.Git("commit-tree", "HEAD^{tree}", "-m", "another root")
	at.Git("reset", "-q", "--hard", orphan)
	testworld.Fails(t, testworld.Err(s.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true})), "no commit in common")
}

func TestSubmodule(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	sub := testworld.NewRepo(t, filepath.Join(t.TempDir(), "sub"))
	y.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.Dir, "lib")
	y.Commit("lib")
	at := y.clone("agent1")
	next := sub.Commit("next", "x", "x")
	at.Git("update-index", "--cacheinfo", "160000,"+next+",lib")
	at.Git("commit", "-q", "-m", "newer lib")
	at.Commit("more", "b.txt", "b\n")
	y.check("agent1")
	l := y.land("agent1", land.LandOptions{How: land.Squash})
	if got := y.Git("rev-parse", "main:lib"); got != next || y.Read("b.txt") != "b\n" {
		t.Errorf("%+v %s", l, got)
	}
	testworld.Equal(t, y.Read("lib/a.txt"), "one\n", "the submodule's files")
	// The submodule, which is as before, keeps nothing else from landing.
	at.Commit("again", "c.txt", "c\n")
	y.land("agent1", land.LandOptions{Unchecked: true})
	y.tidy()
}

// What is changed in a submodule of the owner's stays, though a file comes in its place, or git was told to
// have submodules follow.
func TestSubmoduleOfTheOwner(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(at testworld.Repo, newer string)
		want string // the refusal
	}{
		{"replaced by a file", func(at testworld.Repo, _ string) {
			at.Git("rm", "-q", "lib")
			at.Commit("a file", "lib", "file\n")
		}, "does not track: lib/"},
		{"replaced by a directory", func(at testworld.Repo, _ string) {
			at.Git("rm", "-q", "lib")
			at.Commit("a directory", "lib/a.txt", "file\n")
		}, "lib/a.txt"},
		{"moved", func(at testworld.Repo, newer string) {
			at.Git("update-index", "--cacheinfo", "160000,"+newer+",lib")
			at.Git("commit", "-q", "-m", "newer lib")
		}, ""},
		{"removed", func(at testworld.Repo, _ string) { at.Git("rm", "-q", "lib"); at.Commit("no lib") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			sub := testworld.NewRepo(t, filepath.Join(t.TempDir(), "sub"))
			y.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.Dir, "lib")
			y.Commit("lib")
			y.Git("config", "submodule.recurse", "true")
			newer := sub.Commit("newer", "a.txt", "newer\n")
			y.Git("-C", "lib", "-c", "protocol.file.allow=always", "fetch", "-q")
			at := y.clone("agent1")
			tt.do(at, newer)
			y.Write("lib/a.txt", "mine\n", "lib/new.txt", "new\n")
			before := y.Git("rev-parse", "main")
			l, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true})
			if (tt.want == "") != (err == nil) || err != nil && (!errors.Is(err, land.ErrNotYet) && tt.name != "replaced by a directory" || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if err != nil && y.Git("rev-parse", "main") != before {
				t.Error("main has moved")
			}
			kept := func() {
				t.Helper()
				testworld.Equal(t, y.Read("lib/a.txt")+y.Read("lib/new.txt"), "mine\nnew\n", "the submodule holds")
			}
			kept()
			if err == nil {
				testworld.Equal(t, testworld.Err(y.desk.Undo(t.Context(), l.ID)), nil)
				kept()
			}
			y.tidy()
		})
	}
}

// With a relative core.hooksPath, the hooks in an agent's worktree are the agent's: only those in the
// owner's directory run.
func TestHooksOfTheOwner(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.Git("config", "core.hooksPath", ".hooks")
	mark := filepath.Join(filepath.Dir(y.Dir), "ran")
	every := func(r testworld.Repo, who string) {
		testworld.Must(t, os.MkdirAll(filepath.Join(r.Dir, ".hooks"), 0o700))
		for _, name := range []string{"pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "pre-merge-commit",
			"post-merge", "pre-rebase", "post-checkout", "post-rewrite", "post-index-change", "reference-transaction"} {
			script := "#!/bin/sh\ncase $0 in /*) echo $0;; *) echo $PWD/$0;; esac >>" + mark + "\n: " + who + "\n"
			testworld.Program(t, filepath.Join(r.Dir, ".hooks", name), script)
		}
	}
	every(y.Repo, "owner")
	y.Commit("hooks")
	at := y.clone("agent1")
	for i, how := range []string{land.Rebase, land.Squash, land.Merging} {
		y.Git("config", "core.hooksPath", git.NoHooks)
		every(at, how)
		at.Commit(how, "b.txt", how)
		y.Commit(fmt.Sprint(i), "c.txt", fmt.Sprint(i))
		testworld.Must(t, os.Remove(mark))
		y.Git("config", "core.hooksPath", ".hooks")
		y.check("agent1")
		l := y.land("agent1", land.LandOptions{How: how})
		ran := y.Read("../ran")
		for name := range strings.Lines(ran) {
			if !strings.HasPrefix(name, y.Dir+"/.hooks/") {
				t.Errorf("%s: %s", how, name)
			}
		}
		testworld.Contains(t, ran, "/reference-transaction\n", "%s: %+v", how, l)
	}
}

// Nor do an agent's where it has checked out the branch that others land on, there or in a worktree of its own
// making.
func TestHooksOfAnother(t *testing.T) {
	t.Parallel()
	for _, nested := range []bool{false, true} {
		y := newYard(t)
		y.Git("config", "core.hooksPath", ".hooks")
		at, other := y.clone("agent1"), y.clone("agent2")
		y.Git("switch", "-q", "-c", "elsewhere")
		if nested {
			other.Git("worktree", "add", "-q", "sub/x", "main")
			other = other.At(filepath.Join(other.Dir, "sub/x"))
		} else {
			other.Git("switch", "-q", "main")
		}
		mark := filepath.Join(filepath.Dir(y.Dir), "ran")
		for who, r := range map[string]testworld.Repo{"owner": y.Repo, "agent": other} {
			testworld.Must(t, os.MkdirAll(filepath.Join(r.Dir, ".hooks"), 0o700))
			for _, name := range []string{"post-merge", "post-index-change", "reference-transaction"} {
				testworld.Program(t, filepath.Join(r.Dir, ".hooks", name), "#!/bin/sh\necho "+who+" >>"+mark+"\n")
			}
		}
		y.Write(".git/info/exclude", ".hooks\n")
		at.Commit("one", "b.txt", "b")
		l := y.land("agent1", land.LandOptions{Unchecked: true})
		testworld.Got(y.desk.Undo(t.Context(), l.ID))(t)
		if ran := y.Read("../ran"); !strings.Contains(ran, "owner") || strings.Contains(ran, "agent") {
			t.Errorf("nested %t: %s", nested, ran)
		}
	}
}

// A filter that is required and not installed is named, and nothing is left.
func TestFilterMissing(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	at := y.clone("agent1")
	at.Commit("large", ".gitattributes", "*.bin filter=lfs\n", "x.bin", "pointer\n")
	y.Git("config", "filter.lfs.process", "no-such-lfs filter-process")
	y.Git("config", "filter.lfs.required", "true")
	_, err := y.desk.Check(t.Context(), "agent1", land.CheckOptions{})
	if err == nil || !strings.Contains(err.Error(), "no-such-lfs") && !strings.Contains(err.Error(), "x.bin") {
		t.Errorf("%v", err)
	}
	before := y.Git("rev-parse", "main")
	if _, err = y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true}); err == nil || y.Git("rev-parse", "main") != before || y.Git("status", "--porcelain") != "" {
		t.Errorf("%v\n%s", err, y.Git("status"))
	}
	y.tidy()
}

// A git that finds no room for a large file leaves all as it was, whether that is in the files or in the commit.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"", land.Squash, land.Rebase} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.clone("agent1").Commit("large", "0.txt", "0\n", "b.txt", strings.Repeat("b\n", 500_000), "a.txt", "two\n")
			before := y.Git("rev-parse", "main")
			out := y.netsky("land agent1 "+how, 0, childRoom+"=300000")
			if !strings.Contains(out, "not landed") || y.Git("rev-parse", "main") != before {
				t.Errorf("%s\n%s", out, y.Git("log", "--oneline", "main"))
			}
			y.desk.Recover(t.Context())
			if got := y.Git("status", "--porcelain"); got != "" || y.Git("rev-parse", "main") != before || y.Read("a.txt") != "one\n" {
				t.Errorf("%s\n%s%v", got, out, *y.said)
			}
			y.land("agent1", land.LandOptions{Unchecked: true})
			y.tidy()
		})
	}
}

// On a full disk nothing is moved, and nothing of the owner's changes.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Logf("no mounts here: %s", out)
		return // TestNoRoom shows most of it
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
	y := yardAt(t, testworld.NewRepo(t, filepath.Join(dir, "src")))
	y.clone("agent1").Commit("large", "b.txt", strings.Repeat("b\n", 500_000), "a.txt", "two\n")
	fill := filepath.Join(dir, "fill")
	f, err := os.Create(fill)
	testworld.Must(t, err)
	buf := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(buf)
	}
	f.Close()
	before := y.Git("rev-parse", "main")
	_, err = y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true, How: land.Squash})
	if err == nil || y.Git("rev-parse", "main") != before || y.Read("a.txt") != "one\n" || y.Git("--no-optional-locks", "status", "--porcelain") != "" {
		t.Errorf("%v\n%s", err, y.Git("--no-optional-locks", "status"))
	}
	_, err = y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true})
	if err == nil || y.Git("rev-parse", "main") != before {
		t.Errorf("forward: %v", err)
	}
	os.Remove(fill)
	y.desk.Recover(t.Context())
	if got := y.Git("--no-optional-locks", "status", "--porcelain"); got != "" {
		t.Errorf("%s\n%v", got, *y.said)
	}
	y.land("agent1", land.LandOptions{Unchecked: true})
	y.tidy()
}
