package spawn

import (
	"context"

	"netsky/home"
	"netsky/internal/execx"
	"netsky/tmux"
)

// tickerSession is the session that looks after the daemon. It is not an agent: it has no
// mailbox and no keeper, and carries only the home's tag.
func (l *Launcher) tickerSession() tmux.Session {
	return tmux.Session{
		Name:    TickerSession,
		Dir:     l.Home.Root(),
		Command: "exec " + execx.Quote(l.Binary) + " watchdog ticker",
		Env:     []string{"NETSKY_HOME=" + l.Home.Root(), "PATH=" + l.path(l.Environ), TickerSocket + "=" + l.socket()},
		Tags:    map[string]string{TagHome: l.Home.Root()},
	}
}

// TickerSocket is the environment variable that names the ticker's tmux socket.
const TickerSocket = "NETSKY_TICKER_SOCKET"

// TickerUp reports whether the ticker's session exists, or its process if sessions can't
// be seen.
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

// replaceTicker ends a ticker whose binary has been removed: it can no longer start a
// daemon. It reports whether it did.
func (l *Launcher) replaceTicker(ctx context.Context, v view) (bool, error) {
	t, err := l.Home.LoadTicker()
	if err != nil || !t.Alive() || t.Binary == l.Binary || !home.Removed(t.Binary) {
		return false, nil // without a record this is unknown
	}
	old := &target{name: "the old one", kin: kin{keeper: t.Process}}
	if v.ticker != nil && v.ticker.PID == t.PID {
		old.pane = v.ticker
	}
	d := down{l: l}
	return true, d.now(ctx, old)
}

// tickerLives reports whether the process recorded as the ticker is alive, whatever
// session it is in.
func (l *Launcher) tickerLives() bool {
	t, err := l.Home.LoadTicker()
	return err == nil && t.Alive()
}
