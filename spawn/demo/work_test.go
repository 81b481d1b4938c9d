package demo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/tree"
)

// worktree has the agent work in a worktree of a repository with the file a.txt.
func (w *world) worktree(id agent.ID) (own testworld.Repo, top string) {
	w.Helper()
	repo := testworld.NewRepo(w, filepath.Join(w.TempDir(), "src"))
	r := testworld.Got(git.Open(w.ctx, repo.Dir, ""))(w)
	p := testworld.Got(tree.Make(w.ctx, w.home, id, r, false))(w)
	testworld.Got(tree.PrepareHooks(w.ctx, w.home, id, r, nil))(w)
	testworld.Must(w, w.home.SaveLaunch(agent.Launch{Agent: id, Runtime: "demo", Dir: p.Dir}))
	return repo.At(p.Dir), repo.Dir
}

// A demo edits and commits in its worktree, and nowhere else.
func TestWork(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	own, top := w.worktree("agent1")
	outside := filepath.Join(t.TempDir(), "outside")
	testworld.Must(t, os.WriteFile(outside, []byte("mine\n"), 0o600))
	testworld.Must(t, os.Symlink(outside, filepath.Join(own.Dir, "link")))
	testworld.Must(t, os.Symlink(top, filepath.Join(own.Dir, "up")))
	testworld.Must(t, os.Link(outside, filepath.Join(own.Dir, "other-name")))
	testworld.NewRepo(t, filepath.Join(own.Dir, "nested"))
	own.Write("no-end", "a", "d/b.txt", "b\n", ".gitignore", "*.log\nnested\nlink\nup\nother-name\nno-end\nd\n.gitignore\n")
	w.play("agent1")
	for _, tt := range []struct{ text, words string }{ // an answer that begins with "/" is an error
		{"/commit", "agent1 (demo): nothing to commit"},
		{"/edit a.txt two  words", "agent1 (demo) added a line to a.txt; /commit commits it"},
		{"/edit ./new.txt n", "added a line to new.txt"},
		{"/edit no-end z", "added a line to no-end"},
		{"/commit a message", "agent1 (demo) committed "},
		{"/commit", "nothing to commit"},
		{"/edit a.txt 3", "added a line"},
		{"/commit", "on netsky/agent1"},
		{"/edit x.log ignored", "added a line"},
		{"/commit", "nothing to commit"},
		{"/edit a.txt", "/edit: no file or no text"},
		{"/edit", "/edit: no file or no text"},
		{"/edit ../x y", "/edit: ../x: not a file of the worktree"},
		{"/edit " + outside + " y", "not a file of the worktree"},
		{"/edit .git y", "not a file of the worktree"},
		{"/edit .GIT/config y", "not a file of the worktree"},
		{"/edit . y", "/edit: "},
		{"/edit d y", "/edit: "},
		{"/edit none/of/x y", "added a line to none/of/x"},
		{"/edit a.txt/x y", "/edit: "},
		{"/edit link y", "/edit: link: is a symbolic link"},
		{"/edit up/a.txt y", "/edit: "},
		{"/edit other-name y", "/edit: other-name: not a file with one name"},
		{"/edit nested/a.txt y", "/edit: nested: not in agent1's worktree"},
	} {
		kind := envelope.KindReply
		if strings.HasPrefix(tt.words, "/") || strings.Contains(tt.words, "not a file of") {
			kind = envelope.KindError
		}
		w.answered(w.tell("agent1", tt.text), kind, tt.words)
	}
	testworld.Equal(t, own.Read("a.txt")+own.Read("new.txt")+own.Read("no-end")+own.Read("none/of/x"), "one\ntwo  words\n3\nn\na\nz\ny\n", "the files")
	testworld.Equal(t, own.Git("log", "--format=%s,%(trailers:only,separator=)", "--name-only", "main.."), "Edit a.txt,Netsky-Agent: agent1\n\na.txt\na message,Netsky-Agent: agent1\n\na.txt\nnew.txt", "the commits")
	testworld.Equal(t, testworld.Repo{}.At(top).Read("a.txt"), "one\n", "the owner's file")
	testworld.Equal(t, string(testworld.Got(os.ReadFile(outside))(t)), "mine\n", "the file outside")
}

// Where it works in a directory of the owner's, a demo changes nothing, also if a worktree is there for it.
func TestWorkElsewhere(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	_, top := w.worktree("agent1")
	testworld.Must(t, w.home.SaveLaunch(agent.Launch{Agent: "agent1", Runtime: "demo", Dir: top}))
	w.play("agent1")
	for _, text := range []string{"/edit a.txt two", "/commit"} {
		w.answered(w.tell("agent1", text), envelope.KindError, "agent1 works in "+top+", which is no git worktree of its own, and a demo agent changes no file of yours")
	}
	testworld.Equal(t, testworld.Repo{}.At(top).Read("a.txt"), "one\n", "the file")
}
