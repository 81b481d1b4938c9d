package spawn

import (
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/home"
)

// atOnce is how many agents one call of tmux starts. The next ones are started when these
// are ready or have failed. 50 clones, agent0 and agentinfinity fit.
const atOnce = 60

// ErrUntried is returned by Up for agents that it did not try to start because the start
// of earlier ones failed.
var ErrUntried = errors.New("not tried, because other agents failed to start")

// wantedFirst returns the agents whose desired state is saved before the first batch: all
// but those of later batches, so that an interrupted up leaves no agent wanted that it
// never began to start.
func (u *up) wantedFirst() (ids []agent.ID) {
	if u.Wanted {
		return nil
	}
	later := make(map[int]bool)
	for _, i := range u.todo[min(len(u.todo), u.atOnce()):] {
		later[i] = true
	}
	for i, p := range u.Plans {
		if !later[i] {
			ids = append(ids, p.Agent)
		}
	}
	return ids
}

// batches starts the planned agents, and the ticker with the first of them, and keeps each
// one's last step. The batch that fails, or in which no agent starts, is the last one.
func (u *up) batches(ctx context.Context) error {
	for first := true; first || len(u.todo) > 0; first = false {
		batch := u.todo[:min(len(u.todo), u.atOnce())]
		u.todo = u.todo[len(batch):]
		ends, err := u.batch(ctx, batch, first)
		failed := 0
		for n, i := range batch {
			if n < len(ends) && ends[n].Step != "" {
				u.result[i] = ends[n]
			} else {
				u.result[i] = Progress{Agent: u.Plans[i].Agent, Step: StepFailed, Err: err}
			}
			if u.result[i].Step == StepFailed {
				failed++
			}
		}
		if len(u.todo) == 0 {
			return err
		}
		switch {
		case err != nil:
		case ctx.Err() != nil:
			err = ctx.Err()
		case u.unwanted(batch):
			err = errBesideDown
		case failed < len(batch):
			continue
		}
		var ids []agent.ID
		for _, i := range u.todo {
			u.result[i] = Progress{Agent: u.Plans[i].Agent, Step: StepFailed, Err: ErrUntried}
			ids = append(ids, u.Plans[i].Agent)
		}
		return errors.Join(err, fmt.Errorf("%s: %w", agent.Span(ids), ErrUntried))
	}
	return nil
}

// errBesideDown is the error of an up when a down --force that did not wait for it ended
// its agents.
var errBesideDown = errors.New("a concurrent `netsky down` ended the agents started so far")

// unwanted reports whether every started agent of a batch is wanted down again.
func (u *up) unwanted(batch []int) bool {
	for _, i := range batch {
		if d, err := home.Desired(u.Home).Load(string(u.Plans[i].Agent)); err != nil || d.Up {
			return false
		}
	}
	return true
}

// batch starts agents together. The desired state of the first batch is already saved.
func (u *up) batch(ctx context.Context, batch []int, first bool) ([]Progress, error) {
	ids := make([]agent.ID, len(batch))
	before := make(Statuses, len(batch))
	for n, i := range batch {
		ids[n] = u.Plans[i].Agent
		if before[n] = u.Prepared.States.Find(ids[n]); before[n].Start == u.Plans[i].Start {
			before[n].State = agent.Down // recorded by the down before a planned restart
		}
	}
	if !first && !u.Wanted {
		if err := home.Desired(u.Home).SetAll(ids, true, u.By); err != nil {
			return nil, err
		}
	}
	if err := u.clear(ctx, before, u.Prepared.States.together()); err != nil {
		return nil, err
	}
	ready := make([]prepared, len(batch))
	each(len(batch), func(n int) { ready[n] = u.prepare(ctx, u.Plans[batch[n]]) })
	return u.start(ctx, ready, first && u.ticker)
}
