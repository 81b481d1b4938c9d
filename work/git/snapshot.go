// This file makes a tree of what is in a worktree: the last commit with all that is not
// committed yet, new files included.
//
// It touches neither the worktree nor its index nor the repository's objects: git works on a copy of
// the index, and writes into a scratch directory that borrows the repository's objects. So a commit
// or tree made here exists for a git that is given the scratch's environment, and for no other. A
// crash leaves the scratch directory, which Sweep removes once it is old.
//
// What changes while a snapshot is made may be in it or not. It knows nothing of files that git was
// told to take for unchanged.

package git

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"netsky/home"
)

// ScratchDirname is where scratch directories are, below the home.
const ScratchDirname = home.RunDir + "/scratch"

// Bounds of what is read of a worktree for a snapshot.
const (
	maxFiles = 20_000
	maxFile  = 128 << 20 // of one that is larger, and new, nothing is read
	maxBytes = 1 << 30
)

// ErrTooMuch is returned for a worktree with more that is not committed than can be looked at.
var ErrTooMuch = errors.New("too much is not committed")

// A Scratch is a directory for objects of one repository.
type Scratch struct {
	dir     string
	env     []string
	written atomic.Int64 // bytes
	most    int64        // that should be
}

// OpenScratch makes a scratch directory for objects of the repository whose git directory that is. The
// caller must Close it.
func OpenScratch(h home.Dir, common string) (*Scratch, error) {
	parent, err := h.OpenDir(ScratchDirname, true)
	if err != nil {
		return nil, err
	}
	parent.Close()
	dir, err := os.MkdirTemp(h.Path(ScratchDirname), "git-")
	if err != nil {
		return nil, err
	}
	s := &Scratch{dir: dir, most: maxBytes}
	objects := filepath.Join(dir, "objects")
	if err := os.Mkdir(objects, 0o700); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.env = []string{"GIT_OBJECT_DIRECTORY=" + objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quote(filepath.Join(common, "objects"))}
	return s, nil
}

// Close removes the directory.
func (s *Scratch) Close() error { return os.RemoveAll(s.dir) }

// Full reports whether so much was written into the directory, in the files' own size, that it should be
// closed and another one opened: what earlier snapshots had stays there.
func (s *Scratch) Full() bool { return s.written.Load() > s.most }

// Env returns the variables by which a git finds the objects that were made here.
func (s *Scratch) Env() []string { return s.env }

