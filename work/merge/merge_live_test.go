//go:build live

package merge_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/merge"
)

// A maker makes branches at random.
type maker struct {
	testworld.Repo
	t *testing.T
	*rand.Rand
	links []string // commits of a submodule, each the parent of the next, and one beside them
}

func text(seed int) string {
	var b strings.Builder
	for n := range 30 {
		fmt.Fprintf(&b, "line %d of %d\n", n, seed)
	}
	return b.String()
}

func (m maker) base() {
	files := []string{".gitattributes", "*.union merge=union\n"}
	for n := range 12 {
		files = append(files, fmt.Sprintf("dir%d/sub/file%d", n%4, n), text(n))
	}
	files = append(files, "bin", "\x00\x01\x02", "x.union", "a\nb\n", "run.sh", "#!/bin/sh\n")
	m.Write(files...)
	testworld.Must(m.t, os.Symlink("a.txt", filepath.Join(m.Dir, "link")))
	m.Git("submodule", "add", "-q", "../sub", "mod")
	m.Git("-C", "mod", "checkout", "-q", m.links[0])
	m.Commit("base")
}

// some returns a random file of what is checked out.
func (m maker) some() string {
	files := strings.Split(m.Git("ls-files"), "\n")
	for {
		if name := files[m.IntN(len(files))]; name != "mod" && !strings.HasPrefix(name, ".git") {
			return name
		}
	}
}

// change does one thing to what is checked out.
func (m maker) change() {
	name := m.some()
	full := filepath.Join(m.Dir, name)
	switch m.IntN(13) {
	case 0, 1, 2, 3: // edit
		lines := strings.SplitAfter(m.Read(name), "\n")
		lines[m.IntN(len(lines))] = fmt.Sprintf("edited %d\n", m.IntN(3))
		testworld.Must(m.t, os.Remove(full))
		m.Write(name, strings.Join(lines, ""))
	case 4: // remove
		m.Git("rm", "-qf", name)
	case 5: // rename, perhaps into another directory
		to := fmt.Sprintf("dir%d/renamed%d", m.IntN(5), m.IntN(3))
		if info, err := os.Stat(filepath.Join(m.Dir, filepath.Dir(to))); err == nil && !info.IsDir() {
			return
		}
		testworld.Must(m.t, os.RemoveAll(filepath.Join(m.Dir, to)))
		testworld.Must(m.t, os.MkdirAll(filepath.Join(m.Dir, filepath.Dir(to)), 0o755))
		testworld.Must(m.t, os.Rename(full, filepath.Join(m.Dir, to)))
	case 6: // rename a directory
		from, to := fmt.Sprintf("dir%d", m.IntN(4)), fmt.Sprintf("moved%d", m.IntN(2))
		if err := os.Rename(filepath.Join(m.Dir, from), filepath.Join(m.Dir, to)); err != nil && !os.IsNotExist(err) && !os.IsExist(err) {
			m.t.Fatal(err)
		}
	case 7: // binary
		testworld.Must(m.t, os.RemoveAll(filepath.Join(m.Dir, "bin")))
		m.Write("bin", fmt.Sprintf("\x00\x01%d", m.IntN(3)))
	case 8: // mode
		if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
			testworld.Must(m.t, os.Chmod(full, info.Mode().Perm()^0o111))
		}
	case 9: // a file becomes a directory
		testworld.Must(m.t, os.Remove(full))
		m.Write(name+"/inside", text(m.IntN(3)))
	case 10: // a directory becomes a file
		dir := fmt.Sprintf("dir%d", m.IntN(4))
		testworld.Must(m.t, os.RemoveAll(filepath.Join(m.Dir, dir)))
		m.Write(dir, text(m.IntN(2)))
	case 11: // new, by the same name as others
		dir := fmt.Sprintf("new%d", m.IntN(4))
		testworld.Must(m.t, os.RemoveAll(filepath.Join(m.Dir, dir)))
		m.Write(dir, text(m.IntN(3)))
	case 12: // submodule
		m.Git("-C", "mod", "checkout", "-q", m.links[m.IntN(len(m.links))])
	}
}

