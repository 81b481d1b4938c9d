package diff_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/diff"
	"netsky/work/git"
	"netsky/work/tree"
)

type field struct {
	testworld.Repo
	t    *testing.T
	home home.Dir
	tree testworld.Repo
	w    tree.Worktree
}

func newField(t *testing.T, files ...string) field {
	t.Helper()
	f := field{Repo: testworld.NewRepo(t, filepath.Join(t.TempDir(), "src")), t: t, home: testworld.FastHome(t)}
	f.Commit("files", files...)
	r := testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
	p := testworld.Got(tree.Make(t.Context(), f.home, "agent1", r, false))(t)
	f.w, f.tree = p.Worktree, f.At(p.Dir)
	return f
}

func (f field) open(since ...string) *diff.Change {
	f.t.Helper()
	c := testworld.Got(diff.Open(f.t.Context(), f.home, f.w, since...))(f.t)
	f.t.Cleanup(func() { _ = c.Close() })
	return c
}

// told writes files as a line each, and the lines of their hunks.
func told(list []diff.File) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s %s", f.Status, f.Path)
		if f.Old != "" {
			fmt.Fprintf(&b, " from %s", f.Old)
		}
		if f.OldMode != f.NewMode && f.Status != "added" && f.Status != "deleted" {
			fmt.Fprintf(&b, " %s to %s", f.OldMode, f.NewMode)
		}
		if f.Binary {
			b.WriteString(" binary")
		}
		if f.Cut {
			b.WriteString(" cut")
		}
		fmt.Fprintf(&b, " +%d -%d\n", f.Added, f.Removed)
		for _, h := range f.Hunks {
			for _, l := range h.Lines {
				fmt.Fprintf(&b, "%d,%d%s%s", l.Old, l.New, l.Kind, l.Text)
				if l.NoEnd {
					b.WriteString("|")
				}
				b.WriteString("\n")
			}
		}
	}
	return b.String()
}

func TestFiles(t *testing.T) {
	t.Parallel()
	f := newField(t, "b.txt", "1\n2\n3\n", "old name", strings.Repeat("x\n", 30), "bin", "\x00", "gone", "g\n", "mode", "m\n", "type", "t\n")
	f.Commit("the owner goes on", "b.txt", "not to be seen")
	f.tree.Commit("committed", "b.txt", "1\n--- two\n3")
	f.tree.Git("mv", "old name", "new\nname\xff")
	f.tree.Write("untracked", "diff --git a/x b/x\n@@ -1 +1 @@\n", "bin", "\x00\x01")
	for _, err := range []error{
		os.Remove(filepath.Join(f.tree.Dir, "gone")), os.Chmod(filepath.Join(f.tree.Dir, "mode"), 0o755),
		os.Remove(filepath.Join(f.tree.Dir, "type")), os.Symlink("b.txt", filepath.Join(f.tree.Dir, "type")),
	} {
		testworld.Must(t, err)
	}
	f.tree.Git("config", "diff.suppressBlankEmpty", "true")
	f.tree.Git("config", "diff.noprefix", "true")
	f.tree.Git("config", "diff.external", "/bin/false")
	c := f.open()
	list, more, err := c.Files(t.Context())
	want := "modified b.txt +2 -2\n1,1 1\n2,0-2\n3,0-3\n0,2+--- two\n0,3+3|\n" +
		"modified bin binary +0 -0\n" +
		"deleted gone +0 -1\n1,0-g\n" +
		"modified mode 100644 to 100755 +0 -0\n" +
		"renamed new\nname\ufffd from old name +0 -0\n" +
		"type type 100644 to 120000 +1 -1\n1,0-t\n0,1+b.txt|\n" +
		"added untracked +2 -0\n0,1+diff --git a/x b/x\n0,2+@@ -1 +1 @@\n"
	if got := told(list); err != nil || more || got != want {
		t.Errorf("%v %v, got\n%s\nwant\n%s", more, err, got, want)
	}
	if list, _, err := c.Files(t.Context(), "gone"); err != nil || len(list) != 1 {
		t.Errorf("of one path: %+v, %v", list, err)
	}

	// Since a commit of the branch; not since one of another.
	if list, _, err := f.open(f.Git("rev-parse", "main"), f.w.Branch).Files(t.Context()); err != nil || len(list) != 6 {
		t.Errorf("since the last commit: %s, %v", told(list), err)
	}
	testworld.Equal(t, f.open(f.Git("rev-parse", "main")).Base, f.Git("rev-parse", "main~1"), "since another branch's")
}

