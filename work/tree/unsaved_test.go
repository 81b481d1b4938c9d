package tree_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/work/tree"
)

// A ground is a home with repositories in it, and one elsewhere.
type ground struct {
	t    *testing.T
	dir  string // of all
	root string // of the walk
}

func newGround(t *testing.T) ground {
	t.Helper()
	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	g := ground{t, dir, filepath.Join(dir, "home")}
	g.mkdir("home/workspaces/agent1")
	g.git("", "init", "-q", "--bare", "-b", "main", "remote.git")
	g.git("", "clone", "-q", "remote.git", "seed")
	g.write("seed/a.txt", "one")
	g.write("seed/.gitignore", "*.log\n")
	g.git("seed", "add", ".")
	g.git("seed", "commit", "-qm", "one")
	g.git("seed", "push", "-q", "origin", "HEAD:main")
	return g
}

func (g ground) mkdir(name string) {
	g.t.Helper()
	testworld.Must(g.t, os.MkdirAll(filepath.Join(g.dir, name), 0o700))
}

func (g ground) write(name, text string) {
	g.t.Helper()
	testworld.Must(g.t, os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600))
}

func (g ground) git(dir string, args ...string) {
	g.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Join(g.dir, dir)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org", "GIT_ALLOW_PROTOCOL=file")
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

const work = "home/workspaces/agent1"

func TestFind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		setup func(g ground)
		want  []string // parts of what is found, "DIR: WHY" with DIR below the ground
	}{
		{"nothing", func(g ground) {}, nil},
		{"a clean clone", func(g ground) { g.git(work, "clone", "-q", "../../../remote.git", "p") }, nil},
		{"ignored files", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.write(work+"/p/x.log", "noise")
		}, []string{work + "/p: holds x.log, which git ignores"}},
		{"an ignored file in a directory", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.mkdir(work + "/p/conf")
			g.write(work+"/p/conf/x.log", "noise")
		}, []string{work + "/p: holds conf/x.log, which git ignores"}},
		{"a file taken as unchanged", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "update-index", "--assume-unchanged", "a.txt")
			g.write(work+"/p/a.txt", "two")
		}, []string{work + "/p: holds a.txt, which is changed"}},
		{"a file that is skipped", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "update-index", "--skip-worktree", "a.txt")
			g.write(work+"/p/a.txt", "two")
		}, []string{work + "/p: holds a.txt, which is changed"}},
		{"a file that is skipped, and the same", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "update-index", "--skip-worktree", "a.txt")
		}, nil},
		{"a file that is skipped, and not there", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "update-index", "--skip-worktree", "a.txt")
			os.Remove(filepath.Join(g.dir, work, "p/a.txt"))
		}, nil},
		{"a changed file", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.write(work+"/p/a.txt", "two")
		}, []string{work + "/p: holds work that is not committed: M a.txt"}},
		{"a new file", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.write(work+"/p/b.txt", "new")
		}, []string{work + "/p: holds work that is not committed: ?? b.txt"}},
		{"stashed", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.write(work+"/p/a.txt", "two")
			g.git(work+"/p", "stash", "-q")
		}, []string{work + "/p: holds stashed work"}},
		{"not pushed", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "commit", "-q", "--allow-empty", "-m", "two")
		}, []string{work + "/p: holds commits that are on no remote, such as "}},
		{"not pushed, on another branch", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "checkout", "-qb", "idea")
			g.git(work+"/p", "commit", "-q", "--allow-empty", "-m", "two")
			g.git(work+"/p", "checkout", "-q", "main")
		}, []string{work + "/p: holds commits that are on no remote, such as "}},
		{"not pushed, on no branch", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "checkout", "-q", "--detach")
			g.git(work+"/p", "commit", "-q", "--allow-empty", "-m", "two")
		}, []string{work + "/p: holds commits that are on no remote, such as "}},
		{"pushed", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "commit", "-q", "--allow-empty", "-m", "two")
			g.git(work+"/p", "push", "-q", "origin", "HEAD:main")
		}, nil},
		{"without a remote", func(g ground) {
			g.git(work, "init", "-q", "p")
			g.git(work+"/p", "commit", "-q", "--allow-empty", "-m", "one")
		}, []string{work + "/p: holds commits that are on no remote, such as "}},
		{"without a commit", func(g ground) { g.git(work, "init", "-q", "p") }, nil},
		{"bare", func(g ground) { g.git(work, "clone", "-q", "--bare", "../../../remote.git", "p.git") },
			[]string{work + "/p.git: holds commits that are on no remote, such as "}},
		{"anywhere below", func(g ground) {
			g.mkdir("home/my/own")
			g.git("home/my/own", "init", "-q")
			g.write("home/my/own/x", "")
		}, []string{"home/my/own: holds work that is not committed: ?? x"}},
		{"a repository in an ignored directory of a repository", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.mkdir(work + "/p/in.log")
			g.git(work+"/p/in.log", "init", "-q")
			g.write(work+"/p/in.log/x", "")
		}, []string{work + "/p/in.log: holds work that is not committed: ?? x"}},
		{"a clean worktree of a repository elsewhere", func(g ground) {
			g.git("seed", "worktree", "add", "-q", "-b", "netsky/agent1", "../"+work)
		}, nil},
		{"a worktree with a new file", func(g ground) {
			g.git("seed", "worktree", "add", "-q", "-b", "netsky/agent1", "../"+work)
			g.write(work+"/x", "")
		}, []string{work + ": holds work that is not committed: ?? x"}},
		{"a worktree with commits of its own", func(g ground) {
			g.git("seed", "worktree", "add", "-q", "-b", "netsky/agent1", "../"+work)
			g.git(work, "commit", "-q", "--allow-empty", "-m", "two")
		}, []string{work + ": holds commits that are on no remote and no other branch, such as "}},
		{"a worktree on no branch with commits of its own", func(g ground) {
			g.git("seed", "worktree", "add", "-q", "--detach", "../"+work)
			g.git(work, "commit", "-q", "--allow-empty", "-m", "two")
		}, []string{work + ": holds commits that are on no remote and no other branch, such as "}},
		{"a worktree whose commits were taken over", func(g ground) {
			g.git("seed", "worktree", "add", "-q", "-b", "netsky/agent1", "../"+work)
			g.git(work, "commit", "-q", "--allow-empty", "-m", "two")
			g.git("seed", "merge", "-q", "netsky/agent1")
		}, nil},
		{"a worktree whose repository is gone", func(g ground) {
			g.git("seed", "worktree", "add", "-q", "-b", "netsky/agent1", "../"+work)
			testworld.Must(g.t, os.RemoveAll(filepath.Join(g.dir, "seed")))
		}, []string{work + ": is a git repository that git can't read"}},
		{"a damaged repository in a whole one", func(g ground) {
			g.git("", "init", "-q", "home") // what git would find above
			g.write("home/.git/info/exclude", "*\n")
			g.mkdir(work + "/p/.git")
			g.write(work+"/p/x", "")
		}, []string{work + "/p: is a git repository that git can't read"}},
		{"a repository of a worktree elsewhere", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "worktree", "add", "-q", "--detach", "../../../../out")
		}, []string{work + "/p: is the repository of the worktree "}},
		{"a submodule with commits of its own", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "submodule", "--quiet", "add", "../remote.git", "sub")
			g.git(work+"/p", "commit", "-qm", "two")
			g.git(work+"/p", "push", "-q", "origin", "HEAD:main")
			g.git(work+"/p/sub", "commit", "-q", "--allow-empty", "-m", "two")
		}, []string{work + "/p: holds work that is not committed: M sub", work + "/p/sub: holds commits that are on no remote, such as "}},
		{"behind a link", func(g ground) {
			testworld.Must(g.t, os.Symlink(filepath.Join(g.dir, "seed"), filepath.Join(g.dir, "home/linked")))
			g.write("seed/x", "")
		}, nil},
		{"a file in no repository", func(g ground) { g.write(work+"/notes.txt", "") },
			[]string{work + ": holds notes.txt, which is in no git repository"}},
		{"a file beside a repository", func(g ground) {
			g.mkdir(work + "/a/b")
			g.git(work+"/a", "clone", "-q", "../../../../remote.git", "p")
			g.write(work+"/a/b/notes.txt", "")
		}, []string{work + ": holds a/b/notes.txt, which is in no git repository"}},
		{"an empty directory", func(g ground) { g.mkdir(work + "/project") },
			[]string{work + ": holds project, which is in no git repository"}},
		{"a file elsewhere", func(g ground) { g.write("home/notes.txt", "") }, nil},
		{"a program in the repository's configuration", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			g.git(work+"/p", "config", "core.fsmonitor", "touch "+filepath.Join(g.dir, "ran"))
		}, nil},
		{"a filter in the repository's configuration", func(g ground) {
			g.git(work, "clone", "-q", "../../../remote.git", "p")
			for _, key := range []string{"filter.x.clean", "filter.x.process", "filter.a=b.clean"} {
				g.git(work+"/p", "config", key, "touch "+filepath.Join(g.dir, "ran"))
			}
			g.git(work+"/p", "config", "filter.x.required", "true")
			g.write(work+"/p/.git/info/attributes", "*.txt filter=x\n.gitignore filter=a=b\n")
			g.write(work+"/p/a.txt", "two")
		}, []string{work + "/p: holds work that is not committed: M a.txt"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			tt.setup(g)
			found, _, err := tree.Find(t.Context(), g.root, filepath.Join(g.dir, work))
			testworld.Must(t, err)
			ok := len(found) == len(tt.want)
			for i := range min(len(found), len(tt.want)) {
				ok = ok && strings.HasPrefix(strings.TrimPrefix(found[i].String(), g.dir+"/"), tt.want[i])
			}
			if !ok {
				t.Errorf("Find() = %q, want %q", found, tt.want)
			}
			testworld.Fails(t, testworld.Err(os.Lstat(filepath.Join(g.dir, "ran"))), "", "a program that the repository names was run")
		})
	}
}

