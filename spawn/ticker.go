package spawn

import (
	"context"

	"netsky/tmux"
)

// tickerSession is the session that looks after the daemon. It is no agent: it
// has no mailbox and no keeper, and it carries the home's tag alone.
func (l *Launcher) tickerSession() tmux.Session {
	return tmux.Session{
		Name:    TickerSession,
		Dir:     l.Home.Dir(),
		Command: "exec " + shellWord(l.Binary) + " watchdog ticker",
		Env:     []string{"NETSKY_HOME=" + l.Home.Dir(), "PATH=" + l.path(l.Environ)},
		Tags:    map[string]string{TagHome: l.Home.Dir()},
	}
}

// TickerUp reports whether the ticker's session is there.
func (l *Launcher) TickerUp(ctx context.Context) (bool, error) {
	v, err := l.view(ctx)
	return v.ticker != nil, err
}
