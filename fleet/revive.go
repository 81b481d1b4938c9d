package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"netsky/agent"
	"netsky/home"
	"netsky/spawn"
)

// errPartly is returned if some were started and others not.
var errPartly = errors.New("not everything that is wanted up is up")

// Wanted returns the agents whose desired state is up, agent0 first, and whether the
// daemon's is.
func Wanted(h home.Dir) (ids []agent.ID, daemon bool, err error) {
	list, err := os.ReadDir(h.Path(home.DesiredDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	var errs []error
	for _, e := range list {
		id, perr := agent.Parse(e.Name())
		if e.Name() != agent.DaemonName && (perr != nil || !id.IsAgent()) {
			continue
		}
		d, err := home.Desired(h).Load(e.Name())
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: can't read whether it is wanted up: %w", e.Name(), err))
		case d.Up && perr != nil:
			daemon = true
		case d.Up:
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, agent.Compare)
	return ids, daemon, errors.Join(errs...)
}

// Revival starts again what should run, as it was started.
type Revival struct{ *Fleet }

// Revive starts the daemon and the agents that are wanted up and are not. It changes no desired
// state. One agent that can't be started does not stop the others; the error joins them all. say
// prints a line of progress.
func (f Revival) Revive(ctx context.Context, say func(format string, args ...any)) error {
	var errs []error
	var ends []spawn.Progress
	err := f.Launcher.Alone(ctx, nil, func() error {
		ids, daemon, err := Wanted(f.Home)
		errs = append(errs, err)
		prep, err := f.Launcher.Look(ctx, nil)
		if err != nil {
			return err
		}
		var plans []spawn.Plan
		for _, id := range ids {
			if prep.States.Find(id).Alive() {
				continue
			}
			p, err := f.PlanAgain(ctx, id, nil)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", id, err))
			} else if err = f.Launcher.Recheck(ctx, prep, []spawn.Plan{p}); err != nil {
				errs = append(errs, err) // it names the agent
			} else {
				plans = append(plans, p)
			}
		}
		if len(plans) == 0 {
			say("no agent is wanted up that is not")
		}
		if len(plans) > 0 || daemon {
			ends, err = f.Launcher.UpPrepared(ctx, f.wanted(ctx, plans, prep, daemon, say))
		}
		return err
	})
	for _, p := range ends {
		if p.Err != nil && !errors.Is(p.Err, spawn.ErrUnwanted) { // the owner has just decided so
			errs = append(errs, fmt.Errorf("%s: %w", p.Agent, p.Err))
		}
	}
	if err = errors.Join(append(errs, err)...); err != nil && len(ends) > 0 {
		return partly(fmt.Errorf("%w: %w", errPartly, err))
	}
	return err
}

// ReviveServices starts the daemon and the ticker, if they are wanted and missing, and no agent.
func (f Revival) ReviveServices(ctx context.Context, say func(format string, args ...any)) error {
	_, err := f.Launcher.Up(ctx, f.wanted(ctx, nil, nil, true, say))
	return err
}

func (f Revival) wanted(ctx context.Context, plans []spawn.Plan, prep *spawn.Preparation, daemon bool, say func(format string, args ...any)) spawn.UpOptions {
	setup, err := Daemon(f).tmuxSetup()
	if err != nil {
		f.warn("%v; without it", err)
	}
	return spawn.UpOptions{
		Plans: plans, Prepared: prep, Wanted: true, Ticker: daemon, By: "service", Setup: setup,
		Report: func(p spawn.Progress) {
			if p.Agent != "" {
				say("%s: %s", p.Agent, p.Step)
			}
		},
		Begin: func() error {
			if !daemon {
				return nil
			}
			if err := DaemonWanted(f.Home); err != nil {
				return err
			}
			_, _, err := Daemon(f).startDaemon(ctx)
			return err
		},
	}
}