func TestFindEnds(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := tree.Find(ctx, g.root); err == nil {
		t.Error("a walk that was cut short found nothing, and no error")
	}
	if found, _, err := tree.Find(t.Context(), filepath.Join(g.dir, "absent")); len(found) > 0 || err != nil {
		t.Errorf("Find(absent) = %v, %v", found, err)
	}
}

func TestFindNamesIgnoredDirectories(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.write("seed/.gitignore", "*.key\nnode_modules/\n")
	g.git("seed", "commit", "-qam", "ignore")
	g.git("seed", "push", "-q", "origin", "HEAD:main")
	g.git(work, "clone", "-q", "../../../remote.git", "p")
	g.mkdir(work + "/p/node_modules/x")
	g.write(work+"/p/node_modules/x/index.js", "")
	found, ignored, err := tree.Find(t.Context(), g.root, filepath.Join(g.dir, work))
	want := filepath.Join(g.dir, work, "p/node_modules") + "/"
	if err != nil || len(found) > 0 || len(ignored) != 1 || ignored[0] != want {
		t.Errorf("Find() = %q, %q, %v; want the ignored %s", found, ignored, err, want)
	}
	g.write(work+"/p/a.key", "") // is kept, and hides nothing
	found, ignored, err = tree.Find(t.Context(), g.root, filepath.Join(g.dir, work))
	if err != nil || len(found) != 1 || len(ignored) != 1 || ignored[0] != want {
		t.Errorf("Find() = %q, %q, %v; want a.key, and the ignored %s", found, ignored, err, want)
	}
}

