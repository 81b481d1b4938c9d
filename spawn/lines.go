package spawn

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/spawn/pane"
	"netsky/store"
)

// LastLines returns the newest n non-empty lines of an agent's pane. For a dead agent it
// is what its keeper left there.
func (l *Site) LastLines(ctx context.Context, st Status, n int) ([]string, error) {
	lines, err := l.lines(ctx, st, n)
	return lines[max(len(lines)-n, 0):], err
}

// lines returns what the pane shows, with up to n lines of its history.
func (l *Site) lines(ctx context.Context, st Status, n int) ([]string, error) {
	if st.pane == nil {
		return nil, fmt.Errorf("%s: no tmux session: %w", st.Agent, os.ErrNotExist)
	}
	last := ""
	if st.told {
		last = "[" + string(st.Agent) + " "
	}
	return pane.Lines(ctx, l.Tmux, st.pane.ID, n, last)
}

// tailLines is how many lines of a dead agent's pane are recorded.
const tailLines = 40

// Death returns what to record about a dead agent: how it ended, if its keeper has
// recorded that, and a log with the last lines of its pane. Recording it twice has the
// effect of once.
func (l *Site) Death(ctx context.Context, st Status) (store.EndSession, store.AddLog) {
	end := store.EndSession{Start: st.Start, Actor: st.Agent, State: agent.Dead, Reason: "died: " + st.Evidence, Time: store.At(st.Since)}
	if k, err := l.keeperOf(st.Agent, agent.Launch{Start: st.Start}); err == nil && k.EndedMS != 0 {
		end.Status, end.Signal, end.Reason = k.Status, k.Signal, "died"
		if k.Lost != "" {
			end.Reason += ": " + k.Lost
			st.Detail = cmp.Or(st.Detail, k.Lost)
		} else {
			st.Detail = cmp.Or(st.Detail, k.How()) // the status may be older
		}
	}
	if lines, err := l.LastLines(ctx, st, tailLines); err == nil {
		end.LastLines = strings.Join(lines, "\n")
	}
	return end, store.DiedLog(st.Agent, st.Start, cmp.Or(st.Detail, st.Evidence), end.Time)
}

// recordDeaths records the dead of the list, if the daemon has not. together says that all
// sessions may have gone at once, which is one event and not the death of each.
func (l *Site) recordDeaths(ctx context.Context, list Statuses, together bool) {
	l.awaitEnds(ctx, list)
	var ops []store.Op
	for _, st := range list {
		if st.Died() && st.Start != "" {
			end, log := l.Death(ctx, st)
			if ops = append(ops, end); !together {
				ops = append(ops, log)
			}
		}
	}
	if len(ops) > 0 {
		l.record(ctx, ops...)
	}
}

// endTime is how long a keeper may take to record how its program has just ended.
const endTime = time.Second

// awaitEnds waits until the keepers of those that have just died have recorded how: whoever ends a keeper before
// that loses it.
func (l *Site) awaitEnds(ctx context.Context, list Statuses) {
	about := func(st Status) bool {
		if !st.Died() || st.Start == "" || st.told {
			return false
		}
		k, err := l.keeperOf(st.Agent, agent.Launch{Start: st.Start})
		return err == nil && k.EndedMS == 0 && !k.Alive() && k.Own.Alive()
	}
	for began := time.Now(); slices.ContainsFunc(list, about) && time.Since(began) < endTime; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// together reports whether several agents are dead and no agent has a session.
func (list Statuses) together() bool {
	list = slices.DeleteFunc(slices.Clone(list), func(s Status) bool { return s.pane == nil && !s.Died() })
	return len(list) > 1 && !slices.ContainsFunc(list, func(s Status) bool { return s.pane != nil })
}
