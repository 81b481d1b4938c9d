package merge

import (
	"context"
	"slices"
	"strings"

	"netsky/work/git"
)

// A target is what branches land on.
type target struct {
	commit, tree string
	follows      string  // the ref that it follows, of another machine; "" is none
	upstream     *target // what that ref is at, if it is elsewhere
}

// targetsOf returns the targets of the sides, by their ref names. One that is not there is zero.
func targetsOf(ctx context.Context, d git.Dir, sides []*Side) (map[string]target, error) {
	var refs []string
	for _, s := range sides {
		if s.Base != "" && !slices.Contains(refs, s.Base) {
			refs = append(refs, s.Base)
		}
	}
	found, err := refsOf(ctx, d, refs)
	if err != nil {
		return nil, err
	}
	refs = nil
	for _, t := range found {
		if t.follows != "" && !slices.Contains(refs, t.follows) {
			refs = append(refs, t.follows)
		}
	}
	followed, err := refsOf(ctx, d, refs)
	for name, t := range found {
		if up, ok := followed[t.follows]; ok && up.commit != t.commit {
			t.upstream = &up
			found[name] = t
		}
	}
	return found, err
}

// refsOf returns where refs are, by their names.
func refsOf(ctx context.Context, d git.Dir, refs []string) (map[string]target, error) {
	found := make(map[string]target)
	if len(refs) == 0 {
		return found, nil
	}
	out, err := d.List(ctx, append([]string{"for-each-ref", "--format=%(refname)%00%(objectname)%00%(tree)%00%(upstream)", "--"}, refs...)...)
	for line := range strings.Lines(out) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\x00"); len(f) == 4 {
			found[f[0]] = target{commit: f[1], tree: f[2], follows: f[3]}
		}
	}
	return found, err
}
