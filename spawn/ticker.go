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
		Env:     []string{"NETSKY_HOME=" + l.Home.Dir(), "PATH=" + l.path(l.Environ), TickerSocket + "=" + l.socket()},
		Tags:    map[string]string{TagHome: l.Home.Dir()},
	}
}

// TickerSocket is the variable by which the ticker knows its tmux server's socket.
const TickerSocket = "NETSKY_TICKER_SOCKET"

// TickerUp reports whether the ticker's session is there, or its process where
// that can't be seen.
func (l *Launcher) TickerUp(ctx context.Context) (bool, error) {
	v, err := l.view(ctx)
	if v.ticker != nil {
		return true, nil
	}
	if l.tickerLives() {
		return true, nil
	}
	return false, err
}

// tickerLives reports whether the process lives that says it is the ticker,
// wherever its session is.
func (l *Launcher) tickerLives() bool {
	t, err := l.Home.LoadTicker()
	return err == nil && t.Alive()
}
