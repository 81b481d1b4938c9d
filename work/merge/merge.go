package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"

	"netsky/work/git"
)

// A Pair is two commits that are to be merged.
type Pair struct{ Ours, Theirs string }

// A Merge is what becomes of a pair.
type Merge struct {
	Tree     string   // the merged tree; with the marks of conflicts if there are any
	Conflict bool     // it does not merge by itself
	Files    []string // in conflict, in git's order; a conflict about a directory's name has none
	Err      error    // why git can't merge them at all
}

// clean reports whether the merge comes to that tree, without a conflict.
func (m Merge) clean(tree string) bool { return !m.Conflict && m.Err == nil && m.Tree == tree }

// apiece is how many merges are worth a git of their own.
const apiece = 32

// Merges merges each pair as `git merge` would, where d is. No file, index or ref is changed;
// the merged trees are written to where d's environment says. A few gits, side by side, do all, if git
// is not too old for that (2.39).
func Merges(ctx context.Context, d git.Dir, pairs []Pair) ([]Merge, error) {
	gits := max(1, min(runtime.GOMAXPROCS(0), len(pairs)/apiece))
	done, errs := make([][]Merge, gits), make([]error, gits)
	var wg sync.WaitGroup
	for n := range gits {
		part := pairs[len(pairs)*n/gits : len(pairs)*(n+1)/gits]
		wg.Go(func() { done[n], errs[n] = inOrder(ctx, d, part) })
	}
	wg.Wait()
	return slices.Concat(done...), errors.Join(errs...)
}

// inOrder merges pairs one after another.
func inOrder(ctx context.Context, d git.Dir, pairs []Pair) ([]Merge, error) {
	done := make([]Merge, 0, len(pairs))
	for len(done) < len(pairs) {
		some, err := batch(ctx, d, pairs[len(done):])
		done = append(done, some...)
		switch {
		case ctx.Err() != nil:
			return done, ctx.Err()
		case errors.Is(err, errOldGit):
			return oneByOne(ctx, d, pairs)
		case err != nil && len(done) < len(pairs): // the next one is why git gave up
			done = append(done, Merge{Err: err})
		}
	}
	return done, nil
}

var errOldGit = errors.New("git merge-tree takes one pair at a time")

const usageStatus = 129 // of a git that does not know an option

// batch merges pairs by one git, up to the first that git refuses.
func batch(ctx context.Context, d git.Dir, pairs []Pair) (done []Merge, err error) {
	var in, out, said limited
	for _, p := range pairs {
		fmt.Fprintf(&in.Builder, "%s %s\n", p.Ours, p.Theirs)
	}
	out.limit, said.limit = maxOut, 4096
	err = d.Stream(ctx, strings.NewReader(in.String()), &out, &said, "merge-tree", "--write-tree", "--stdin", "-z", "--name-only", "--no-messages")
	done, perr := parse(out.String(), pairs)
	ee := new(exec.ExitError)
	switch {
	case errors.As(err, &ee) && ee.ExitCode() == usageStatus:
		return nil, errOldGit
	case err != nil:
		return done, complaint(&said, err)
	case perr != nil:
		return done, perr
	case len(done) < len(pairs):
		return done, fmt.Errorf("git merge-tree: %d of %d merges are missing", len(pairs)-len(done), len(pairs))
	}
	return done, nil
}

func complaint(said *limited, err error) error {
	line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
	return errors.New(cmp.Or(line, err.Error()))
}

const maxOut = 64 << 20

// parse reads the results of merges: "1", the tree, "" for each that is clean, and "0", the tree, the
// files, "" for the others, each ended by a NUL.
func parse(out string, pairs []Pair) (done []Merge, err error) {
	next := func() (field string, ok bool) {
		field, out, ok = strings.Cut(out, "\x00")
		return field, ok
	}
	for len(done) < len(pairs) && out != "" {
		status, _ := next()
		m := Merge{}
		m.Tree, _ = next()
		file, ok := next()
		for ; ok && file != ""; file, ok = next() {
			m.add(pairs[len(done)], file)
		}
		if m.Conflict = status == "0"; !ok || m.Tree == "" || !m.Conflict && (status != "1" || len(m.Files) > 0) {
			return done, fmt.Errorf("git merge-tree: it prints something else than expected: %.40q", status)
		}
		done = append(done, m)
	}
	return done, nil
}

// add takes note of a file in conflict. One that stands where the other side has a directory is
// called after its side, as in "name~commit".
func (m *Merge) add(p Pair, file string) {
	for _, side := range []string{p.Ours, p.Theirs} {
		if at := strings.LastIndex(file, "~"+side); at > 0 {
			file = file[:at]
		}
	}
	if n := len(m.Files); n == 0 || m.Files[n-1] != file {
		m.Files = append(m.Files, file)
	}
}

// oneByOne merges pairs with a git for each.
func oneByOne(ctx context.Context, d git.Dir, pairs []Pair) (done []Merge, err error) {
	for _, p := range pairs {
		out, said := limited{limit: maxOut}, limited{limit: 4096}
		err := d.Stream(ctx, nil, &out, &said, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", p.Ours, p.Theirs)
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		m := Merge{}
		ee := new(exec.ExitError)
		switch {
		case err == nil, errors.As(err, &ee) && ee.ExitCode() == 1 && out.Len() > 0: // else it has no such commit
			fields := strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
			m.Tree, m.Conflict = fields[0], err != nil
			for _, file := range fields[1:] {
				m.add(p, file)
			}
		default:
			m.Err = complaint(&said, err)
		}
		done = append(done, m)
	}
	return done, nil
}

// limited keeps the beginning of what is written to it.
type limited struct {
	strings.Builder
	limit int
}

func (l *limited) Write(p []byte) (int, error) {
	l.Builder.Write(p[:min(len(p), max(0, l.limit-l.Len()))])
	return len(p), nil
}
