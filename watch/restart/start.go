package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/proc"
	"netsky/spawn"
	"netsky/store"
)

// handOver sends the handoff to the agents that have ended.
func (j *job) handOver(ctx context.Context) {
	if j.r.Handoff == "" {
		return
	}
	for _, a := range j.of(Ended) {
		_, err := j.Launcher.Bus.Send(ctx, envelope.Envelope{
			ID: "handoff-" + j.r.ID + "-" + string(a.Agent), From: j.r.By, To: a.Agent, Kind: envelope.KindHandoff, Via: "cli",
			Text: j.r.Handoff, Time: time.UnixMilli(j.r.AtMS),
		})
		if err != nil {
			a.Note = fmt.Sprintf("the handoff was not sent: %v", err)
		}
	}
}

// start starts the agents that have ended: agent0 first, whose mailbox the others' answers
// go to and whom the owner talks to.
func (j *job) start(ctx context.Context) {
	list := j.of(Ended)
	slices.SortFunc(list, func(a, b *Agent) int { return agent.Compare(a.Agent, b.Agent) })
	var plans []spawn.Plan
	var going []*Agent
	for _, a := range list {
		plan, err := j.Plan(ctx, a.Agent, j.r.Environ)
		plan.Agent, plan.Start = a.Agent, a.From
		if err == nil {
			_, err = j.Launcher.Prepare(ctx, []spawn.Plan{plan})
		}
		if err != nil { // something has changed since the check
			j.failed(ctx, a, err)
			continue
		}
		plans, going = append(plans, plan), append(going, a)
	}
	if len(plans) == 0 {
		return
	}
	ends, err := j.Launcher.Up(ctx, spawn.UpOptions{
		Plans: plans, By: string(j.r.By), Wanted: true, Setup: j.Setup, Ticker: j.Ticker, ReadyWithin: readyWithin,
		Report: func(p spawn.Progress) { j.came(ctx, going, p) },
	})
	for i, a := range going {
		if a.Step.Over() {
			continue
		}
		cause := err
		if i < len(ends) {
			cause = cmp.Or(ends[i].Err, err)
			if ends[i].Step == spawn.StepAlready { // an earlier process has started it
				ends[i] = j.await(ctx, a.Agent)
			}
			j.came(ctx, going, ends[i])
		}
		if errors.Is(cause, spawn.ErrUnwanted) {
			a.Step, a.Note = Left, "it is wanted down now"
		} else if !a.Step.Over() {
			j.failed(ctx, a, cmp.Or(cause, errors.New("it is not known whether it was started")))
		}
	}
	j.save()
}

// await waits for the report of an agent that is starting.
func (j *job) await(ctx context.Context, id agent.ID) spawn.Progress {
	for began := time.Now(); ; {
		list, err := j.Launcher.Inspect(ctx)
		st := list.Find(id)
		switch {
		case err == nil && st.State.Ready():
			return spawn.Progress{Agent: id, Step: spawn.StepReady, State: st.State}
		case err == nil && !st.Alive():
			return spawn.Progress{Agent: id, Step: spawn.StepFailed, Err: fmt.Errorf("it is %s", st.How())}
		case ctx.Err() != nil, time.Since(began) > readyWithin:
			return spawn.Progress{Agent: id, Step: spawn.StepSlow, Note: st.Evidence}
		}
		_ = proc.Sleep(ctx, 100*time.Millisecond)
	}
}

// came keeps what an up reports.
func (j *job) came(ctx context.Context, list []*Agent, p spawn.Progress) {
	at := slices.IndexFunc(list, func(a *Agent) bool { return a.Agent == p.Agent && !a.Step.Over() })
	if at < 0 {
		return
	}
	a := list[at]
	la, err := j.Launcher.Home.LoadLaunch(a.Agent)
	if err == nil && la.Start != a.From {
		a.Start = la.Start
	}
	switch p.Step {
	case spawn.StepReady:
		a.Step = Ready
	case spawn.StepSlow:
		a.Step, a.Note = Slow, cmp.Or(p.Note, fmt.Sprintf("no report within %v", readyWithin))
	case spawn.StepFailed:
		j.failed(ctx, a, p.Err)
		return
	default:
		return
	}
	a.Resumed, _ = j.conversation(a.Agent)
	text := fmt.Sprintf("restarted (asked by %s): %s", j.r.By, a.Line())
	j.record(ctx, a, store.LevelInfo, text)
	j.save()
	step(string(a.Agent) + " ready")
}

// failed keeps why an agent that was ended did not start. It is wanted up, so the watchdog
// tries again.
func (j *job) failed(ctx context.Context, a *Agent, err error) {
	a.Step, a.Note = Failed, fmt.Sprintf("%v; it has ended and is tried again, as after a death", err)
	j.record(ctx, a, store.LevelError, "restart failed: "+a.Note)
	j.save()
}

func (j *job) record(ctx context.Context, a *Agent, level, text string) {
	if j.Launcher.Journal != nil {
		j.Launcher.Journal.Record(ctx, store.AddLog{
			Key: "planned-" + j.r.ID + "-" + string(a.Agent), Level: level, Part: "restart", Actor: a.Agent, About: cmp.Or(a.Start, a.From), Text: text,
		})
	}
}
