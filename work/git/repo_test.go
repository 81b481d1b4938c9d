package git_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/git"
)

// Where no worktree can be made, it is said why.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	f := testworld.NewRepo(t, filepath.Join(dir, "a\nb ü\xff", "src"))
	f.Write("sub/x", "")
	f.Git("init", "-q", "--bare", filepath.Join(dir, "bare"))
	f.Git("init", "-q", filepath.Join(dir, "unborn"))
	for _, tt := range []struct {
		dir, ceiling string
		sub          string
		err          error
	}{
		{f.Dir, "", ".", nil},
		{f.Dir + "/sub", "", "sub", nil},
		{f.Dir + "/sub", f.Dir, "", git.ErrNone},
		{f.Dir, f.Dir, "", git.ErrNone},
		{f.Dir + "/sub", filepath.Dir(f.Dir), "sub", nil},
		{f.Dir + "/.git", "", "", git.ErrNone},
		{dir, "", "", git.ErrNone},
		{dir + "/bare", "", "", git.ErrBare},
		{dir + "/unborn", "", "", git.ErrUnborn},
	} {
		r, err := git.Open(context.Background(), tt.dir, tt.ceiling)
		if !errors.Is(err, tt.err) || r.Sub != tt.sub || err == nil && (r.Top != f.Dir || r.Common != f.Dir+"/.git") {
			t.Errorf("%q below %q: %+v, %v; want %q, %v", tt.dir, tt.ceiling, r, err, tt.sub, tt.err)
		}
	}
}

// What is kept of a git's output is limited, however it comes.
func TestLimited(t *testing.T) {
	t.Parallel()
	f := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
	f.Commit("large", "x", strings.Repeat("0123456789\n", 100_000))
	out, err := git.Dir{Path: f.Dir}.Run(t.Context(), 1000, "cat-file", "blob", "HEAD:x")
	if err != nil || len(out) != 1000 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if _, err := (git.Dir{Path: f.Dir}).Run(t.Context(), 1000, "-c", "alias.x=!echo first; echo 'fatal: second' >&2; exit 1", "x"); err == nil || err.Error() != "fatal: second" {
		t.Errorf("%v", err)
	}
	if _, err := (git.Dir{Path: f.Dir}).Run(t.Context(), 1000, "-c", "alias.x=!echo 'warning: first' >&2; echo 'fatal: second' >&2; exit 1", "x"); err == nil || err.Error() != "fatal: second" {
		t.Errorf("%v", err)
	}
}
