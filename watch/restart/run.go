package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/spawn"
)

// Options are what a restart needs.
type Options struct {
	Launcher *spawn.Launcher
	// Plan returns how an agent would be started now, with its conversation.
	Plan func(ctx context.Context, id agent.ID, environ []string) (spawn.Plan, error)
	// Conversation returns the conversation that a start of the agent continues, "" if it
	// has none yet; an error says why it can't be continued. nil: none has any.
	Conversation func(id agent.ID) (string, error)
	// Barred reports why an agent may not be started now, "" if it may.
	Barred func(id agent.ID) string
	Setup  []string // see [spawn.UpOptions]
	Ticker bool
}

func (o Options) conversation(id agent.ID) (string, error) {
	if o.Conversation == nil {
		return "", nil
	}
	return o.Conversation(id)
}

const (
	checkWithin = time.Minute
	runWithin   = 5 * time.Minute
	readyWithin = time.Minute // a resumed conversation may be long
)

// step is called between two durable steps, so that a test can end the process there.
var step = func(name string) {}

// Check finds what prevents the restart of agents, by default of all that are up, and
// changes nothing. It names them in the request.
func Check(ctx context.Context, o Options, ids []agent.ID, r *Request) error {
	states, err := o.Launcher.Inspect(ctx)
	if err != nil {
		return err
	}
	var list []spawn.Status
	for _, st := range states {
		if len(ids) == 0 && st.Alive() && st.Wanted {
			list = append(list, st)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(list, func(st spawn.Status) bool { return st.Agent == id }) {
			list = append(list, states.Find(id))
		}
	}
	if len(list) == 0 {
		return advice.With(errors.New("no agent is up"), "`netsky up N` starts agent0 and N clones, `netsky up AGENT` that agent, each with its conversation")
	}
	r.Agents, err = o.check(ctx, list, r.Environ)
	return err
}

// check finds what prevents the restart of agents that are up under these starts.
func (o Options) check(ctx context.Context, list []spawn.Status, environ []string) (agents []Agent, err error) {
	var errs []error
	for _, st := range list {
		errs = append(errs, mayRestart(st))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var plans []spawn.Plan
	var ids []agent.ID
	for _, st := range list {
		a, plan, err := o.look(ctx, st, environ)
		errs = append(errs, err)
		if err == nil {
			plans, ids, agents = append(plans, plan), append(ids, st.Agent), append(agents, a)
		}
	}
	_, err = o.Launcher.Prepare(ctx, plans, ids...)
	return agents, errors.Join(append(errs, err)...)
}

// mayRestart reports why an agent in that state is not restarted.
func mayRestart(st spawn.Status) error {
	switch {
	case st.State == agent.Unknown && st.Report.Start == "": // else only its receiver has gone
		return fmt.Errorf("%s: %s; it is not known what runs, so nothing is ended", st.Agent, st.How())
	case !st.Alive():
		return spawn.NeedsUp(st, "there is nothing to restart")
	case !st.Wanted:
		return advice.With(fmt.Errorf("%s: is wanted down", st.Agent), "`netsky agent %s` starts it once it has ended", st.Agent.N())
	}
	return nil
}

// look checks one agent.
func (o Options) look(ctx context.Context, st spawn.Status, environ []string) (a Agent, plan spawn.Plan, err error) {
	a = Agent{Agent: st.Agent, From: st.Start}
	if why := o.Barred(st.Agent); why != "" {
		return a, plan, fmt.Errorf("%s: not restarted: %s", st.Agent, why)
	}
	if a.Conversation, err = o.conversation(st.Agent); err != nil {
		return a, plan, advice.With(fmt.Errorf("%s: %w", st.Agent, err), "`netsky agent %s --fresh` starts it with a new one", st.Agent.N())
	}
	if plan, err = o.Plan(ctx, st.Agent, environ); err != nil {
		return a, plan, fmt.Errorf("%s: %w", st.Agent, err)
	}
	plan.Agent, plan.Start = st.Agent, st.Start
	return a, plan, nil
}

// Run carries out a request, or what is left of it. It does not end with ctx once it has
// begun, but within some minutes.
func Run(ctx context.Context, o Options, r *Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), runWithin)
	defer cancel()
	j := job{Options: o, r: r}
	j.run(ctx)
	r.EndedMS, r.Environ = time.Now().UnixMilli(), nil
	j.save()
}

type job struct {
	Options
	r *Request
}

