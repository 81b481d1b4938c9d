package away_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/away"
	"netsky/work/git"
	"netsky/work/tree"
)

func TestMain(m *testing.M) {
	os.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Exit(m.Run())
}

const worker agent.ID = "agent3@build1"

// A pair is the owner's repository, and build1's clone of it, in which agent3 works.
type pair struct {
	*testing.T
	home   home.Dir
	here   testworld.Repo
	there  testworld.Repo
	origin testworld.Repo // from which both were cloned
	far    home.Dir
}

func mustPair(t *testing.T) pair {
	t.Helper()
	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	p := pair{T: t, home: testworld.FastHome(t), far: testworld.FastHome(t)}
	p.origin = testworld.NewRepo(t, filepath.Join(dir, "origin"))
	p.origin.Git("config", "receive.denyCurrentBranch", "ignore")
	for name, to := range map[string]*testworld.Repo{"here": &p.here, "there": &p.there} {
		p.origin.Git("clone", "-q", p.origin.Dir, filepath.Join(dir, name))
		*to = p.origin.At(filepath.Join(dir, name))
		to.Git("config", "user.name", "Ada")
		to.Git("config", "user.email", "ada@example.org")
	}
	p.there.Git("switch", "-q", "-c", "work")
	return p
}

// ask answers as build1 does.
func (p pair) ask(ctx context.Context, q away.Request, w io.Writer) (there away.There, err error) {
	there.State = agent.Idle
	r, err := away.Alone(ctx, p.there.Dir, "", &there)
	if err == nil {
		err = away.Tell(ctx, p.far, r, q, &there, w)
	}
	return there, err
}

func (p pair) begin(ask away.Ask, needs ...string) error {
	p.Helper()
	r := testworld.Got(git.Open(p.Context(), p.here.Dir, ""))(p)
	w := testworld.Got(away.Of(p.Context(), worker, r))(p)
	return away.Begin(p.Context(), p.home, w, needs, ask, func(away.There) error { return nil })
}

func (p pair) mustBring() tree.Worktree {
	p.Helper()
	testworld.Must(p, away.Bring(p.Context(), p.home, worker, p.ask))
	return testworld.Got(tree.Load(p.home, worker))(p)
}

func (p pair) brought() string { return p.here.Git("rev-parse", away.Ref(worker)) }

// What an agent commits on another host comes here, and what it has not committed is counted. What is checked out at
// either end stays as it is.
func TestBring(t *testing.T) {
	t.Parallel()
	p := mustPair(t)
	first := p.here.Git("rev-parse", "HEAD")
	testworld.Must(t, p.begin(p.ask))
	testworld.Equal(t, p.brought(), first)
	one := p.there.Commit("one", "b.txt", strings.Repeat("b\n", 1000))
	p.there.Write("c.txt", "not committed\n")
	w := p.mustBring()
	testworld.Equal(t, p.brought(), one)
	testworld.Equal(t, fmt.Sprintln(w.Base, w.Ready, w.Away.Dirty, w.Away.Branch, w.Away.Dir), fmt.Sprintln("refs/heads/main", true, 1, "refs/heads/work", p.there.Dir))
	p.mustBring()
	testworld.Equal(t, p.here.Git("status", "--porcelain", "--branch"), "## main...origin/main")
	testworld.Equal(t, p.there.Git("status", "--porcelain", "--branch"), "## work\n?? c.txt")

	p.there.Git("reset", "-q", "--hard", "HEAD^")
	two := p.there.Commit("two", "b.txt", "another\n")
	p.mustBring()
	testworld.Equal(t, p.brought(), two)
	testworld.Equal(t, p.here.Git("rev-parse", fmt.Sprintf("refs/netsky/retired/%s-%.12s", worker, one)), one)
}

// The commit that work begins at is fetched there from where both were cloned, or comes with the request.
func TestBase(t *testing.T) {
	t.Parallel()
	p := mustPair(t)
	pushed := p.here.Commit("pushed", "b.txt", "b\n")
	p.here.Git("push", "-q")
	testworld.Must(t, p.begin(p.ask))
	testworld.Equal(t, p.there.Git("rev-parse", "origin/main"), pushed, "fetched")

	own := p.here.Commit("own", "b.txt", "b\nc\n")
	testworld.Must(t, p.begin(p.ask))
	testworld.Equal(t, p.there.Git("rev-parse", "refs/netsky/base/agent3"), own)
	testworld.Equal(t, p.there.Git("status", "--porcelain", "--branch"), "## work")
	more := p.here.Commit("more", "c.txt", "c\n")
	p.mustBring()
	testworld.Equal(t, p.there.Git("rev-parse", "refs/netsky/base/agent3"), more, "what it would land on")
	p.there.Git("merge", "-q", own)
	done := p.there.Commit("done", "d.txt", "d\n")
	p.mustBring()
	testworld.Equal(t, p.brought(), done)
}

