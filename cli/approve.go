package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/spawn"
)

func (a *app) approvalsCommand() *cli.Command {
	return &cli.Command{
		Name:  "approvals",
		Usage: "what waits for your yes",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Action: func(c *cli.Context) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			list, err := h.Approvals()
			if err != nil {
				return err
			}
			dialogs, err := a.dialogsNow(c.Context, list)
			if err != nil { // what agents ask is known all the same
				a.warn("%v", err)
			}
			if c.Bool("json") {
				return a.writeJSON(map[string]any{
					"approvals": append([]agent.Approval{}, list...), "dialogs": append([]dialog{}, dialogs...),
				})
			}
			for _, p := range list {
				a.print("%s  %s  %s: %s%s", p.Code, p.Agent, p.Tool, p.Text, note(p.Reason))
			}
			for _, d := range dialogs {
				a.print("%s", d.words())
			}
			if len(list)+len(dialogs) == 0 {
				a.print("nothing waits for your yes")
			}
			return nil
		},
	}
}

func (a *app) approveCommand() *cli.Command {
	return &cli.Command{
		Name:      "approve",
		Usage:     "let an agent do what it asks for, once",
		ArgsUsage: "CODE|AGENT",
		Description: "CODE is the word of five letters that `netsky approvals` and the message to you name. It counts once, for that\n" +
			"one question. With AGENT it answers the dialog at which that agent waits in its pane, if netsky knows every word\n" +
			"of it; with --all-same, that of all agents that wait at the same one. An agent can't answer.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "deny", Usage: "say no instead"},
			&cli.BoolFlag{Name: "all-same", Usage: "answer all agents that wait at the same dialog"},
		},
		Action: func(c *cli.Context) error {
			if id, err := a.self(); err != nil || id != agent.Owner {
				return usagef("approve: only the owner answers, from a terminal of their own")
			}
			code, err := one(c, "one code or agent; `netsky approvals` lists what waits")
			if err != nil {
				return err
			}
			if id, err := agent.ParseAgent(code); err == nil {
				return a.decide(c.Context, id, !c.Bool("deny"), c.Bool("all-same"))
			}
			if c.Bool("all-same") {
				return usagef("approve: --all-same: is for dialogs, and wants one of the agents that wait there; a code answers one question")
			}
			h, err := a.home()
			if err != nil {
				return err
			}
			answer := agent.Answer{Allow: !c.Bool("deny"), By: "netsky approve"}
			p, err := h.Answer(code, answer)
			if errors.Is(err, agent.ErrNoApproval) {
				return fmt.Errorf("%s: %w: it may have been answered, or given up", code, err)
			}
			if err != nil {
				return err
			}
			a.print("%s: %s: %s: %s", verdict(answer.Allow), p.Agent, p.Tool, p.Text)
			a.decided(c.Context, h, p, answered(answer))
			return nil
		},
	}
}

// answerEvery is how often an open question looks for its answer.
const answerEvery = 200 * time.Millisecond

// approver puts an agent's questions before the owner: in `netsky approvals`,
// and as a message. Whoever answers first, here or at the pane, is obeyed.
func (a *app) approver(l *spawn.Launcher, id agent.ID, start string) codex.Approver {
	return func(ctx context.Context, q codex.Approval) codex.Decision {
		p, err := a.askOwner(ctx, l.Home, l.Bus, agent.Approval{
			Agent: id, Start: start, Tool: q.Tool, Text: q.Text, Reason: q.Reason, Dir: q.Dir, Message: q.Message,
		})
		if err != nil {
			return codex.Leave // the pane can still answer
		}
		defer l.Home.Settle(p.Code)
		tick := time.NewTicker(answerEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				a.decided(ctx, l.Home, p, elsewhere)
				return codex.Leave
			case <-tick.C:
			}
			if answer, ok, _ := l.Home.Answered(p.Code); ok {
				a.decided(ctx, l.Home, p, answered(answer))
				if answer.Allow {
					return codex.Accept
				}
				return codex.Decline
			}
		}
	}
}