// merge lets git merge two commits, and returns what becomes of it.
func (m maker) merge(ours, theirs string) (want merge.Merge) {
	m.Git("checkout", "-qf", "--detach", ours)
	m.Git("clean", "-ffdqx", "-e", "mod")
	if out, err := m.Try("merge", "--no-ff", "-q", "-m", "merged", theirs); err != nil {
		if !strings.Contains(out, "CONFLICT") {
			m.t.Fatalf("git merge %s %s: %s", ours, theirs, out)
		}
		want.Conflict = true
		list := m.Git("ls-files", "-u", "-z", "--format=%(path)")
		for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "~"+theirs), "~HEAD") // a file where the other side has a directory
			if name != "" && !slices.Contains(want.Files, name) {
				want.Files = append(want.Files, name)
			}
		}
		slices.Sort(want.Files)
		m.Git("reset", "-q", "--hard")
		return want
	}
	want.Tree = m.Git("rev-parse", "HEAD^{tree}")
	return want
}

// The forecast of 210 pairs of branches is what `git merge` then does.
func TestMergesAsGit(t *testing.T) {
	t.Parallel()
	const repos, branches = 5, 7 // 42 ordered pairs each
	for n := range repos {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			mergesAsGit(t, uint64(n), branches)
		})
	}
}

func mergesAsGit(t *testing.T, seed uint64, branches int) {
	dir := t.TempDir()
	sub := testworld.NewRepo(t, filepath.Join(dir, "sub"))
	m := maker{testworld.NewRepo(t, filepath.Join(dir, "src")), t, rand.New(rand.NewPCG(seed, 13)), nil}
	for n := range 3 {
		m.links = append(m.links, sub.Commit(fmt.Sprint(n), "n", fmt.Sprint(n)))
	}
	sub.Git("checkout", "-q", "-b", "beside", m.links[0])
	m.links = append(m.links, sub.Commit("beside", "n", "beside"))
	m.base()
	base := m.Git("rev-parse", "HEAD")
	var heads []string
	for n := range branches {
		m.Git("checkout", "-qf", "--detach", base)
		m.Git("clean", "-ffdqx", "-e", "mod")
		m.Git("-C", "mod", "checkout", "-q", m.links[0])
		for range 2 + m.IntN(4) {
			m.change()
		}
		heads = append(heads, m.Commit(fmt.Sprint("branch ", n)))
	}
	var pairs []merge.Pair
	for _, ours := range heads {
		for _, theirs := range heads {
			if ours != theirs {
				pairs = append(pairs, merge.Pair{Ours: ours, Theirs: theirs})
			}
		}
	}
	m.Git("checkout", "-qf", "--detach", base)
	got := testworld.Got(merge.Merges(t.Context(), git.Dir{Path: m.Dir}, pairs))(t)
	conflicts := 0
	for i, p := range pairs {
		want := m.merge(p.Ours, p.Theirs)
		if want.Conflict {
			conflicts++
			got[i].Tree = ""
		}
		slices.Sort(got[i].Files)
		if got[i].Err != nil || got[i].Conflict != want.Conflict || got[i].Tree != want.Tree || strings.Join(got[i].Files, "\n") != strings.Join(want.Files, "\n") {
			t.Errorf("%s %s: %+v, want %+v", p.Ours, p.Theirs, got[i], want)
		}
	}
	t.Logf("%d of %d pairs conflict", conflicts, len(pairs))
	if conflicts == 0 || conflicts == len(pairs) {
		t.Error("the branches show nothing")
	}
}

// A git that is too old to take several pairs at a time comes to the same.
func TestMergesOldGit(t *testing.T) {
	real := testworld.Got(exec.LookPath("git"))(t)
	dir := t.TempDir()
	f := testworld.NewRepo(t, filepath.Join(dir, "src"))
	base := f.Git("rev-parse", "HEAD")
	x := f.Commit("x", "x", "x")
	f.Git("checkout", "-q", "-b", "y", base)
	y := f.Commit("y", "x", "y", "y", "y")
	pairs := []merge.Pair{{x, y}, {base, y}, {x, strings.Repeat("0", 40)}}
	want := testworld.Got(merge.Merges(t.Context(), git.Dir{Path: f.Dir}, pairs))(t)
	old := "#!/bin/sh\ncase \"$*\" in *--stdin*) exit 129;; esac\nexec " + real + " \"$@\"\n"
	testworld.Must(t, os.WriteFile(filepath.Join(dir, "git"), []byte(old), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	got, err := merge.Merges(t.Context(), git.Dir{Path: f.Dir}, pairs)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