// The commits that a task builds on are brought to where its worker is, with the base or without, and stay there.
func TestNeeds(t *testing.T) {
	t.Parallel()
	p := mustPair(t)
	branch := func(name, text string) string {
		p.here.Git("switch", "-q", "-c", name)
		defer p.here.Git("switch", "-q", "main")
		return p.here.Commit(name, name+".txt", text)
	}
	record := func() []string {
		t.Helper()
		return testworld.Got(tree.Load(p.home, worker))(t).Away.Needs
	}
	one, two, elsewhere := branch("one", "1\n"), branch("two", "2\n"), strings.Repeat("e", 40)
	testworld.Must(t, p.begin(p.ask, one, elsewhere))
	testworld.EqualList(t, record(), []string{one})
	p.here.Commit("own", "b.txt", "b\n")
	testworld.Must(t, p.begin(p.ask, one, two))
	testworld.EqualList(t, record(), []string{one, two})
	p.there.Git("gc", "-q", "--prune=now")
	p.there.Git("merge", "-q", one)
	testworld.EqualList(t, p.mustBring().Away.Needs, []string{one, two})
	testworld.Contains(t, p.there.Git("merge", "-q", two, "refs/netsky/base/agent3"), "")

	big := make([]byte, away.MaxBase+1000)
	_, _ = rand.Read(big)
	err := p.begin(p.ask, branch("big", string(big)))
	testworld.Fails(t, err, "its repository lacks what its task needs")
	testworld.ErrorIs(t, err, away.ErrRefused, "final")
	err = p.begin(func(ctx context.Context, q away.Request, w io.Writer) (away.There, error) {
		there, err := p.ask(ctx, q, w)
		there.Needs = append(there.Needs, "--not-asked-for")
		return there, err
	}, one)
	testworld.Must(t, err)
	testworld.EqualList(t, record(), []string{one})
}

// Where an agent works in a repository of its own, nothing is started that its configuration or its hooks name.
func TestDoubted(t *testing.T) {
	t.Parallel()
	p := mustPair(t)
	mark := filepath.Join(t.TempDir(), "mark")
	evil := testworld.Program(t, filepath.Join(t.TempDir(), "evil"), "#!/bin/sh\necho \"$0 $*\" >> "+mark+"\nexit 1\n")
	p.there.Commit("attributes", ".gitattributes", "*.txt filter=evil\n")
	p.here.Git("pull", "-q", p.there.Dir, "work")
	for _, key := range []string{"filter.evil.clean", "core.fsmonitor", "remote.origin.uploadpack", "core.sshCommand", "uploadpack.packObjectsHook", "core.alternateRefsCommand", "credential.helper"} {
		p.there.Git("config", key, evil)
	}
	for _, hook := range []string{"reference-transaction", "post-index-change", "pre-auto-gc", "post-merge"} {
		testworld.Program(t, filepath.Join(p.there.Dir, ".git", "hooks", hook), "#!/bin/sh\necho "+hook+" >> "+mark+"\n")
	}
	p.there.Write("a.txt", "changed\n")
	os.Remove(mark)
	p.here.Commit("pushed", "b.txt", "b\n")
	p.here.Git("push", "-q")
	testworld.Must(t, p.begin(p.ask))
	p.here.Commit("own", "b.txt", "b\nc\n")
	testworld.Must(t, p.begin(p.ask))
	testworld.Equal(t, p.mustBring().Away.Dirty, 1)
	said, _ := os.ReadFile(mark)
	testworld.Equal(t, string(said), "", "what was started")
}