// save keeps the progress. If that fails, a crash makes the next process look at more
// agents than it had to.
func (j *job) save() { j.Launcher.Home.Save(file(j.r.ID), j.r, true) }

// of returns the agents that are at one of the steps.
func (j *job) of(steps ...Step) (list []*Agent) {
	for i := range j.r.Agents {
		if slices.Contains(steps, j.r.Agents[i].Step) {
			list = append(list, &j.r.Agents[i])
		}
	}
	return list
}

func (j *job) run(ctx context.Context) {
	step("claimed")
	err := j.end(ctx)
	if list := j.of(""); len(list) > 0 {
		j.r.Refused = err.Error()
		for _, a := range list {
			a.Step, a.Note = Left, j.r.Refused
		}
		return
	}
	step("ended")
	j.handOver(ctx)
	step("handed over")
	j.start(ctx)
	step("started")
}

// open are the steps of agents that may still run under their old starts.
var open = []Step{"", Ending, Asked}

// end ends the agents that run under the starts named in the request.
func (j *job) end(ctx context.Context) error {
	_, err := j.Launcher.Down(ctx, spawn.DownOptions{
		Force: j.r.Force, Restart: true, By: string(j.r.By), Report: j.progress,
		Within: func(end func(...agent.ID) error) error {
			if err := j.sort(ctx); err != nil {
				return err
			}
			list := j.of(open...)
			if len(list) == 0 {
				return nil
			}
			step("checked")
			var ids []agent.ID
			for _, a := range list {
				ids = append(ids, a.Agent)
				a.Step = cmp.Or(a.Step, Ending)
			}
			if err := j.Launcher.Home.Save(file(j.r.ID), j.r, true); err != nil {
				return err // nobody could finish it after a crash
			}
			step("ending")
			return end(ids...)
		},
	})
	for _, a := range j.of(Ending, Asked) {
		a.Step, a.Note = Failed, fmt.Sprintf("it could not be ended: %v", cmp.Or(err, errMeanwhile))
	}
	j.save()
	return err
}

// errMeanwhile is the reason if a down that does not fail has found no agent to end.
var errMeanwhile = errors.New("it has changed meanwhile")

// sort looks at the agents again, while no up and no down runs. A request that has not
// begun is refused as a whole if anything is wrong; of one that has, the agents that are
// down are started.
func (j *job) sort(ctx context.Context) error {
	list, err := j.Launcher.Inspect(ctx)
	if err != nil {
		return err
	}
	if len(j.of("")) == len(j.r.Agents) {
		var here []spawn.Status
		for _, a := range j.r.Agents {
			st := list.Find(a.Agent)
			if st.Start != a.From {
				return fmt.Errorf("%s: it has been ended or started again since", a.Agent)
			}
			here = append(here, st)
		}
		within, cancel := context.WithTimeout(ctx, checkWithin)
		defer cancel()
		_, err := j.check(within, here, j.r.Environ)
		return err
	}
	for _, a := range j.of(open...) {
		switch st := list.Find(a.Agent); {
		case !st.Wanted:
			a.Step, a.Note = Left, "it is wanted down now"
		case st.Start != a.From && st.Alive():
			a.Step, a.Note = Left, "it has been started again meanwhile"
		case st.Start != a.From, !st.Alive() && st.Pane() == "":
			a.Step, a.How = Ended, cmp.Or(a.How, "while no daemon looked")
		}
	}
	return nil
}

// progress keeps what a down reports.
func (j *job) progress(p spawn.DownProgress) {
	for _, a := range j.of(open...) {
		if a.Agent != p.Agent {
			continue
		}
		switch p.Step {
		case spawn.DownAsked:
			a.Step = Asked
		case spawn.DownUnasked:
			a.How = fmt.Sprintf("could not be asked: %v", p.Err)
		case spawn.DownClosed:
			a.How = "closed by itself"
		case spawn.DownAcked:
			a.How = "its turn is finished"
		case spawn.DownUnfinished, spawn.DownTimeout:
			a.How = fmt.Sprintf("its turn was cut off after %v, of which it is told", p.After)
		case spawn.DownEnded:
			a.Step, a.How = Ended, cmp.Or(a.How, "at once")
		case spawn.DownFailed:
			a.Step, a.Note = Failed, fmt.Sprintf("it did not end: %v", p.Err)
		default:
			continue
		}
		j.save()
		step(string(a.Agent) + " " + string(p.Step))
	}
}
