package spawn

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"netsky/agent"
	"netsky/store"
	"netsky/tmux"
)

// start makes the sessions in one call, believes only those that the closing
// list shows with our start id, and waits for each to say that it is ready.
func (l *Launcher) start(ctx context.Context, o UpOptions, tickerMissing bool, list []prepared, tell func(Progress)) ([]Progress, error) {
	w := watch{l: l, list: list, ends: make([]Progress, len(list)), tell: tell}
	var sessions []tmux.Session
	for i, p := range list {
		if p.err != nil {
			w.end(i, Progress{Step: StepFailed, Err: p.err})
			continue
		}
		sessions = append(sessions, l.session(p.launch))
	}
	ticker := o.Ticker && tickerMissing
	if ticker {
		sessions = append(sessions, l.tickerSession())
	}
	if len(sessions) == 0 {
		return w.ends, nil
	}
	panes, err := l.open(ctx, l.setup(o.Setup), sessions)
	answered := !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
	if err != nil && len(panes) == 0 {
		for _, p := range list {
			if p.err == nil && answered {
				l.neverRan(p.launch)
			}
		}
		return nil, err
	}
	var ops []store.Op
	for i, p := range list {
		at := slices.IndexFunc(panes, func(q tmux.Pane) bool { return q.Tags[TagStart] == p.launch.Start })
		switch {
		case p.err != nil:
		case at < 0:
			if answered {
				l.neverRan(p.launch)
			}
			w.end(i, Progress{Step: StepFailed, Err: errors.Join(errors.New("tmux made no session for it"), err)})
		default:
			list[i].keeper, _ = agent.FindProcess(panes[at].PID) // gone already: nobody
			ops = append(ops, started(p, panes[at])...)
			tell(Progress{Agent: p.launch.Agent, Step: StepSpawned})
		}
	}
	var recording sync.WaitGroup
	recording.Go(func() { l.record(ctx, ops...) })
	stop := l.lookouts(ctx, list, panes)
	w.wait(ctx, cmp.Or(l.times.ready, ReadyWithin))
	stop()
	recording.Wait()
	if ticker && !slices.ContainsFunc(panes, func(q tmux.Pane) bool {
		return q.Session == TickerSession && q.Tags[TagHome] == l.Home.Dir()
	}) {
		return w.ends, err // of all that may be said in it, this stopped no agent
	}
	return w.ends, nil
}

// dying is how long a tmux server that has been ended may take to be gone; it
// waits for its clients. Until then it refuses, and no new one can be started.
const dying = 3 * time.Second

// open makes the sessions. A server that is just ending is waited for; one of
// our own that hangs in it is put out of its misery.
func (l *Launcher) open(ctx context.Context, setup []string, list []tmux.Session) ([]tmux.Pane, error) {
	defer l.Quiet(ctx)()
	for end := time.Now().Add(dying); ; {
		panes, err := l.Tmux.Start(ctx, setup, list)
		if len(panes) > 0 || !errors.Is(err, tmux.ErrNoServer) {
			return panes, err
		}
		if time.Now().After(end) {
			if l.Shared {
				return nil, err
			}
			if rerr := l.Tmux.Reap(ctx); rerr != nil {
				return nil, errors.Join(err, rerr)
			}
			return l.Tmux.Start(ctx, setup, list)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (l *Launcher) setup(more []string) []string {
	if l.Shared {
		return nil
	}
	return append([]string{ // for the status line and the inbox's popup
		"set-environment -g NETSKY_BIN " + tmux.Quote(l.Binary),
		"set-environment -g NETSKY_HOME " + tmux.Quote(l.Home.Dir()),
		// The server may have been started from within an agent.
		"set-environment -gr NETSKY_START", "set-environment -gr AGENT_N",
	}, more...)
}

func (l *Launcher) session(la agent.Launch) tmux.Session {
	return tmux.Session{
		Name:    string(la.Agent),
		Dir:     la.Dir,
		Command: "exec " + shellWord(l.Binary) + " run " + string(la.Agent),
		Env: []string{
			"AGENT_N=" + la.Agent.N(),
			"NETSKY_PROMPT_FILE=" + la.PromptFile,
			// A person's own server knows no home, or another.
			"NETSKY_HOME=" + l.Home.Dir(),
			"NETSKY_START=" + la.Start,
		},
		Tags: map[string]string{TagHome: l.Home.Dir(), TagStart: la.Start},
	}
}

func started(p prepared, pane tmux.Pane) []store.Op {
	return []store.Op{
		store.UpsertActor{
			ID: p.launch.Agent, Role: p.launch.Agent.Role(), Runtime: p.launch.Runtime,
			Dir: p.launch.Dir, Objective: p.plan.Objective, Desired: store.DesiredUp,
		},
		store.StartSession{
			Start: p.launch.Start, Actor: p.launch.Agent, Runtime: p.launch.Runtime, Tmux: pane.Session,
			PID: pane.PID, State: agent.Starting, Started: store.Time(p.launch.StartedMS),
		},
		store.StartedLog(p.launch),
	}
}
