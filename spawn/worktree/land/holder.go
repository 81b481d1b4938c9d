package land

import (
	"context"
	"errors"
	"strings"

	"netsky/agent/home"
	"netsky/spawn/worktree/git"
	"netsky/store/work"
)

// A Holder tells whether branches still have what landed on them: their owner may have moved one back. It
// asks git once for each branch. One goroutine uses it.
type Holder struct {
	Home home.Dir

	commits map[string]map[string]bool // of each branch, the last ones
}

// Holds reports whether a landing's target has what landed, as that commit or rewritten since. Of a
// repository or branch that is gone it is not known otherwise.
func (h *Holder) Holds(ctx context.Context, l work.Landing) bool {
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
	_, err := Current(ctx, h.Home, l.Agent)
	return errors.Is(err, ErrNothing)
}
