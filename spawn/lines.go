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

// LastLines is what an agent's pane shows, the newest n lines that are not
// empty. It is what a dead agent's keeper left there.
func (l *Launcher) LastLines(ctx context.Context, st Status, n int) ([]string, error) {
	lines, err := l.lines(ctx, st, n)
	return lines[max(len(lines)-n, 0):], err
}

// edgeLines are all that a pane shows, or of more than n lines the first and the
// last: some programs say first what is wrong, some last.
func (l *Launcher) edgeLines(ctx context.Context, st Status, n int) ([]string, error) {
	lines, err := l.lines(ctx, st, 2000)
	if len(lines) > n {
		lines = slices.Concat(lines[:n/2], []string{"…"}, lines[len(lines)-n/2:])
	}
	return lines, err
}

// lines is what the pane shows, with up to n lines of its history.
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

// Death is what there is to record about an agent that is dead: how it ended,
// as far as its keeper has told, with the last lines of its pane, and a log of
// it. To record it twice is as well as once.
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
