// Package diff shows what an agent has changed since its branch and the one that it lands on were the
// same, with what is not committed and new files.
//
// It changes nothing. On a terminal git itself shows the changes, as it shows others of the owner's: with
// their pager, colours and programs for comparing. Where they are read, no such program runs, and what is
// read is bounded. It knows the files as they are while it looks; a crash leaves a scratch directory.
package diff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"netsky/home"
	"netsky/work/git"
	"netsky/work/tree"
)

// A Change is all that an agent has changed.
type Change struct {
	Dir  string   // the worktree's root
	Base string   // the commit that it is compared with
	Head string   // the last commit of the branch
	Tree string   // what there is now, also what is not committed
	Left []string // new files that are not in Tree
	Most int      // bytes that Files reads; 0 is 16 MiB

	repo    git.Repo
	scratch *git.Scratch
}

// Open makes a snapshot of the agent's worktree and compares it with the merge base of its branch and
// the one that it lands on; or with the first of since that is a commit of the branch. The caller must
// Close it.
func Open(ctx context.Context, h home.Dir, w tree.Worktree, since ...string) (c *Change, err error) {
	r, err := repoOf(ctx, w)
	if err != nil {
		return nil, err
	}
	scratch, err := git.OpenScratch(h, w.Repo)
	if err != nil {
		return nil, err
	}
	c = &Change{Dir: w.Dir, repo: r, scratch: scratch}
	defer func() {
		if err != nil {
			err = errors.Join(err, scratch.Close())
		}
	}()
	var now git.Uncommitted
	if w.Away == nil {
		now, err = scratch.Take(ctx, r, now)
	} else if now.Head, err = r.Commit(ctx, w.Branch); err == nil {
		now.Commit = now.Head
	}
	if err != nil {
		return nil, err
	}
	c.Head, c.Tree, c.Left = now.Head, now.Tree, now.Left
	if c.Tree == "" { // nothing but what is committed
		if c.Tree, err = r.Look().First(ctx, "rev-parse", "--verify", now.Commit+"^{tree}"); err != nil {
			return nil, err
		}
	}
	for _, name := range since {
		if c.Base, err = r.Commit(ctx, name); err != nil {
			return nil, err
		}
		if _, aerr := r.Look().First(ctx, "merge-base", "--is-ancestor", c.Base, c.Head); c.Base != "" && aerr == nil {
			return c, nil
		}
	}
	target := w.From
	if w.Base != "" {
		at, err := r.Commit(ctx, w.Base)
		if err != nil {
			return nil, err
		}
		if at != "" {
			target = at
		}
	}
	c.Base, err = r.Look().First(ctx, "merge-base", target, c.Head)
	if ge := new(git.Error); errors.As(err, &ge) && ge.Status == 1 { // they have nothing in common
		c.Base, err = w.From, nil
	}
	return c, err
}

// repoOf opens the repository in the agent's worktree, or, if that is on another host, in the owner's.
func repoOf(ctx context.Context, w tree.Worktree) (git.Repo, error) {
	if w.Away != nil {
		return git.Open(ctx, w.Main, "")
	}
	return w.Git()
}

// Close removes the snapshot.
func (c *Change) Close() error { return c.scratch.Close() }

// Terminal is how git shows a change on a terminal or writes it to a file.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	Env      []string // of the owner's shell
	Options  []string // of git diff
	Paths    []string // pathspecs, from the worktree's root
}

// shown are the variables of the owner's that decide how git shows changes.
var shown = []string{"GIT_PAGER", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "LC_ALL"}

// Show has git show the change. A pager runs until the reader ends it, whatever becomes of ctx.
func (c *Change) Show(ctx context.Context, t Terminal) error {
	d := c.git()
	d.Within = 30 * 24 * time.Hour
	vars := map[string]string{"LC_ALL": ""}
	for _, v := range t.Env {
		if name, value, ok := strings.Cut(v, "="); ok {
			vars[name] = value
		}
	}
	for _, name := range shown {
		if v, ok := vars[name]; ok {
			d.Env = append(d.Env, name+"="+v)
		}
	}
	args := append([]string{"diff"}, t.Options...)
	if len(d.Doubted) > 0 { // a program put in its place would show nothing
		args = append(args, "--no-ext-diff")
	}
	// What has changed in a submodule would be shown by a git that obeys the submodule's configuration.
	args = append(append(args, "--submodule=short", c.Base, c.Tree, "--"), t.Paths...)
	return d.Stream(context.WithoutCancel(ctx), t.In, t.Out, t.Err, args...)
}

// Any reports whether anything has changed, below the paths if there are some.
func (c *Change) Any(ctx context.Context, paths ...string) (bool, error) {
	_, err := c.git().Run(ctx, 256, append([]string{"diff", "--quiet", "--no-ext-diff", c.Base, c.Tree, "--"}, paths...)...)
	if ge := new(git.Error); errors.As(err, &ge) && ge.Status == 1 {
		return true, nil
	}
	return false, err
}

func (c *Change) git() git.Dir {
	d := c.repo.Look()
	d.Env = append(d.Env, c.scratch.Env()...)
	return d
}

// ErrNoLine reports a line that is not there.
var ErrNoLine = errors.New("no such line")

// maxBlob is how much of a file is read to find a line.
const maxBlob = 16 << 20

// Line returns a line of a file, with up to two lines before it, as it is now; with old, as it was. The
// error matches ErrNoLine if there is none.
func (c *Change) Line(ctx context.Context, file string, n int, old bool) (excerpt string, err error) {
	of, side := c.Tree, "now"
	if old {
		of, side = c.Base, "before"
	}
	name := of + ":" + file
	d := c.git()
	kind, err := d.First(ctx, "cat-file", "-t", "--", name)
	if err != nil || kind != "blob" {
		if ge := new(git.Error); err != nil && !errors.As(err, &ge) {
			return "", err
		}
		return "", fmt.Errorf("%s: %w: there is no such file %s", file, ErrNoLine, side)
	}
	text, err := d.Run(ctx, maxBlob, "cat-file", "blob", name)
	if err != nil {
		return "", err
	}
	if strings.Contains(text[:min(len(text), 8000)], "\x00") {
		return "", fmt.Errorf("%s: %w: it is no text", file, ErrNoLine)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	if n < 1 || n > len(lines) {
		return "", fmt.Errorf("%s: %w %d: it has %d %s", file, ErrNoLine, n, len(lines), side)
	}
	var b strings.Builder
	for i := max(n-2, 1); i <= n; i++ {
		fmt.Fprintf(&b, "%d: %s\n", i, cut(strings.TrimSuffix(lines[i-1], "\r")))
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// maxText is how much of a line is read.
const maxText = 2000

func cut(line string) string {
	line = strings.ToValidUTF8(line, "\ufffd")
	if len(line) > maxText {
		line = strings.ToValidUTF8(line[:maxText], "") + "…"
	}
	return line
}
