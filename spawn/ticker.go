package spawn

import (
	"context"

	"netsky/home"
)

// TickerSocket is the environment variable that names the ticker's tmux socket.
const TickerSocket = "NETSKY_TICKER_SOCKET"

// replaceTicker ends a ticker whose binary has been removed: it can no longer start a
// daemon. It reports whether it did.
func (l *Ender) replaceTicker(ctx context.Context, v view) (bool, error) {
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
