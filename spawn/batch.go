package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/home"
)

// atOnce is how many agents one call of tmux starts. The next ones are started when these
// are ready or have failed. 50 clones, agent0 and agentinfinity fit.
const atOnce = 60

func (l *Launcher) atOnce() int { return cmp.Or(l.AtOnce, atOnce) }

// ErrUntried is returned by Up for agents that it did not try to start because the start
// of earlier ones failed.
var ErrUntried = errors.New("not tried, because other agents failed to start")

// wantedFirst returns the agents whose desired state is saved before the first batch: all
// but those of later batches, so that an interrupted up leaves no agent wanted that it
// never began to start.
func (l *Launcher) wantedFirst(o UpOptions, todo []int) (ids []agent.ID) {
	if o.Wanted {
		return nil
	}
	later := make(map[int]bool)
	for _, i := range todo[min(len(todo), l.atOnce()):] {
		later[i] = true
	}
	for i, p := range o.Plans {
		if !later[i] {
			ids = append(ids, p.Agent)
		}
	}
	return ids
}

// batches starts the planned agents, and the ticker with the first of them, and puts each
// one's last step into result. The batch that fails, or in which no agent starts, is the
// last one.
func (l *Launcher) batches(ctx context.Context, o UpOptions, states Statuses, todo []int, tickerMissing bool, result []Progress, tell func(Progress)) error {
	for first := true; first || len(todo) > 0; first = false {
		batch := todo[:min(len(todo), l.atOnce())]
		todo = todo[len(batch):]
		ends, err := l.batch(ctx, o, states, batch, first, tickerMissing, tell)
		failed := 0
		for n, i := range batch {
			if n < len(ends) && ends[n].Step != "" {
				result[i] = ends[n]
			} else {
				result[i] = Progress{Agent: o.Plans[i].Agent, Step: StepFailed, Err: err}
			}
			if result[i].Step == StepFailed {
				failed++
			}
		}
		if len(todo) == 0 {
			return err
		}
		switch {
		case err != nil:
		case ctx.Err() != nil:
			err = ctx.Err()
		case l.unwanted(o.Plans, batch):
			err = errBesideDown
		case failed < len(batch):
			continue
		}
		var ids []agent.ID
		for _, i := range todo {
			result[i] = Progress{Agent: o.Plans[i].Agent, Step: StepFailed, Err: ErrUntried}
			ids = append(ids, o.Plans[i].Agent)
		}
		return errors.Join(err, fmt.Errorf("%s: %w", agent.Span(ids), ErrUntried))
	}
	return nil
}

// errBesideDown is the error of an up when a down --force that did not wait for it ended
// its agents.
var errBesideDown = errors.New("a concurrent `netsky down` ended the agents started so far")

// unwanted reports whether every started agent of a batch is wanted down again.
func (l *Launcher) unwanted(plans []Plan, batch []int) bool {
	for _, i := range batch {
		if d, err := home.Desired(l.Home).Load(string(plans[i].Agent)); err != nil || d.Up {
			return false
		}
	}
	return true
}

// batch starts agents together. The desired state of the first batch is already saved.
func (l *Launcher) batch(ctx context.Context, o UpOptions, states Statuses, batch []int, first, tickerMissing bool, tell func(Progress)) ([]Progress, error) {
	ids := make([]agent.ID, len(batch))
	before := make(Statuses, len(batch))
	for n, i := range batch {
		ids[n] = o.Plans[i].Agent
		if before[n] = states.Find(ids[n]); before[n].Start == o.Plans[i].Start {
			before[n].State = agent.Down // recorded by the down before a planned restart
		}
	}
	if !first && !o.Wanted {
		if err := home.Desired(l.Home).SetAll(ids, true, o.By); err != nil {
			return nil, err
		}
	}
	if err := l.clear(ctx, before, states.together()); err != nil {
		return nil, err
	}
	ready := make([]prepared, len(batch))
	each(len(batch), func(n int) {
		plan := o.Plans[batch[n]]
		p, err := l.prepare(ctx, plan, o.Prepared.found[plan.Agent].prompt)
		p.plan, p.launch.Agent, p.err = plan, plan.Agent, err
		ready[n] = p
	})
	return l.start(ctx, o, first && tickerMissing, ready, tell)
}
