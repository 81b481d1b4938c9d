package watch

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/spawn"
	"netsky/store"
)

const (
	tickerEvery = 15 * time.Second
	// tickerStale is how long a ticker may go without a tick, beside three times its own
	// interval, before it counts as hung.
	tickerStale = 2 * time.Minute
)

// A tickerWatch is what is known of the ticker.
type tickerWatch struct {
	last   int64         // its latest tick, as it wrote it
	silent time.Duration // since that was new, in this process's time
	at     time.Time
	busy   bool
}

// A ticker keeps the ticker, which restarts the daemon, running.
type ticker struct {
	*team
	tickerWatch
}

// check starts the ticker again if it is gone, or ends it first if it no longer ticks.
// It is wanted if this home has had one, the daemon is wanted and any agent is.
func (l *ticker) check(ctx context.Context) {
	h := l.o.Launcher.Home
	if l.busy || !slices.ContainsFunc(l.team.last.list, func(st spawn.Status) bool { return st.Wanted && st.Alive() && st.Pane() != "" }) {
		return
	}
	t, err := h.LoadTicker()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.o.Log.Warn("ticker", "error", err)
		}
		return
	}
	hung := l.hung(t, l.o.Tick, time.Now())
	if t.Alive() && !hung || l.atWork() {
		return
	}
	if d, err := home.Desired(h).Load(agent.DaemonName); err != nil || !d.Up {
		return
	}
	l.busy = true
	l.beside(ctx, func() func() {
		within, cancel := outlive(ctx, startWithin)
		defer cancel()
		text, err := "the ticker was gone: started another", error(nil)
		if hung {
			text = "the ticker had stopped ticking: ended it and started another"
			left := proc.End(within, []proc.Process{t.Process}, time.Second)
			if len(left) > 0 {
				err = errors.New("it does not end")
			}
			for range 40 { // its session ends after it
				if up, uerr := l.o.Launcher.TickerUp(within); uerr != nil || !up {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		if err == nil {
			_, err = l.o.Launcher.Up(within, spawn.UpOptions{By: agent.DaemonName, Wanted: true, Ticker: true})
		}
		return func() {
			l.tickerWatch = tickerWatch{}
			if err != nil {
				l.o.Log.Warn("ticker", "error", err)
				return
			}
			l.event(ctx, "ticker-"+time.Now().UTC().Format(time.RFC3339), store.LevelWarn, "", "", text)
		}
	})
}

// hung reports whether a living ticker has not ticked for long. A jump of the clock does
// not count.
func (c *tickerWatch) hung(t agent.Ticker, every time.Duration, now time.Time) bool {
	gap := now.Sub(c.at)
	if t.TickMS != c.last || c.at.IsZero() {
		c.silent, gap = 0, 0
	}
	c.last, c.at = t.TickMS, now
	if gap < 4*tickerEvery {
		c.silent += gap
	}
	return t.Alive() && c.silent >= 3*every+tickerStale
}
