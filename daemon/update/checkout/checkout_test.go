package checkout_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/daemon/update/checkout"
	"netsky/internal/advice"
	"netsky/internal/testworld"
	"netsky/work/git"
)

// A pair is a repository, from which another was cloned.
type pair struct {
	t            *testing.T
	origin, here testworld.Repo
}

func newPair(t *testing.T) pair {
	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	origin := testworld.NewRepo(t, dir+"/origin")
	origin.Commit("second", "CHANGELOG.md", "# Changelog\n\n## 0.1.0\n\n- It is.\n", ".gitignore", "bin/\n")
	origin.Git("tag", "v0.1.0")
	origin.Git("clone", "-q", dir+"/origin", dir+"/here")
	here := origin.At(dir + "/here")
	for _, set := range [][]string{{"user.name", "Bob"}, {"user.email", "bob@example.org"}, {"maintenance.auto", "false"}} {
		here.Git("config", set[0], set[1])
	}
	return pair{t, origin, here}
}

func (p pair) look() checkout.State {
	p.t.Helper()
	return testworld.Got(checkout.Look(p.t.Context(), p.here.Dir, os.Environ()))(p.t)
}

func (p pair) fetch() checkout.Incoming {
	p.t.Helper()
	return testworld.Got(checkout.Fetch(p.t.Context(), p.look(), os.Environ()))(p.t)
}

func TestLook(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	s := p.look()
	want := checkout.State{Root: p.here.Dir, Revision: p.origin.Git("rev-parse", "HEAD"), Describe: "v0.1.0", Branch: "main", Upstream: "origin/main", Remote: true}
	testworld.Equal(t, fmt.Sprintf("%+v", s), fmt.Sprintf("%+v", want))
	p.here.Write("bin/netsky", "ignored", "new file", "", "a.txt", "two\n", "odd\nname", "")
	s = p.look()
	testworld.EqualList(t, s.Dirty, []string{"a.txt", "new file", `"odd\nname"`})
	testworld.Equal(t, s.Describe, "v0.1.0-dirty")
	for n := range 150 {
		p.here.Write(fmt.Sprint("more", n), "")
	}
	testworld.Len(t, p.look().Dirty, 100)

	p.here.Git("checkout", "-q", "-f", "-b", "mine")
	s = p.look()
	testworld.Equal(t, fmt.Sprint(s.Branch, "/", s.Upstream, s.Remote), "mine/false")
	p.here.Git("branch", "-q", "--set-upstream-to=main")
	s = p.look()
	testworld.Equal(t, fmt.Sprint(s.Branch, "/", s.Upstream, s.Remote), "mine/mainfalse")
	p.here.Git("checkout", "-q", "--detach")
	s = p.look()
	testworld.Equal(t, fmt.Sprint(s.Branch, "/", s.Upstream, s.Remote), "/false")
}

func TestLookRefuses(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	testworld.Must(t, os.Mkdir(p.here.Dir+"/sub", 0o755))
	for _, dir := range []string{p.here.Dir + "/sub", filepath.Dir(p.here.Dir)} {
		_, err := checkout.Look(t.Context(), dir, os.Environ())
		testworld.ErrorIs(t, err, git.ErrNone)
		testworld.Fails(t, err, "checkout "+dir+": ")
	}
	testworld.ErrorIs(t, testworld.Err(checkout.Look(t.Context(), p.here.Dir+"/none", os.Environ())), os.ErrNotExist)
}

// What leads git elsewhere is not believed.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	environ := append(os.Environ(), "GIT_DIR="+p.origin.Dir+"/.git", "GIT_WORK_TREE=/",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=branch.main.remote", "GIT_CONFIG_VALUE_0=none")
	s := testworld.Got(checkout.Look(t.Context(), p.here.Dir, environ))(t)
	testworld.Equal(t, s.Upstream, "origin/main")
}

