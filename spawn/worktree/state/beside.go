package state

import (
	"context"
	"strings"
	"time"

	"netsky/agent"
	"netsky/spawn/worktree/forecast"
	"netsky/spawn/worktree/git"
	"netsky/spawn/worktree/trailer"
)

// A beside is what a repository has of agents' work beside their branches and worktrees.
type beside struct {
	stashed map[string]int              // by the branch on which it was put away
	commits map[agent.ID]map[string]int // by the branch that has them
}

// look finds that. What can't be read is not there.
func look(ctx context.Context, common string, sides []forecast.Side) beside {
	d := git.Dir{Path: common}
	b := beside{stashed: make(map[string]int), commits: make(map[agent.ID]map[string]int)}
	out, _ := d.Run(ctx, 1<<20, "log", "-g", "--no-show-signature", "--format=%gs", "refs/stash", "--")
	for line := range strings.Lines(out) { // "WIP on BRANCH: …", "On BRANCH: …"
		if on, _, ok := strings.Cut(strings.TrimPrefix(line, "WIP "), ": "); ok && len(on) > 3 {
			b.stashed[on[3:]]++
		}
	}
	since := time.Now()
	args := []string{"log", "--no-show-signature", "--grep=^" + trailer.Key + ": ", "--format=%S%x00%(trailers:key=" + trailer.Key + ",valueonly,separator=%x20)",
		"--exclude=refs/heads/netsky/*", "--branches", "--not", "--branches=netsky/*"}
	for _, s := range sides {
		if s.Repo == common {
			if args = append(args, s.Target); s.Target == "" {
				args = args[:len(args)-1]
			}
			if made := s.Made.Time(); made.Before(since) {
				since = made
			}
		}
	}
	// Made in the same second, a commit is as old.
	out, _ = d.Run(ctx, 1<<20, append(args, "--since="+since.Add(-time.Second).Format(time.RFC3339), "--")...)
	for line := range strings.Lines(out) {
		ref, who, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\x00")
		if id := agent.ID(who); id.IsClone() {
			if b.commits[id] == nil {
				b.commits[id] = make(map[string]int)
			}
			b.commits[id][short(ref)]++
		}
	}
	return b
}