// The hunks of any change turn the one file into the other.
func TestFilesApply(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range rnd.IntN(60) {
			b.WriteString([]string{"", "a", "b", "+", "-- a/x", "@@ -1 +1 @@", "\\ No newline", "diff --git a b", "\r", "\xff"}[rnd.IntN(10)])
			if rnd.IntN(30) > 0 {
				b.WriteByte('\n')
			}
		}
		return b.String()
	}
	var before, after []string
	for n := range 40 {
		name := fmt.Sprintf("f%02d", n)
		before, after = append(before, name, "0\n"+text()), append(after, name, "0\n"+text())
	}
	f := newField(t, before...)
	f.tree.Write(after...)
	list, _, err := f.open().Files(t.Context(), "f*")
	if err != nil || len(list) < 30 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	for _, file := range list {
		var n int
		testworld.Got(fmt.Sscanf(file.Path, "f%d", &n))(t)
		old := strings.SplitAfter(before[2*n+1], "\n")
		var got strings.Builder
		at := 1
		for _, h := range file.Hunks {
			for _, l := range h.Lines {
				if l.Old > 0 {
					for ; at < l.Old; at++ {
						got.WriteString(strings.ReplaceAll(old[at-1], "\xff", "\ufffd"))
					}
					at = l.Old + 1
				}
				if l.New > 0 {
					got.WriteString(l.Text)
					if !l.NoEnd {
						got.WriteByte('\n')
					}
				}
			}
		}
		for ; at <= len(old); at++ {
			got.WriteString(strings.ReplaceAll(old[at-1], "\xff", "\ufffd"))
		}
		if g, w := got.String(), strings.ReplaceAll(after[2*n+1], "\xff", "\ufffd"); g != w {
			t.Errorf("%s: got %q, want %q", file.Path, g, w)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	f := newField(t, "b.txt", "1\n2\n3\n", "bin", "\x00")
	f.tree.Write("b.txt", "one\ntwo\nthree\nfour\n", "new", "n", "empty", "")
	c := f.open()
	for _, tt := range []struct {
		file string
		n    int
		old  bool
		want string
	}{
		{"b.txt", 4, false, "2: two\n3: three\n4: four"},
		{"b.txt", 1, false, "1: one"},
		{"b.txt", 3, true, "1: 1\n2: 2\n3: 3"},
		{"new", 1, false, "1: n"},
		{"b.txt", 5, false, "no such line 5: it has 4 now"},
		{"b.txt", 4, true, "no such line 4: it has 3 before"},
		{"b.txt", 0, false, "no such line"},
		{"new", 2, false, "no such line 2: it has 1 now"},
		{"new", 1, true, "no such file before"},
		{"nothing", 1, false, "no such file now"},
		{"empty", 1, false, "no such line 1: it has 0 now"},
		{"bin", 1, false, "it is no text"},
	} {
		got, err := c.Line(t.Context(), tt.file, tt.n, tt.old)
		if err != nil {
			testworld.ErrorIs(t, err, diff.ErrNoLine)
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s:%d: %q, want %q", tt.file, tt.n, got, tt.want)
		}
	}
}

// git shows it as it shows others.
func TestShow(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.tree.Write("a.txt", "two\n", "new", "n\n")
	var out, errs bytes.Buffer
	if err := f.open().Show(t.Context(), diff.Terminal{Out: &out, Err: &errs, Options: []string{"--stat"}, Paths: []string{"new"}}); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	testworld.Contains(t, out.String(), " new | 1 +\n 1 file changed")
}

func FuzzParse(f *testing.F) {
	f.Add(":100644 100644 a b M\x00f\x00\x00diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1 @@ x\n a\n-b\n\\ No newline at end of file\n")
	f.Add(":100644 120000 a b T\x00f\x00:0 0 0 0 R1\x00a\x00b\x00\x00diff --git a/f b/f\n@@ -0,0 +1,999999999 @@\n+x")
	f.Add(":0 0 0 0 R\x00a\x00")
	f.Fuzz(func(t *testing.T, out string) {
		list, _ := diff.Parse(out)
		for _, file := range list {
			for _, h := range file.Hunks {
				if len(h.Lines) == 0 || len(h.Lines) > 5000 {
					t.Errorf("%d lines", len(h.Lines))
				}
			}
		}
	})
}
