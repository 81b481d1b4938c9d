package daemon

import (
	"context"
	"hash/fnv"
	"os"
	"strconv"
	"time"

	"netsky/agent/home"
	"netsky/dashboard"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/store"
)

// agents tells the dashboard how the agents are. It is asked often, by each
// browser. What is known does until a file has changed that it rests on, for a
// second at most, or for two if there are so many agents that a look takes long;
// and while files change all the time, looking takes a small share of it.
type agents struct {
	launcher *spawn.Launcher
	runtimes map[string]spawn.Runtime
	mail     <-chan struct{} // hints that mail has come or gone
	turn     chan struct{}   // room for one: who has put its token in owns what follows

	known []dashboard.Agent
	err   error
	mark  uint64 // of the files before the look; 0 if they may have changed since
	at    time.Time
	cost  time.Duration
}

const (
	agentsAge   = time.Second // of what is known, at most
	agentsShare = 25          // a look may take one of so many parts of the time
	calmShare   = 100         // the same while no file changes
	// justNow is how near a file's time may be to ours for a later change to get
	// the same.
	justNow = 50 * time.Millisecond
)

func newAgents(l *spawn.Launcher, runtimes map[string]spawn.Runtime, mail <-chan struct{}) *agents {
	return &agents{launcher: l, runtimes: runtimes, mail: mail, turn: make(chan struct{}, 1)}
}

// Agents is how they are, which the caller must not change.
func (a *agents) Agents(ctx context.Context) ([]dashboard.Agent, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-a.mail:
		a.mark = 0
	default:
	}
	began := time.Now()
	mark, settled := a.files(began)
	age := began.Sub(a.at)
	switch {
	case age < min(a.cost*agentsShare, agentsAge), mark == a.mark && age < min(max(a.cost*calmShare, agentsAge), 2*agentsAge):
		return a.known, a.err
	}
	list, err := a.launcher.Inspect(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	a.known, a.err = a.views(list), err
	a.at = time.Now()
	a.cost = a.at.Sub(began)
	if a.mark = mark; !settled {
		a.mark = 0
	}
	return a.known, a.err
}

// files tells from the times of directories whether anything has changed in them;
// settled, that a later change would show.
func (a *agents) files(now time.Time) (mark uint64, settled bool) {
	sum := fnv.New64a()
	settled = true
	look := func(rel string) {
		info, err := os.Lstat(a.launcher.Home.Path(rel))
		if err != nil {
			return // nor did it count when there was one
		}
		t := info.ModTime()
		settled = settled && now.Sub(t) > justNow
		sum.Write(strconv.AppendInt([]byte(rel), t.UnixNano(), 10))
	}
	for _, dir := range []string{home.ReportDir, home.KeeperDir, home.LaunchDir, home.DesiredDir, home.Channels} {
		look(dir)
	}
	return sum.Sum64(), settled
}

func (a *agents) views(list spawn.Statuses) []dashboard.Agent {
	out := make([]dashboard.Agent, 0, len(list))
	for _, st := range list {
		if st.Forgotten {
			continue
		}
		v := dashboard.Agent{
			ID: st.Agent, State: st.State, Evidence: st.Evidence, Detail: st.Detail, Runtime: st.Runtime, Model: st.Model,
			Dir: st.Dir, Start: st.Start, PID: st.PID, Wanted: st.Wanted,
			Inbox: st.Inbox, Claimed: st.Claimed, Outbox: st.Outbox, Poison: st.Poison,
			Decidable: st.Asks() && pane.Decidable(a.runtimes[st.Runtime], st.Detail),
		}
		if !st.Since.IsZero() {
			v.Since = store.At(st.Since)
		}
		out = append(out, v)
	}
	return out
}
