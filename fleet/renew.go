package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"netsky/agent"
	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/home"
)

// Program is the netsky of a fleet as a program: what restarts its daemon, and puts another build in its place.
type Program struct{ *Fleet }

// binary returns the program's file, which a link may lead to.
func (f Program) binary() (string, error) {
	file, err := filepath.EvalSymlinks(f.Launcher.Binary)
	if err != nil {
		return "", fmt.Errorf("netsky's own program: %w", err)
	}
	return file, nil
}

// begin begins a run in the home, which is made if there is none yet.
func (f Program) begin(r update.Run) (*update.Draft, error) {
	if err := f.Make(); err != nil {
		return nil, err
	}
	return update.Begin(f.Home, r)
}

// Restart restarts the daemon, as the program that is installed now, under a supervisor that watches whether it operates, and
// waits for that. Agents are not touched. Of a run that was cut off it waits for the end instead. With
// [update.ErrInterrupted], ctx has ended and the supervisor continues.
func (f Program) Restart(ctx context.Context) (update.Run, error) {
	if err := f.May("daemon restart"); err != nil {
		return update.Run{}, err
	}
	binary, err := f.binary()
	if err != nil {
		return update.Run{}, err
	}
	r := update.Run{Kind: update.Restart, Binary: binary, By: f.Actor, To: update.Build{Version: f.Version}}
	if p, err := daemon.Ping(ctx, f.Home); err == nil {
		r.From.Version = p.Version
	}
	draft, err := f.begin(r)
	if errors.Is(err, update.ErrUnfinished) {
		if r, pending := update.Pending(f.Home); pending {
			f.warn("%s %s was cut off: it is finished now", r.Kind, r.ID)
			return f.follow(ctx, r.ID)
		}
	}
	if err != nil {
		return r, err
	}
	if err := home.Desired(f.Home).Set(agent.DaemonName, true, string(f.Actor)); err != nil {
		return r, errors.Join(err, draft.Abandon(ctx, err))
	}
	if r, err = draft.HandOver(ctx); err != nil {
		return r, err
	}
	return f.follow(ctx, r.ID)
}

// follow has a supervisor carry out the run, says what it does, and waits for its end. What it began goes on if ctx ends.
func (f Program) follow(ctx context.Context, id string) (update.Run, error) {
	if err := update.Finish(f.Home, DaemonEnviron(f.Home, f.Environ)); err != nil {
		return update.Run{}, err
	}
	r, err := update.Follow(ctx, f.Home, id, func(r update.Run, s update.Step) { f.UI.Step(Step{Line: r.Line(s)}) })
	if err == nil && r.State != update.Done {
		err = errors.New(r.Outcome(r.State))
	}
	return r, err
}

// RenewAgents restarts, one after the other, the agents that run another build than version, each once its turn has
// ended, and continues with the next only when the last one is back.
func (f Program) RenewAgents(ctx context.Context, version string) error {
	list, err := f.Launcher.Inspect(ctx)
	if err != nil {
		return err
	}
	for _, st := range list {
		if !st.Alive() || !st.Wanted || st.Build == version {
			continue
		}
		if _, err := f.Fleet.Restart(ctx, RestartRequest{Agents: []agent.ID{st.Agent}}); err != nil {
			return fmt.Errorf("%s: %w; the others keep their build", st.Agent, err)
		}
	}
	return nil
}
