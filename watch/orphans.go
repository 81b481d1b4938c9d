package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/spawn"
	"netsky/store"
)

const (
	orphansEvery  = 5 * time.Minute
	orphansWithin = time.Minute
)

// orphans ends what agents that are down have left.
type orphans struct {
	*team
	seeking bool
}

// seek looks for processes that agents which are down have left behind. Those that are
// proved to be theirs, by their records, their parents or the start id in their
// environment, are ended as a down ends them; of a start that can't be proved to have left
// none, it is recorded once.
func (l *orphans) seek(ctx context.Context) {
	var down []spawn.Status
	for _, st := range l.last.list {
		if st.State == agent.Down && !st.Wanted && st.Pane() == "" && st.Start != "" {
			down = append(down, st)
		}
	}
	if len(down) == 0 || l.seeking || l.atWork() {
		return
	}
	l.seeking = true
	l.beside(ctx, func() func() {
		within, cancel := context.WithTimeout(ctx, orphansWithin)
		defer cancel()
		l.endOrphans(within, down)
		return func() { l.seeking = false }
	})
}

// endOrphans runs beside the loop.
func (l *orphans) endOrphans(ctx context.Context, down []spawn.Status) {
	left, err := l.o.Launcher.Remnants(ctx)
	if err != nil {
		l.o.Log.Warn("orphans", "error", err)
	}
	for _, st := range down {
		var names []string
		for _, r := range left {
			if r.Agent == st.Agent {
				names = append(names, strings.TrimSuffix(r.What, " of "+string(st.Agent)))
			}
		}
		if len(names) == 0 {
			continue
		}
		text := "left behind by its last start: " + strings.Join(names, ", ")
		switch err := l.endLeft(ctx, st); {
		case errors.Is(err, errSince):
		case err != nil:
			l.event(ctx, "orphans-"+st.Start, store.LevelWarn, st.Agent, st.Start, fmt.Sprintf("%s; not ended: %s", text, firstLine(err)))
		default:
			l.event(ctx, fmt.Sprintf("orphans-%s-%s", st.Start, names[0]), store.LevelWarn, st.Agent, st.Start, text+"; ended")
		}
	}
	for _, r := range l.o.Launcher.Unproved() {
		if r.Start != "" && slices.ContainsFunc(down, func(st spawn.Status) bool { return st.Agent == r.Agent }) {
			l.event(ctx, "unproved-left-"+r.Start, store.LevelWarn, r.Agent, r.Start,
				fmt.Sprintf("not proved that nothing of it runs: %s; `netsky forget --unproved %s` lists what could be", r.What, r.Agent))
		}
	}
}

// errSince reports that the owner has acted since the agent was looked at.
var errSince = errors.New("it is wanted up again")

// endLeft ends what an agent that is down has left, unless it is wanted up by now.
func (l *orphans) endLeft(ctx context.Context, st spawn.Status) error {
	h := l.o.Launcher.Home
	_, err := l.o.Launcher.Down(ctx, spawn.DownOptions{
		Agents: []agent.ID{st.Agent}, By: agent.DaemonName,
		Within: func(end func(...agent.ID) error) error { // no up runs meanwhile
			d, err := home.Desired(h).Load(string(st.Agent))
			if err != nil {
				return err
			}
			if la, err := h.LoadLaunch(st.Agent); d.Up || err != nil || la.Start != st.Start {
				return errors.Join(errSince, err)
			}
			return end()
		},
	})
	return err
}
