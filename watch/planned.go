package watch

import (
	"context"

	"netsky/agent"
	"netsky/home"
	"netsky/watch/restart"
)

// A planned carries out the restarts that were asked for. Agents that are being restarted
// are not looked after: whoever restarts them does that.
type planned struct {
	*team
	busy bool      // one runs beside the loop
	seen home.Mark // when there was nothing to do
}

// resumeRestarts reads which agents an earlier daemon was about to restart, before the
// first look could take that for a death.
func (l *planned) resumeRestarts() {
	if l.o.Plan == nil {
		return
	}
	_, err := l.openRestarts()
	if err != nil {
		l.o.Log.Warn("restarts", "error", err)
	}
}

func (l *planned) openRestarts() ([]restart.Request, error) {
	list, err := restart.Open(l.o.Launcher.Home)
	l.planned = make(map[agent.ID]bool)
	for _, r := range list {
		for _, a := range r.Agents {
			if a.Step != "" && !a.Step.Over() {
				l.planned[a.Agent] = true
			}
		}
	}
	return list, err
}

// asked carries out the restarts that were asked for, one after another.
func (l *planned) asked(ctx context.Context) {
	now := restart.Waiting(l.o.Launcher.Home)
	if l.o.Plan == nil || l.busy || l.seen.Same(now) {
		return
	}
	list, err := l.openRestarts()
	if err != nil {
		l.o.Log.Warn("restarts", "error", err)
	}
	if len(list) == 0 {
		if err == nil {
			l.seen = now
		}
		return
	}
	r := list[0]
	for _, a := range r.Agents {
		l.planned[a.Agent] = true
	}
	o := restart.Options{
		Launcher: l.o.Launcher, Plan: l.o.Plan, Conversation: l.o.Conversation, Ticker: l.ticked(),
		Barred: func(id agent.ID) string { return Barred(l.o.Launcher.Home, l.o.Runtimes(), id) },
	}
	if l.o.Setup != nil {
		o.Setup = l.o.Setup()
	}
	l.o.Log.Info("restart", "request", r.ID, "by", r.By, "agents", len(r.Agents))
	l.busy = true
	l.beside(ctx, func() func() {
		restart.Run(ctx, o, &r)
		return func() {
			l.busy, l.seen, l.planned = false, home.Mark{}, nil
			l.Wake()
		}
	})
}
