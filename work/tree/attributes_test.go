package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/tree"
)

// The attributes of a commit are read from files in a directory of their own, whatever names the commit has.
func TestAttributedOutside(t *testing.T) {
	t.Parallel()
	f := newField(t)
	made := func(text string, args ...string) string {
		f.Write("text", text)
		return f.Git(append([]string{"-c", `alias.from=!f() { git "$@" <text; }; f`, "from"}, args...)...)
	}
	blob := made("* merge=union\n", "hash-object", "-w", "--stdin")
	below := made("100644 blob "+blob+"\t.gitattributes\n", "mktree")
	name := "netsky-outside-" + filepath.Base(filepath.Dir(filepath.Dir(f.Dir)))
	above := made("040000 tree "+below+"\t"+name+"\n", "mktree")
	odd := made("040000 tree "+above+"\t..\n100644 blob "+blob+"\t.gitattributes\n", "mktree")
	commit := f.Git("commit-tree", "-m", "odd", odd)
	at, done, err := tree.Attributed(t.Context(), f.open().Look(), commit)
	testworld.Must(t, err)
	defer done()
	if _, err := os.Lstat(filepath.Join(filepath.Dir(at.Path), name)); err == nil {
		t.Errorf("%s was written beside %s: %v", name, at.Path, os.RemoveAll(filepath.Join(filepath.Dir(at.Path), name)))
	}
	if text, err := os.ReadFile(filepath.Join(at.Path, ".gitattributes")); err != nil || !strings.Contains(string(text), "merge=union") {
		t.Errorf("%q, %v", text, err)
	}
}
