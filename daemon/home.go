package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"netsky/agent"
)

// errHomeGone ends a daemon whose home has been removed, or removed and made
// again: what it does there would be nobody's, and keep another from its work.
var errHomeGone = errors.New("the home is gone")

// ours reports whether the home is the one that we hold the lock of.
func (d *daemon) ours() bool {
	who, ok := d.o.Home.LockHolder(agent.DaemonName)
	return ok && who.PID == os.Getpid()
}

// home returns when the home is not ours any more.
func (d *daemon) home(ctx context.Context) error {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for missing := 0; missing < 2; { // a full descriptor table passes
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		missing++
		if d.ours() {
			missing = 0
		}
	}
	return fmt.Errorf("%s: %w", d.o.Home.Dir(), errHomeGone)
}