func (a *app) interruptCommand() *cli.Command {
	return &cli.Command{
		Name:        "interrupt",
		Usage:       "end an agent's running turn",
		ArgsUsage:   "AGENT [TEXT]",
		Description: "The agent stays up and keeps its conversation. TEXT, if given, is its next message.",
		Action: func(c *cli.Context) error {
			if c.NArg() < 1 || c.NArg() > 2 {
				return usagef("interrupt: wants an agent, and at most one text in quotes")
			}
			if c.NArg() == 2 && blank(c.Args().Get(1)) {
				return usagef("interrupt: the text is empty")
			}
			id, err := agent.ParseAgent(c.Args().First())
			if err != nil {
				return err
			}
			self, err := a.self()
			if err != nil {
				return err
			}
			if self.IsClone() {
				return a.notForClones("interrupt")
			}
			l, err := a.launcher()
			if err != nil {
				return err
			}
			return a.interrupt(c.Context, l, self, id, c.Args().Get(1))
		},
	}
}

func (a *app) interrupt(ctx context.Context, l *spawn.Launcher, self, id agent.ID, text string) error {
	list, err := l.Inspect(ctx)
	if err != nil {
		return err
	}
	st := list.Find(id)
	switch {
	case !st.Alive():
		return needUp{id, fmt.Errorf("%s: is %s: nothing to interrupt", id, st.State)}
	case st.Silent:
		return fmt.Errorf("%s: runs a command of your own, which netsky can't interrupt; its pane takes keys", id)
	case st.State == agent.Unknown, st.State == agent.Waiting && !st.Asks():
		return fmt.Errorf("%s: is %s: nothing was ended", id, how(st))
	case st.State == agent.Waiting && st.Runtime == "claude":
		return atDialog{id, fmt.Errorf("%s: is %s, and netsky answers no question: nothing was ended", id, how(st))}
	case st.State == agent.Idle, st.State == agent.Starting, st.State == agent.Blocked:
		a.print("%s: is %s: nothing to interrupt", id, st.State)
	default:
		about := inHand(l, st)
		before, _ := l.Home.LoadReport(id) // none: any word of it is news
		r, err := l.Bus.Send(ctx, envelope.Envelope{From: self, To: id, Kind: envelope.KindCancel, Text: "end the running turn", Via: "cli", Time: time.Now()})
		if err != nil {
			return fmt.Errorf("not sent: %w", err)
		}
		if err := a.waitIdle(ctx, l, st, before); err != nil {
			// Unclaimed, it would end some later turn.
			_, rerr := l.Bus.Retract(context.WithoutCancel(ctx), id, func(e envelope.Envelope) bool { return e.ID == r.ID })
			if text != "" {
				err = exitError{exitPartly, fmt.Errorf("%w; the text was not sent", err)}
			}
			return errors.Join(err, rerr)
		}
		a.print("%s: its turn has ended", id)
		a.interrupted(ctx, l, self, id, about)
	}
	if text == "" {
		return nil
	}
	r, err := l.Bus.Send(ctx, envelope.Envelope{From: self, To: id, Text: text, Via: "cli", Time: time.Now()})
	if err != nil {
		return fmt.Errorf("interrupted, but the text was not sent: %w", err)
	}
	a.print("%s", r.ID)
	return nil
}

// atDialog is an error about an agent whose question only a person can answer.
type atDialog struct {
	id agent.ID
	error
}

func (e atDialog) Unwrap() error { return e.error }

// waitIdle waits until the agent is busy no more with what it was busy with by
// its report before. A demo may be at its next message by then; it is busy once
// in a turn.
func (a *app) waitIdle(ctx context.Context, l *spawn.Launcher, st spawn.Status, before agent.Report) error {
	id := st.Agent
	const limit = 10 * time.Second
	began := time.Now()
	for time.Since(began) < limit {
		r, err := l.Home.LoadReport(id)
		if err == nil && (r.State != agent.Busy && r.State != agent.Waiting ||
			st.Runtime == "demo" && before.State == r.State && before.SinceMS != r.SinceMS) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return exitError{exitPartly, fmt.Errorf("%s: asked to end its turn, still busy after %v", id, limit)}
}
