package land

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"netsky/agent"
	"netsky/home"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

// A Holder tells what of tasks' work is on branches: whether a target still has what landed on it, as its
// owner may have moved it back, and whether a worker has changed anything for a task. For the first, it asks
// git once for each branch. One goroutine uses it.
type Holder struct {
	Home home.Dir

	commits map[string]map[string]bool // of each branch, the last ones
}

// Holds reports whether a landing's target has what landed, as that commit or rewritten since. Of a
// repository or branch that is gone it is not known otherwise.
func (h *Holder) Holds(ctx context.Context, l record.Landing) bool {
	key := l.Repo + "\x00" + l.Target
	last, asked := h.commits[key]
	if !asked {
		out, err := git.Dir{Path: l.Repo}.List(ctx, "rev-list", "--first-parent", "--max-count=2000", l.Target, "--")
		if err == nil {
			last = make(map[string]bool)
			for line := range strings.Lines(out) {
				last[strings.TrimSuffix(line, "\n")] = true
			}
		}
		if h.commits == nil {
			h.commits = make(map[string]map[string]bool)
		}
		h.commits[key] = last
	}
	if last == nil || last[l.After] || ancestor(ctx, l.Repo, l.After, l.Target) {
		return true
	}
	_, _, err := Current(ctx, h.Home, l.Agent)
	return errors.Is(err, ErrNothing)
}

// Owns reports whether an agent has changed anything between two commits of its branch, apart from what it
// has taken over from what it landed on, or lands on if before is "": an empty commit is nothing of its own.
// What can't be told counts as its own.
func (h *Holder) Owns(ctx context.Context, id agent.ID, begun, head, before string) bool {
	w, err := tree.Load(h.Home, id)
	if err != nil {
		return true
	}
	args := []string{"log", "--no-show-signature", "--no-merges", "--format=", "--name-only", "-z"}
	if before = cmp.Or(before, w.Base); before != "" {
		args = append(args, "^"+before)
	}
	if begun == "" {
		args = append(args, head)
	} else { // what was rebased was there before
		args = append(args, "--right-only", "--cherry-pick", begun+"..."+head)
	}
	out, err := git.Dir{Path: w.Repo}.First(ctx, append(args, "--")...)
	return err != nil || out != ""
}
