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
	"netsky/store"
	"netsky/tmux"
)

// LastLines returns the newest n non-empty lines of an agent's pane. For a dead agent it
// is what its keeper left there.
func (l *Launcher) LastLines(ctx context.Context, st Status, n int) ([]string, error) {
	lines, err := l.lines(ctx, st, n)
	return lines[max(len(lines)-n, 0):], err
}

// edgeLines returns all lines of a pane, or of more than n the first and the last: some
// programs print the reason first, some last.
func (l *Launcher) edgeLines(ctx context.Context, st Status, n int) ([]string, error) {
	lines, err := l.lines(ctx, st, 2000)
	if len(lines) > n {
		lines = slices.Concat(lines[:n/2], []string{"…"}, lines[len(lines)-n/2:])
	}
	return lines, err
}

// lines returns what the pane shows, with up to n lines of its history.
func (l *Launcher) lines(ctx context.Context, st Status, n int) ([]string, error) {
	if st.pane == nil {
		return nil, fmt.Errorf("%s: no tmux session: %w", st.Agent, os.ErrNotExist)
	}
	for end := time.Now().Add(settled); ; {
		text, err := l.Tmux.Capture(ctx, st.pane.ID, tmux.Capture{Lines: n})
		if err != nil {
			return nil, err
		}
		if !st.told || strings.Contains(text, "["+string(st.Agent)+" ") || time.Now().After(end) {
			return trimLines(text), nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// trimLines cuts a captured screen into lines without the empty ones at its
// end and without trailing spaces.
func trimLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Death returns what to record about a dead agent: how it ended, if its keeper has
// recorded that, and a log with the last lines of its pane. Recording it twice has the
// effect of once.
func (l *Launcher) Death(ctx context.Context, st Status) (store.EndSession, store.AddLog) {
	end := store.EndSession{Start: st.Start, Actor: st.Agent, State: agent.Dead, Reason: "died: " + st.Evidence, Time: store.At(st.Since)}
	if k, err := l.keeperOf(st.Agent, agent.Launch{Start: st.Start}); err == nil && k.EndedMS != 0 {
		end.Status, end.Signal, end.Reason = k.Status, k.Signal, "died"
		if k.Lost != "" {
			end.Reason += ": " + k.Lost
		}
	}
	if lines, err := l.LastLines(ctx, st, tailLines); err == nil {
		end.LastLines = strings.Join(lines, "\n")
	}
	return end, store.DiedLog(st.Agent, st.Start, cmp.Or(st.Detail, st.Evidence), end.Time)
}