func TestFetch(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	before := p.look()
	testworld.Equal(t, fmt.Sprintf("%+v", p.fetch()), fmt.Sprintf("%+v", checkout.Incoming{Revision: before.Revision}), "nothing is new")

	p.origin.Commit("third", "b.txt", "b\n")
	tip := p.origin.Commit("fourth \x1b[31mred", "CHANGELOG.md", "# Changelog\n\n## 0.2.0\n\n- It sings.\x1b[2J\n\n## 0.1.0\n\n- It is here.\n")
	p.origin.Git("tag", "-f", "v0.1.0") // it moves there, and not here
	p.origin.Git("tag", "v0.2.0")
	p.origin.Git("branch", "other")
	hooked := filepath.Join(p.here.Dir, "hooked")
	for _, hook := range []string{"reference-transaction", "post-checkout", "post-merge"} {
		testworld.Program(t, filepath.Join(p.here.Dir, ".git/hooks", hook), "#!/bin/sh\ntouch '"+hooked+"'\n")
	}
	in := p.fetch()
	testworld.Equal(t, in.Revision, tip)
	testworld.EqualList(t, in.Commits, []string{p.origin.Git("rev-parse", "--short", tip) + " fourth [31mred", p.origin.Git("rev-parse", "--short", tip+"~") + " third"})
	testworld.Equal(t, in.Changelog, "## 0.2.0\n\n- It sings.[2J\n\n- It is here.")
	testworld.Equal(t, fmt.Sprint(in.More, in.Diverged), "0 false")
	testworld.Equal(t, p.here.Git("rev-parse", "v0.1.0"), before.Revision, "the tag has moved")
	testworld.Equal(t, p.here.Git("rev-parse", "v0.2.0"), tip)
	testworld.Equal(t, p.here.Git("branch", "--remotes", "--list", "*other"), "")
	testworld.ErrorIs(t, testworld.Err(os.Stat(hooked)), os.ErrNotExist, "a hook has run")
	testworld.ErrorIs(t, testworld.Err(os.Stat(p.here.Dir+"/.git/FETCH_HEAD")), os.ErrNotExist)
	s := p.look()
	testworld.Equal(t, s.Revision, before.Revision)
	testworld.Len(t, s.Dirty, 0)

	for n := range 30 {
		p.origin.Commit(fmt.Sprint("more ", n), "b.txt", fmt.Sprint(n))
	}
	in = p.fetch()
	testworld.Len(t, in.Commits, 20)
	testworld.Equal(t, in.More, 12)
	p.here.Commit("my own", "c.txt", "")
	testworld.Equal(t, p.fetch().Diverged, true)
	p.origin.Git("reset", "-q", "--hard", before.Revision) // theirs goes back
	in = p.fetch()
	testworld.Equal(t, in.Revision, p.look().Revision, "there is nothing new")
	testworld.Equal(t, in.Diverged, false)
}

func TestFetchLocalUpstream(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.here.Git("checkout", "-q", "-b", "mine", "--track", "main")
	p.here.Git("checkout", "-q", "main")
	tip := p.here.Commit("mine", "b.txt", "b")
	p.here.Git("checkout", "-q", "mine")
	testworld.Must(t, os.RemoveAll(p.origin.Dir))
	testworld.Equal(t, p.fetch().Revision, tip)
}

func TestFetchFails(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	testworld.Must(t, os.RemoveAll(p.origin.Dir))
	_, err := checkout.Fetch(t.Context(), p.look(), os.Environ())
	testworld.Fails(t, err, "origin/main was not fetched: fatal: '"+p.origin.Dir+"' does not appear to be a git repository")
	testworld.Equal(t, advice.Of(err), "try: git -C "+p.here.Dir+" fetch")
	p = newPair(t)
	p.origin.Git("checkout", "-q", "-b", "main2")
	p.origin.Git("branch", "-q", "-D", "main")
	testworld.Fails(t, testworld.Err(checkout.Fetch(t.Context(), p.look(), os.Environ())), "couldn't find remote ref refs/heads/main")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testworld.ErrorIs(t, testworld.Err(checkout.Fetch(ctx, checkout.State{Root: p.here.Dir}, os.Environ())), context.Canceled)
}

