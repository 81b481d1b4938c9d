package spawn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"netsky/agent"
	"netsky/internal/execx"
	"netsky/prompts"
)

// A Preparation is what is known about planned starts: what there is, and what prevents each, checked
// once.
type Preparation struct {
	States Statuses           // the agents': those that are up stay as they are
	Taken  map[agent.ID]error // why a session of that name can't be made, or not be ended before
	Found  map[agent.ID]Found // of those that are not up

	view view
}

// Found is what one planned start needs, or what prevents it.
type Found struct {
	Prompt string
	Errs   []error
}

// Add adopts what another preparation of starts has found.
func (p *Preparation) Add(other *Preparation) {
	maps.Copy(p.Found, other.Found)
}

// Prevents returns what prevents the planned starts, or nil.
func (p *Preparation) Prevents(plans []Plan) error {
	var errs []error
	seen := make(map[string]bool) // the same error for ten clones is reported once
	for _, one := range plans {
		if err := p.Taken[one.Agent]; err != nil {
			return err
		}
		for _, err := range p.Found[one.Agent].Errs {
			if !seen[err.Error()] {
				seen[err.Error()] = true
				errs = append(errs, fmt.Errorf("%s: %w", one.Agent, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Prepare finds what prevents an up, as Up does, and changes nothing. ended is as in Look.
func (l *Launcher) Prepare(ctx context.Context, plans []Plan, ended ...agent.ID) (*Preparation, error) {
	prep, err := l.Look(ctx, plans, ended...)
	if err == nil {
		err = prep.Prevents(plans)
	}
	return prep, err
}

// Look finds what there is, and what prevents the plans of agents that are not up. Agents that the
// caller will have ended before the up are judged as if they were down. An error says that it is not
// known what there is.
func (l *Launcher) Look(ctx context.Context, plans []Plan, ended ...agent.ID) (*Preparation, error) {
	prep := new(Preparation)
	return prep, prep.look(ctx, l, plans, ended...)
}

func (p *Preparation) look(ctx context.Context, l *Launcher, plans []Plan, ended ...agent.ID) (err error) {
	if p.view, p.States, err = l.settled(ctx, plans); err != nil {
		return err
	}
	p.Taken = make(map[agent.ID]error)
	for i, st := range p.States {
		if !slices.Contains(ended, st.Agent) {
			continue
		}
		if s, ok := p.view.agents[st.Agent]; ok && st.Alive() {
			if err := l.keepPerson(st.Agent, s); err != nil {
				p.Taken[st.Agent] = err
			}
		}
		p.States[i].State = agent.Down
	}
	var starts []Plan
	for _, one := range plans {
		if other := p.view.foreign[string(one.Agent)]; other != nil {
			p.Taken[one.Agent] = other
		}
		if !p.States.Find(one.Agent).Alive() {
			starts = append(starts, one)
		}
	}
	if len(p.Taken) == 0 {
		_ = p.check(ctx, l, starts) // for Prevents
	}
	return nil
}

// Recheck checks planned starts again whose conditions have changed.
func (l *Launcher) Recheck(ctx context.Context, prep *Preparation, plans []Plan) error {
	for _, p := range plans {
		delete(prep.Found, p.Agent)
	}
	return prep.check(ctx, l, plans)
}

// check looks into the plans that it was not called for before, and returns what prevents any.
func (p *Preparation) check(ctx context.Context, l *Launcher, plans []Plan) error {
	if p.Found == nil {
		p.Found = make(map[agent.ID]Found)
	}
	for _, one := range plans {
		if _, known := p.Found[one.Agent]; !known {
			p.Found[one.Agent] = l.find(ctx, one)
		}
	}
	return p.Prevents(plans)
}

// find checks one planned start.
func (l *Launcher) find(ctx context.Context, p Plan) (f Found) {
	text, err := prompts.Render(p.input())
	f.Prompt = text
	for _, err := range []error{
		execx.CheckDir(p.Dir),
		p.Runtime.Check(ctx, agent.Launch{Agent: p.Agent, Dir: p.Dir, Model: p.Model, Resume: p.Resume, Env: l.inherited(p)}),
		err,
	} {
		if err != nil {
			f.Errs = append(f.Errs, err)
		}
	}
	return f
}

// settled returns the tmux server's view and the agents' states, after waiting for
// programs of planned agents that are ending because their sessions have gone.
func (l *Launcher) settled(ctx context.Context, plans []Plan) (view, Statuses, error) {
	for end := time.Now().Add(orphaned); ; {
		v, err := l.view(ctx)
		if err != nil {
			return v, nil, err
		}
		states, err := l.inspect(v, nil)
		ending := slices.ContainsFunc(plans, func(p Plan) bool {
			st := states.Find(p.Agent)
			return st.State == agent.Unknown && st.pane == nil && !l.elsewhere(st.socket)
		})
		if err != nil || !ending || time.Now().After(end) {
			return v, states, err
		}
		select {
		case <-ctx.Done():
			return v, nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// orphaned is how long a program whose session is gone may take to end: its keeper kills
// it after 5 s.
const orphaned = 7 * time.Second

// ErrUnknown is returned for an agent that can't be started because something of it runs,
// and can't be called up either.
var ErrUnknown = errors.New("neither up nor down")

// wasUp returns the last step of an agent that is not started because it runs.
func wasUp(st Status) Progress {
	if st.State == agent.Unknown && st.Report.Start == "" {
		return Progress{Agent: st.Agent, Step: StepFailed, Err: fmt.Errorf("%w: %s", ErrUnknown, st.Evidence)}
	}
	return Progress{Agent: st.Agent, Step: StepAlready, State: st.State, Note: st.Detail, Dialog: st.Dialog, Runtime: st.Runtime, Dir: st.Dir}
}
