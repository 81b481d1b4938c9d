package spawn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"netsky/agent"
	"netsky/internal/execx"
	"netsky/prompts"
)

// A Preparation is what is known about planned starts, each checked once.
type Preparation struct {
	States Statuses // the agents' states: those that are up stay as they are

	found map[agent.ID]found
}

// found is what one planned start needs, or what prevents it.
type found struct {
	prompt string
	errs   []error
}

// Add adopts what another preparation of starts has found.
func (p *Preparation) Add(other *Preparation) {
	maps.Copy(p.found, other.found)
}

// Prepare finds what prevents an up, as Up does, and changes nothing. Agents that the
// caller will have ended before the up are judged as if they were down. With an error
// the preparation contains the agents' states, if known.
func (l *Launcher) Prepare(ctx context.Context, plans []Plan, ended ...agent.ID) (*Preparation, error) {
	prep := new(Preparation)
	v, err := l.view(ctx)
	if err != nil {
		return prep, err
	}
	states, err := l.inspect(v, nil)
	if err != nil {
		return prep, err
	}
	for i := range states {
		if !slices.Contains(ended, states[i].Agent) {
			continue
		}
		if s, ok := v.agents[states[i].Agent]; ok && states[i].Alive() {
			if err := l.keepPerson(states[i].Agent, s); err != nil {
				return prep, err
			}
		}
		states[i].State = agent.Down
	}
	todo, err := l.todo(v, states, plans)
	if err != nil {
		return prep, err
	}
	prep.States = states
	return prep, l.check(ctx, prep, plans, todo)
}

// Recheck checks planned starts again whose conditions have changed.
func (l *Launcher) Recheck(ctx context.Context, prep *Preparation, plans []Plan) error {
	todo := make([]int, len(plans))
	for i, p := range plans {
		todo[i] = i
		delete(prep.found, p.Agent)
	}
	return l.check(ctx, prep, plans, todo)
}

// check finds what prevents the plans, without changing anything.
func (l *Launcher) check(ctx context.Context, prep *Preparation, plans []Plan, todo []int) error {
	var errs []error
	seen := make(map[string]bool) // the same error for ten clones is reported once
	if prep.found == nil {
		prep.found = make(map[agent.ID]found)
	}
	for _, i := range todo {
		p := plans[i]
		f, known := prep.found[p.Agent]
		if !known {
			f = l.look(ctx, p)
			prep.found[p.Agent] = f
		}
		for _, err := range f.errs {
			if !seen[err.Error()] {
				seen[err.Error()] = true
				errs = append(errs, fmt.Errorf("%s: %w", p.Agent, err))
			}
		}
	}
	return errors.Join(errs...)
}

// look checks one planned start.
func (l *Launcher) look(ctx context.Context, p Plan) (f found) {
	text, err := prompts.Render(p.input())
	f.prompt = text
	for _, err := range []error{
		execx.CheckDir(p.Dir),
		p.Runtime.Check(ctx, agent.Launch{Agent: p.Agent, Dir: p.Dir, Model: p.Model, Resume: p.Resume, Env: l.inherited(p)}),
		err,
	} {
		if err != nil {
			f.errs = append(f.errs, err)
		}
	}
	return f
}
