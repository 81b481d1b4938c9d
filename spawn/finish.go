package spawn

import (
	"context"
	"errors"

	"netsky/agent"
	"netsky/home"
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
	now := l.files(st.Agent).judge(&s, nil)
	if now.Start != st.Start || !now.Finished() {
		return true, nil
	}
	if err := l.keepPerson(st.Agent, s); err != nil {
		return true, err
	}
	d := down{l: &l.Ender, why: "ended by itself, as asked"}
	return true, d.now(context.WithoutCancel(ctx), l.target(now))
}
