package tree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/tree"
)

// A world is a repository, and an agent whose git has the hooks.
type world struct {
	testworld.Repo
	t    *testing.T
	home home.Dir
	env  []string
}

func newWorld(t *testing.T, id agent.ID) *world {
	t.Helper()
	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	w := &world{Repo: testworld.NewRepo(t, filepath.Join(dir, "it's src")), t: t, home: testworld.FastHome(t)}
	w.env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	w.prepare(id)
	return w
}

func (w *world) prepare(id agent.ID) {
	w.t.Helper()
	r := testworld.Got(git.Open(w.t.Context(), w.Dir, ""))(w.t)
	w.env = testworld.Got(tree.PrepareHooks(w.t.Context(), w.home, id, r, w.env))(w.t)
}

// git is what the agent runs.
func (w *world) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = w.Dir, w.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *world) must(args ...string) {
	w.t.Helper()
	if out, err := w.git(args...); err != nil {
		w.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func (w *world) script(name, text string) {
	w.t.Helper()
	w.Write(name, "#!/bin/sh\n"+text+"\n")
	testworld.Must(w.t, os.Chmod(filepath.Join(w.Dir, name), 0o755))
}

// last returns the last commit's message and trailers.
func (w *world) last() string {
	w.t.Helper()
	return w.Git("log", "-1", "--format=%an|%s|%(trailers:only,unfold,separator=%x2C)")
}

func TestCommits(t *testing.T) {
	t.Parallel()
	const named = "|Netsky-Agent: agent3"
	for _, tt := range []struct {
		name string
		do   func(w *world)
		want string
	}{
		{"a commit", func(w *world) { w.must("commit", "-q", "--allow-empty", "-m", "hello") }, "Ada|hello" + named},
		{"with other trailers", func(w *world) { w.must("commit", "-q", "--allow-empty", "-m", "hello\n\nSigned-off-by: Ada <a@b>") },
			"Ada|hello|Signed-off-by: Ada <a@b>,Netsky-Agent: agent3"},
		{"in an editor", func(w *world) {
			w.script("edit", `text=$(cat "$1"); printf 'from the editor%s' "$text" > "$1"`)
			w.must("-c", "core.editor=./edit", "commit", "-q", "--allow-empty")
		}, "Ada|from the editor" + named},
		{"nothing typed", func(w *world) {
			if out, err := w.git("-c", "core.editor=true", "commit", "--allow-empty"); err == nil {
				w.t.Errorf("a commit without a message: %s", out)
			}
		}, "Ada|first|"},
		{"amended", func(w *world) {
			w.must("commit", "-q", "--allow-empty", "-m", "hello")
			w.must("commit", "-q", "--allow-empty", "--amend", "-m", "again")
			w.must("commit", "-q", "--allow-empty", "--amend", "--no-edit")
		}, "Ada|again" + named},
		{"hooks skipped", func(w *world) { w.must("commit", "-q", "--no-verify", "--allow-empty", "-m", "hello") }, "Ada|hello" + named},
		{"a merge", func(w *world) {
			w.must("switch", "-qc", "other", "HEAD")
			w.must("commit", "-q", "--allow-empty", "-m", "theirs")
			w.must("switch", "-q", "main")
			w.must("merge", "-q", "--no-ff", "-m", "both", "other")
		}, "Ada|both" + named},
		{"the owner's commit, picked", func(w *world) {
			w.Git("switch", "-qc", "other")
			w.Commit("the owner's", "b.txt", "b")
			w.must("switch", "-q", "main")
			w.must("cherry-pick", "other")
		}, "Ada|the owner's|"},
		{"the owner's commit, rebased", func(w *world) {
			w.Git("switch", "-qc", "other")
			w.Commit("the owner's", "b.txt", "b")
			w.Git("switch", "-q", "main")
			w.Commit("meanwhile", "c.txt", "c")
			w.must("rebase", "-q", "main", "other")
		}, "Ada|the owner's|"},
		{"from a directory below", func(w *world) {
			w.Write("sub/x", "x")
			w.must("add", "-A")
			w.must("-C", "sub", "commit", "-q", "-m", "below")
		}, "Ada|below" + named},
		{"after another start", func(w *world) {
			w.prepare("agent4")
			w.prepare("agent3")
			w.must("commit", "-q", "--allow-empty", "-m", "hello")
		}, "Ada|hello" + named},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "agent3")
			tt.do(w)
			testworld.Equal(t, w.last(), tt.want)
			if got := w.Git("config", "--local", "--list"); strings.Contains(got, "hooks") || strings.Contains(got, "netsky") {
				t.Errorf("the repository's configuration: %s", got)
			}
		})
	}
}

// The hooks of the repository run as if there were no others.
func TestOwnHooks(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".git/hooks", ".husky/_"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "agent3")
			if dir != ".git/hooks" {
				w.Git("config", "core.hooksPath", dir)
			}
			w.script(dir+"/pre-commit", `echo pre "$#" >> "$(git rev-parse --git-dir)/ran"`)
			w.script(dir+"/prepare-commit-msg", `echo prepare "$#" >> "$(git rev-parse --git-dir)/ran"; echo "Ticket: 7" >> "$1"`)
			w.script(dir+"/commit-msg", `grep -q '^Netsky-Agent: agent3$' "$1" && echo msg >> "$(git rev-parse --git-dir)/ran"; ! grep -q bad "$1"`)
			w.script(dir+"/post-commit", `echo post >> "$(git rev-parse --git-dir)/ran"`)
			w.script(dir+"/pre-push", `cat >> .git/ran`)
			w.must("commit", "-q", "--allow-empty", "-m", "good")
			if got, want := w.Read(".git/ran"), "pre 0\nprepare 2\nmsg\npost\n"; got != want {
				t.Errorf("ran %q, want %q", got, want)
			}
			if out, err := w.git("commit", "--allow-empty", "-m", "bad"); err == nil {
				t.Errorf("a commit that commit-msg refuses: %s", out)
			}
			w.script(dir+"/prepare-commit-msg", "exit 3")
			if out, err := w.git("commit", "--allow-empty", "-m", "good"); err == nil {
				t.Errorf("a commit that prepare-commit-msg refuses: %s", out)
			}
			bare := filepath.Join(t.TempDir(), "bare.git")
			w.Git("init", "-q", "--bare", bare)
			w.must("push", "-q", bare, "main")
			testworld.Contains(t, w.Read(".git/ran"), "refs/heads/main", "pre-push was given")
			w.script(dir+"/reference-transaction", `echo "ref $1" >> .git/refs-moved`)
			w.prepare("agent3")
			w.must("branch", "x")
			testworld.Contains(t, w.Read(".git/refs-moved"), "ref committed", "reference-transaction")
		})
	}
}