// quote writes a path so that git takes no character of it for a separator.
func quote(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		if c := path[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			fmt.Fprintf(&b, "\\%03o", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// SweepScratch removes scratch directories that a crash has left, if they were made before then.
func SweepScratch(h home.Dir, before time.Time) (err error) {
	list, err := os.ReadDir(h.Path(ScratchDirname))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if info, ierr := e.Info(); ierr == nil && e.IsDir() && info.ModTime().Before(before) {
			err = errors.Join(err, os.RemoveAll(h.Path(ScratchDirname, e.Name())))
		}
	}
	return err
}

// A Uncommitted is what is in a worktree.
type Uncommitted struct {
	Head  string `json:"head"`  // the commit that is checked out
	Out   string `json:"out"`   // the branch that is checked out, a full ref name; "" if HEAD is detached
	Dirty int    `json:"dirty"` // files that differ from it, or are new
	// Print changes with anything that is not committed, or checked out.
	Print string `json:"print"`
	// Commit is Head if nothing differs from it. Otherwise it is in the scratch, with its Tree, and
	// follows Head; Look leaves both empty then.
	Commit string `json:"commit,omitempty"`
	Tree   string `json:"tree,omitempty"` // of a Commit in the scratch
	// Left are new files that are not in Tree: too large, unreadable, or repositories of their own.
	Left []string `json:"left,omitempty"`

	changed []string // what git has to read again
	bytes   int64
}

// LookUncommitted says what is in the worktree whose root that is. It reads no file.
func LookUncommitted(ctx context.Context, r Repo) (w Uncommitted, err error) {
	out, err := r.Look().List(ctx, "status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
	if err != nil {
		return w, fmt.Errorf("git status: %w", err)
	}
	sum := sha256.New()
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if head, ok := strings.CutPrefix(entry, "# "); ok {
			w.header(head)
			continue
		}
		if entry == "" {
			continue
		}
		if w.Dirty++; w.Dirty > maxFiles {
			return w, fmt.Errorf("%w: more than %d files", ErrTooMuch, maxFiles)
		}
		fmt.Fprintf(sum, "%s\x00", entry)
		w.entry(r.Top, entry, sum)
	}
	if w.Head == "" {
		return w, ErrUnborn
	}
	fmt.Fprintf(sum, "%s %s", w.Head, w.Out)
	w.Print = hex.EncodeToString(sum.Sum(nil))
	if w.bytes > maxBytes {
		return w, fmt.Errorf("%w: more than %d MiB", ErrTooMuch, maxBytes>>20)
	}
	if w.Dirty == 0 {
		w.Commit = w.Head
	}
	return w, nil
}

func (w *Uncommitted) header(head string) {
	name, value, _ := strings.Cut(head, " ")
	switch {
	case name == "branch.oid" && value != "(initial)":
		w.Head = value
	case name == "branch.head" && value != "(detached)":
		w.Out = "refs/heads/" + value
	}
}

// fields are how many there are before the path, by an entry's first letter.
var fields = map[byte]int{'1': 8, 'u': 10, '?': 1}

// entry takes note of one file that differs, and adds to the sum what tells whether it has changed
// since.
func (w *Uncommitted) entry(top, entry string, sum io.Writer) {
	parts := strings.SplitN(entry, " ", fields[entry[0]]+1)
	name := parts[len(parts)-1]
	if entry[0] == '?' && strings.HasSuffix(name, "/") {
		w.Left = append(w.Left, name)
		return
	}
	path := filepath.Join(top, name)
	info, err := os.Lstat(path)
	if err != nil {
		fmt.Fprint(sum, "gone\x00")
		w.changed = append(w.changed, name)
		return
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		fmt.Fprintf(sum, "%d %d %d %d %d\x00", st.Ino, st.Size, st.Mode, info.ModTime().UnixNano(), changeTime(st))
	}
	if info.Mode().IsRegular() {
		if entry[0] == '?' && (info.Size() > maxFile || syscall.Access(path, 4) != nil) {
			w.Left = append(w.Left, name)
			return
		}
		w.bytes += info.Size()
	}
	w.changed = append(w.changed, name)
}

// Take makes a snapshot of the worktree whose root that is. last may be an earlier one, in the
// same scratch, of the same worktree: it is returned if nothing has changed.
func (s *Scratch) Take(ctx context.Context, r Repo, last Uncommitted) (Uncommitted, error) {
	w, err := LookUncommitted(ctx, r)
	if err != nil {
		return w, err
	}
	if w.Commit != "" {
		return w, nil
	}
	if w.Print == last.Print && last.Commit != "" {
		return last, nil
	}
	d := r.Look()
	d.Env = append(d.Env, s.env...)
	s.written.Add(w.bytes)
	if w.Tree, err = s.tree(ctx, d, filepath.Join(r.Git, "index"), w.changed); err != nil {
		return w, err
	}
	d.Env = append(d.Env[:len(d.Env):len(d.Env)], nobody...)
	w.Commit, err = d.First(ctx, "commit-tree", "-m", "not committed", "-p", w.Head, w.Tree)
	return w, err
}

// nobody is who has made the commits of a scratch, always at the same time: the same work is the
// same commit.
var nobody = []string{
	"GIT_AUTHOR_NAME=netsky", "GIT_AUTHOR_EMAIL=netsky", "GIT_AUTHOR_DATE=@0 +0000",
	"GIT_COMMITTER_NAME=netsky", "GIT_COMMITTER_EMAIL=netsky", "GIT_COMMITTER_DATE=@0 +0000",
}

// tree writes the tree of the worktree's index with these files as they are now.
func (s *Scratch) tree(ctx context.Context, d Dir, index string, changed []string) (string, error) {
	index, err := s.copyIndex(index)
	if err != nil {
		return "", err
	}
	defer os.Remove(index)
	d.Env = append(d.Env[:len(d.Env):len(d.Env)], "GIT_INDEX_FILE="+index)
	if len(changed) > 0 {
		in := strings.NewReader(strings.Join(changed, "\x00") + "\x00")
		var said head
		// Without its own line ends and filters that warn, it says nothing but what is wrong.
		err := d.Stream(ctx, in, io.Discard, &said, "-c", "core.splitIndex=false", "-c", "core.safecrlf=false",
			"update-index", "--add", "--remove", "--replace", "--ignore-skip-worktree-entries", "-z", "--stdin")
		if err != nil {
			return "", fmt.Errorf("git update-index: %s", cmp.Or(said.line(), err.Error()))
		}
	}
	tree, err := d.First(ctx, "write-tree")
	if err != nil {
		return "", fmt.Errorf("git write-tree: %w", err)
	}
	return tree, nil
}

// copyIndex copies an index. Git replaces its index by renaming, so the copy is whole.
func (s *Scratch) copyIndex(from string) (string, error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.CreateTemp(s.dir, "index-")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		os.Remove(out.Name())
		return "", err
	}
	return out.Name(), nil
}

// head keeps the beginning of what is written to it.
type head []byte

func (h *head) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), 4096-len(*h))]...)
	return len(p), nil
}

func (h *head) line() string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(*h)), "\n")
	return line
}
