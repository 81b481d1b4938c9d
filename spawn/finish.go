package spawn

import (
	"context"
	"errors"

	"netsky/agent"
	"netsky/home"
	"netsky/store"
	"netsky/tmux"
)

// Finished reports whether the agent has finished as asked and its session still exists:
// the down that asked has died, was interrupted, or is about to end it.
func (s Status) Finished() bool {
	return s.State == agent.Down && !s.Wanted && s.Start != "" && s.pane != nil
}

// Finish ends what is left of an agent that is Finished, as the down that asked would
// have. While an up or a down runs it does nothing and returns done false: that verb ends
// the agent, or wants it up.
func (l *Launcher) Finish(ctx context.Context, st Status) (done bool, err error) {
	lock, err := l.Home.Lock(home.UpLock)
	if errors.Is(err, home.ErrLocked) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Unlock()
	v, err := l.view(ctx)
	if err != nil {
		return false, err
	}
	s, ok := v.agents[st.Agent]
	if !ok {
		return true, nil
	}
	if now := l.judge(l.files(st.Agent), &s, nil); now.Start != st.Start || !now.Finished() {
		return true, nil
	}
	if err := l.keepPerson(st.Agent, s); err != nil {
		return true, err
	}
	ctx = context.WithoutCancel(ctx)
	left, unfiled, err := l.end(ctx, []tmux.Pane{s.Pane}, []kin{l.kinOf(st.Agent, &s.Pane, st.Start)}, nil)
	err = errors.Join(err, unfiled[0])
	for _, p := range left[0] {
		err = errors.Join(err, stays(p))
	}
	const reason = "down: ended by itself, as asked"
	l.record(ctx,
		store.EndSession{Start: st.Start, Actor: st.Agent, State: agent.Down, Reason: reason},
		store.AddLog{Part: "down", Actor: st.Agent, About: st.Start, Text: reason},
	)
	return true, err
}
