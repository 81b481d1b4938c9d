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

// errChanged is returned when the owner has changed the desired state meanwhile.
var errChanged = errors.New("its desired state has changed meanwhile")

// errPartly is returned if some were started and others not.
var errPartly = errors.New("not everything that is wanted up is up")

// A reviver brings up what is wanted up.
type reviver struct {
	*Fleet
	setup []string // commands for the tmux server
	say   func(format string, args ...any)
}

func (f *Fleet) reviver(say func(format string, args ...any)) reviver {
	setup, err := f.tmuxSetup()
	if err != nil {
		f.warn("%v; without it", err)
	}
	return reviver{f, setup, say}
}

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

// Revive starts the daemon and the agents that are wanted up and are not. It changes no desired
// state. One agent that can't be started does not stop the others; the error joins them all. say
// prints a line of progress.
func (f *Fleet) Revive(ctx context.Context, say func(format string, args ...any)) error {
	r := f.reviver(say)
	ids, daemon, err := Wanted(r.Launcher.Home)
	errs := []error{err}
	var plans []spawn.Plan
	list, _ := r.Launcher.Inspect(ctx) // Up itself fails if tmux does not answer
	for _, id := range ids {
		if list.Find(id).Alive() {
			continue
		}
		p, err := r.PlanAgain(ctx, id, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", id, err))
			continue
		}
		plans = append(plans, p)
	}
	if len(plans) == 0 && !daemon {
		r.say("no agent is wanted up that is not")
		return errors.Join(errs...)
	}
	ends, err := r.up(ctx, plans, daemon)
	if err != nil && len(ends) == 0 && len(plans) > 0 { // one may have stopped the others
		err = nil
		for _, p := range plans {
			end, oneErr := r.up(ctx, []spawn.Plan{p}, daemon)
			ends = append(ends, end...)
			if !errors.Is(oneErr, errChanged) {
				errs = append(errs, oneErr) // it names the agent
			}
		}
	}
	for _, p := range ends {
		if p.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.Agent, p.Err))
		}
	}
	if err := errors.Join(append(errs, err)...); err != nil && len(ends) > 0 {
		return partly(fmt.Errorf("%w: %w", errPartly, err))
	} else if err != nil {
		return err
	}
	if len(plans) == 0 {
		r.say("no agent is wanted up that is not")
	}
	return nil
}

// ReviveServices starts the daemon and the ticker, if they are wanted and missing, and no agent.
func (f *Fleet) ReviveServices(ctx context.Context, say func(format string, args ...any)) error {
	_, err := f.reviver(say).up(ctx, nil, true)
	return err
}

// up starts some of them, unless the owner has just decided otherwise.
func (r reviver) up(ctx context.Context, plans []spawn.Plan, daemon bool) ([]spawn.Progress, error) {
	h := r.Home
	wants := func(name string) bool { d, err := home.Desired(h).Load(name); return err == nil && d.Up }
	return r.Launcher.Up(ctx, spawn.UpOptions{
		Plans: plans, Wanted: true, Ticker: daemon, By: "service", Setup: r.setup, Report: r.report,
		Begin: func() error { // no other up or down runs now
			for _, p := range plans {
				if !wants(string(p.Agent)) {
					return fmt.Errorf("%s: %w", p.Agent, errChanged)
				}
			}
			switch {
			case wants(agent.DaemonName):
				_, _, err := r.startDaemon(ctx)
				return err
			case daemon:
				return fmt.Errorf("daemon: %w", errChanged)
			}
			return nil
		},
	})
}

func (r reviver) report(p spawn.Progress) {
	if p.Agent != "" {
		r.say("%s: %s", p.Agent, p.Step)
	}
}