func TestForward(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	s := p.look()
	testworld.Must(t, checkout.Forward(t.Context(), s, p.fetch(), os.Environ()), "there is nothing to do")
	tip := p.origin.Commit("third", "b.txt", "b\n")
	p.here.Write("a.txt", "mine\n", "new", "mine\n")
	p.here.Git("config", "merge.autoStash", "true")
	hooked := filepath.Join(p.here.Dir, ".git", "hooked")
	testworld.Program(t, filepath.Join(p.here.Dir, ".git/hooks/post-merge"), "#!/bin/sh\ntouch '"+hooked+"'\n")
	in := p.fetch()
	testworld.Must(t, checkout.Forward(t.Context(), s, in, os.Environ()))
	testworld.Equal(t, p.look().Revision, tip)
	testworld.Equal(t, p.here.Git("symbolic-ref", "HEAD"), "refs/heads/main")
	testworld.Equal(t, p.here.Read("a.txt")+p.here.Read("new")+p.here.Read("b.txt"), "mine\nmine\nb\n")
	testworld.Must(t, testworld.Err(os.Stat(hooked)), "the owner's hook")

	testworld.Fails(t, checkout.Forward(t.Context(), s, in, os.Environ()), "somebody has changed what is checked out")
	s = p.look()
	p.origin.Commit("fourth", "a.txt", "theirs\n")
	err := checkout.Forward(t.Context(), s, p.fetch(), os.Environ())
	testworld.Fails(t, err, "main was not moved: error: Your local changes")
	testworld.Contains(t, advice.Of(err), "commit or stash")
	testworld.Equal(t, p.look().Revision, tip)
	testworld.Equal(t, p.here.Read("a.txt"), "mine\n")
	p.here.Git("checkout", "-q", "a.txt")
	p.origin.Commit("fifth", "new", "theirs\n") // a file that git does not know here
	testworld.Fails(t, checkout.Forward(t.Context(), s, p.fetch(), os.Environ()), "was not moved: error: The following untracked working tree files")
	testworld.Equal(t, p.here.Read("new"), "mine\n")
	testworld.Equal(t, p.look().Revision, tip)
	p.here.Commit("my own", "new", "mine\n")
	err = checkout.Forward(t.Context(), p.look(), p.fetch(), os.Environ())
	testworld.Fails(t, err, "main and origin/main have diverged")
	testworld.Equal(t, advice.Of(err), "bring them together: git -C "+p.here.Dir+" rebase origin/main")
}

// Of a merge that was killed, git's lock is left, and its name said.
func TestForwardLocked(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.origin.Commit("third", "b.txt", "b\n")
	in := p.fetch()
	lock := p.here.Dir + "/.git/index.lock"
	testworld.Must(t, os.WriteFile(lock, nil, 0o644))
	testworld.Fails(t, checkout.Forward(t.Context(), p.look(), in, os.Environ()), lock)
	testworld.Must(t, os.Remove(lock))
	testworld.Must(t, checkout.Forward(t.Context(), p.look(), in, os.Environ()))
}

func TestChanges(t *testing.T) {
	const text = "# Changelog\n\nAll of it.\n\n## [Unreleased]\n\n- soon\n\n## [0.10.0] - 2026-11-27\n\n- ten\n\n### Fixed\n\n- it\n\n## 0.9.1-rc.1 (soon)\n\n- rc\n\n## 0.9.0\n\n- nine\n\n## Older\n\n- long ago\n"
	soon, ten, rc, nine := "## [Unreleased]\n\n- soon", "## [0.10.0] - 2026-11-27\n\n- ten\n\n### Fixed\n\n- it", "## 0.9.1-rc.1 (soon)\n\n- rc", "## 0.9.0\n\n- nine"
	for version, want := range map[string]string{
		"0.11.0":              soon,
		"0.10.0+v0.9-3-gabcd": soon,
		"0.9.1":               soon + "\n\n" + ten,
		"0.9.0":               soon + "\n\n" + ten + "\n\n" + rc,
		"0.1.0":               soon + "\n\n" + ten + "\n\n" + rc + "\n\n" + nine + "\n\n## Older\n\n- long ago",
	} {
		testworld.Equal(t, checkout.Changes(text, version), want, version)
	}
	testworld.Equal(t, checkout.Changes(strings.ReplaceAll(text, "[Unreleased]", "1.0.0"), "1.0.0"), "")
	testworld.Equal(t, checkout.Changes("", "1.0.0"), "")
}