// Without a commit in common nothing crosses.
func TestUnrelated(t *testing.T) {
	t.Parallel()
	p := mustPair(t)
	p.there = p.there.At(t.TempDir())
	p.there.Git("init", "-q")
	p.there.Git("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "other")
	err := p.begin(p.ask)
	testworld.Fails(t, err, "has no commit in common")
	testworld.ErrorIs(t, err, away.ErrRefused, "final")
	p.there = p.there.At(t.TempDir())
	testworld.Fails(t, p.begin(p.ask), "works in no git repository")
	if _, err := tree.Load(p.home, worker); err == nil {
		t.Error("it is on record")
	}
}

// A crash between the ref and the record leaves what the next look completes.
func TestKilled(t *testing.T) {
	p := mustPair(t)
	testworld.Must(t, p.begin(p.ask))
	one := p.there.Commit("one", "b.txt", "b\n")
	p.there.Write("c.txt", "not committed\n")
	away.SetStep(func() { panic("killed") })
	func() {
		defer func() { _ = recover() }()
		_ = away.Bring(t.Context(), p.home, worker, p.ask)
	}()
	away.SetStep(func() {})
	testworld.Equal(t, p.brought(), one)
	testworld.Equal(t, p.mustBring().Away.Dirty, 1)
}

// What a hostile host sends is not taken: the ref, the objects and the record stay as they are.
func TestHostile(t *testing.T) {
	t.Parallel()
	p := mustPair(t)
	testworld.Must(t, p.begin(p.ask))
	blob := func(text string) string {
		p.there.Write("x", text)
		return p.there.Git("hash-object", "-w", "x")
	}
	object := func(kind, text string) string {
		p.there.Write("x", text)
		return p.there.Git("hash-object", "-w", "-t", kind, "--literally", "x")
	}
	entry := func(mode, name, id string) string {
		raw := make([]byte, 20)
		for i := range raw {
			fmt.Sscanf(id[2*i:2*i+2], "%02x", &raw[i])
		}
		return mode + " " + name + "\x00" + string(raw)
	}
	commit := func(tree string) string {
		return object("commit", "tree "+tree+"\nparent "+p.there.Git("rev-parse", "HEAD")+"\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n")
	}
	packed := func(ids ...string) []byte {
		p.there.Write("x", strings.Join(ids, "\n")+"\n")
		p.there.Git("config", "alias.p", "!git pack-objects -q --stdout < x > y")
		p.there.Git("p")
		return []byte(p.there.Read("y"))
	}
	hello := blob("hello\n")
	good := object("tree", entry("100644", "b.txt", hello))
	bomb := object("tree", entry("100644", "0", hello)+entry("100644", "1", hello)+entry("100644", "2", hello)+entry("100644", "3", hello))
	bombs := []string{bomb}
	for range 11 {
		bomb = object("tree", entry("40000", "0", bomb)+entry("40000", "1", bomb)+entry("40000", "2", bomb)+entry("40000", "3", bomb))
		bombs = append(bombs, bomb)
	}
	inGit := object("tree", entry("100644", "config", hello))
	inGit2 := object("tree", entry("40000", ".git", inGit))
	zeros := blob(strings.Repeat("\x00", 40<<20))
	large := ""
	for i := range 30 {
		large += entry("100644", fmt.Sprint("f", 10+i), zeros)
	}
	large = object("tree", large)
	whole := packed(commit(good), good, hello)
	count := p.here.Git("count-objects", "-v")
	record := testworld.Got(os.ReadFile(p.home.Path(tree.Dirname, string(worker)+".json")))(t)
	for _, tt := range []struct {
		name, head string
		pack       []byte
	}{
		{"an option for a commit", "--upload-pack=touch", whole},
		{"a name for a commit", "refs/heads/main", whole},
		{"no pack at all", commit(good), nil},
		{"another pack", commit(good), []byte("#!/bin/sh\n")},
		{"half a pack", commit(good), whole[:len(whole)/2]},
		{"a changed pack", commit(good), append(bytes.Clone(whole[:len(whole)-30]), make([]byte, 30)...)},
		{"a tree for a commit", good, whole},
		{"a commit without its files", commit(good), packed(commit(good), good)},
		{"a commit without its tree", commit(good), packed(commit(good))},
		{"files of git's own", commit(inGit2), packed(commit(inGit2), inGit2, inGit, hello)},
		{"a way out of the worktree", commit(object("tree", entry("100644", "../x", hello))), packed(commit(object("tree", entry("100644", "../x", hello))), object("tree", entry("100644", "../x", hello)), hello)},
		{"millions of files", commit(bomb), packed(append(bombs, commit(bomb), hello)...)},
		{"gigabytes of files", commit(large), packed(commit(large), large, zeros)},
		{"more than crosses", commit(good), make([]byte, away.MaxPack+1)},
	} {
		err := away.Bring(t.Context(), p.home, worker, func(ctx context.Context, q away.Request, w io.Writer) (away.There, error) {
			there := away.There{State: agent.Idle, Dir: "/x", Branch: "refs/heads/work", Head: tt.head, Common: q.Have[0]}
			_, err := w.Write(tt.pack)
			return there, err
		})
		if !errors.Is(err, away.ErrRefused) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	testworld.Equal(t, p.here.Git("count-objects", "-v"), count)
	testworld.Equal(t, p.brought(), p.here.Git("rev-parse", "HEAD"))
	testworld.Equal(t, string(testworld.Got(os.ReadFile(p.home.Path(tree.Dirname, string(worker)+".json")))(t)), string(record))
	left, _ := os.ReadDir(p.home.Path(git.ScratchDirname))
	testworld.Equal(t, len(left), 0, "scratch")
}