// Of what git was told not to look at, a pipe is waited for by nobody, and a link is not followed.
func TestHiddenOdd(t *testing.T) {
	t.Parallel()
	f := newField(t)
	for _, err := range []error{syscall.Mkfifo(f.Dir+"/pipe", 0o600), os.Symlink("pipe", f.Dir+"/link"), os.Symlink("pipe", f.Dir+"/other")} {
		testworld.Must(f.t, err)
	}
	f.Git("add", "link", "other")
	f.Commit("links", ".gitignore", "pipe\n")
	f.Git("update-index", "--skip-worktree", "link", "other")
	ctx, done := context.WithTimeout(t.Context(), 30*time.Second) // a git that waits is ended after a minute
	defer done()
	testworld.Equal(t, testworld.Got(tree.Hidden(ctx, f.open().Look()))(t), "", "links as they are committed")
	testworld.Must(f.t, os.Remove(f.Dir+"/other"))
	testworld.Must(f.t, os.Symlink("pipe2", f.Dir+"/other"))
	testworld.Equal(t, testworld.Got(tree.Hidden(ctx, f.open().Look()))(t), "other", "another link")
	f.Git("update-index", "--no-skip-worktree", "other")
	f.Git("update-index", "--assume-unchanged", "a.txt")
	testworld.Must(f.t, os.Remove(f.Dir+"/a.txt"))
	testworld.Must(f.t, syscall.Mkfifo(f.Dir+"/a.txt", 0o600))
	if file, err := tree.Hidden(ctx, f.open().Look()); file != "a.txt" || err != nil || ctx.Err() != nil {
		t.Errorf("a pipe: %q, %v, %v", file, err, ctx.Err())
	}
}
