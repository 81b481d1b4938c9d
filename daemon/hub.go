package daemon

import (
	"context"
	"time"

	"netsky/spawn"
)

// hubEvery is how often the daemon checks that there are agents and tmux answers.
const hubEvery = 5 * time.Second

// burst is how long notices are collected.
const burst = 100 * time.Millisecond

// hub keeps a control client in the hub session while agents run, so that tmux reports at
// once when a session starts or ends: a person may end one by hand. Without agents there
// is no hub, as it would keep the server alive.
func (d *daemon) hub(ctx context.Context) error {
	tick := time.NewTicker(hubEvery)
	defer tick.Stop()
	for {
		if panes, err := d.o.Launcher.Tmux.Panes(ctx); err == nil && len(panes) > 0 {
			if err := d.listen(ctx); err != nil && ctx.Err() == nil {
				d.o.Log.Warn("hub", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-d.panes:
		}
	}
}

// listen returns when the control client has ended, or when the hub is the only session
// left.
func (d *daemon) listen(ctx context.Context) error {
	server := d.o.Launcher.Tmux
	release := d.o.Launcher.Quiet(ctx)
	c, err := server.OpenHub(ctx, spawn.HubSession)
	release()
	if err != nil {
		return err
	}
	detach := d.screens.attached(c)
	server.Through(c)
	defer func() {
		server.Through(nil)
		detach()
		c.Close()
		// The hub must not outlive the daemon.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		defer d.o.Launcher.Quiet(end)()
		if err := server.CloseHub(end, spawn.HubSession); err != nil {
			d.o.Log.Warn("hub", "error", err)
		}
	}()
	tick := time.NewTicker(hubEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			// A server that ends can wait for its control clients for ever.
			if err := answers(ctx, c); err != nil {
				return err
			}
		case n, ok := <-c.Notices():
			if !ok {
				return nil
			}
			if n.Name != "sessions-changed" {
				continue
			}
			// An up causes a notice for each of its sessions: one look is enough for all.
			if !rest(ctx, c.Notices()) {
				return nil
			}
			d.wake()
			d.screens.changed(ctx)
			panes, err := server.Panes(ctx)
			if err != nil || len(panes) == 0 {
				return err
			}
		}
	}
}

// answers checks that the server responds.
func answers(ctx context.Context, c interface {
	Do(ctx context.Context, line ...string) (string, error)
}) error {
	ctx, cancel := context.WithTimeout(ctx, HungAfter)
	defer cancel()
	_, err := c.Do(ctx, "display-message -p here")
	return err
}

// rest lets a burst of notices pass, and reports whether there may be more.
func rest[T any](ctx context.Context, notices <-chan T) bool {
	t := time.NewTimer(burst)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
			return true
		case _, ok := <-notices:
			if !ok {
				return false
			}
		}
	}
}
