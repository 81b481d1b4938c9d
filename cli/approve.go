package cli

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/attention/approve"
	"netsky/cli/view"
	"netsky/codex"
	"netsky/config"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/words"
	"netsky/spawn"
)

func (a ownerVerbs) approvalsCommand() *cli.Command {
	return &cli.Command{
		Name:  "approvals",
		Usage: "list what agents ask permission for",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Action: func(c *cli.Context) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			list, err := home.Approvals(h).List()
			if err != nil {
				return err
			}
			l, err := a.launcher()
			if err != nil {
				return err
			}
			states, err := l.Inspect(c.Context)
			if err != nil { // the questions are known even so
				a.warn("%v", err)
			}
			dialogs := approve.Dialogs(states, list, a.planner(l).Runtimes())
			if c.Bool("json") {
				return a.writeJSON(map[string]any{
					"approvals": append([]agent.Approval{}, list...), "dialogs": append([]approve.Dialog{}, dialogs...),
				})
			}
			for _, p := range list {
				a.print("%s  %s  %s", p.Code, p.Agent, requestLines(p))
			}
			for _, d := range dialogs {
				a.print("%s", view.DialogWords(d))
			}
			if len(list)+len(dialogs) == 0 {
				a.print("nothing waits for your approval")
			}
			return nil
		},
	}
}

// requestLines shows a request whole: in the line of its tool if that shows all of it, else
// in lines of its own, which are indented so that none can be taken for another.
func requestLines(q agent.Approval) string {
	const indent = "\n         "
	text := q.Tool + ":"
	if line, cut := q.Brief(200); !cut && line == q.Whole() {
		text += " " + line
	} else {
		text += indent + strings.ReplaceAll(q.Whole(), "\n", indent)
	}
	for _, more := range []struct{ name, text string }{{"in", q.Dir}, {"its reason:", q.Reason}, {"netsky takes no yes to it:", q.Closed()}} {
		if line, _ := agent.Flat(more.text, 1000); line != "" {
			text += "\n       " + more.name + " " + line
		}
	}
	return text
}

func (a ownerVerbs) approveCommand() *cli.Command {
	return &cli.Command{
		Name:      "approve",
		Usage:     "allow what an agent asks for, once",
		ArgsUsage: "CODE…|AGENT",
		Description: "CODE is the five-letter code of a question, of a dialog or of a budget, from `netsky needs` or from the message to you;\n" +
			"that of a question is valid once, that of a dialog answers all agents that wait at it, and that of a budget that is\n" +
			"used up allows as much again.\n" +
			"AGENT stands for its request, if it has exactly one, which is shown, and you are asked; else for the dialog that the\n" +
			"agent's pane shows, which is answered only if netsky knows every word of it.\n" +
			"What an agent on another host of your team asks has a code as abcde@build1; the answer is for the words that `netsky needs`\n" +
			"shows, and is refused if it says something else there by now.\n" +
			"Only you can answer; for agents, this verb refuses to run.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "deny", Usage: "refuse it instead"},
			&cli.BoolFlag{Name: "all-same", Usage: "with AGENT: also answer all other agents that wait at the same dialog"},
		},
		Action: a.eachArg("a code or an agent; `netsky approvals` lists them", func(c *cli.Context, code string) error {
			if err := a.may("approve"); err != nil {
				return err
			}
			code, err := a.requestOf(c.Context, code, !c.Bool("deny"))
			if err != nil {
				return err
			}
			if id, err := agent.ParseAgent(code); err == nil {
				return a.decide(c.Context, fleet.DecideRequest{Agent: id, Same: c.Bool("all-same"), Deny: c.Bool("deny")})
			}
			if c.Bool("all-same") {
				return usagef("approve: --all-same: needs an agent that waits at a dialog; a code answers only one question")
			}
			return a.decide(c.Context, fleet.DecideRequest{Code: code, Deny: c.Bool("deny")})
		}),
	}
}

// desk returns what puts agents' questions to the owner.
func (a ownerVerbs) desk(l *spawn.Launcher) approve.Desk {
	return approve.Desk{Home: l.Home, Bus: l.Bus, Warn: func(err error) { a.warn("%v", err) }}
}

// approver puts a Codex agent's questions to the owner. The first answer counts, here
// or in the pane.
func (a ownerVerbs) approver(l *spawn.Launcher, id agent.ID, start string) codex.Approver {
	return func(ctx context.Context, q codex.Approval) (codex.Decision, func(codex.Taken)) {
		asks := agent.Approval{
			Agent: id, Start: start, Tool: q.Tool, Text: q.Text, Fields: q.Fields, Only: q.Only, Reason: q.Reason, Dir: q.Dir, Message: q.Message,
		}
		if own := agentVerbs(a).own(l.Home, a.config.Codex.CommitAndCheck == config.Allow); own != nil && own.Allows(ctx, asks) {
			a.desk(l).Granted(ctx, asks)
			return codex.Accept, nil
		}
		answer, settled, ok := a.desk(l).Put(ctx, asks)
		if !ok {
			return codex.Leave, nil // the pane can still answer
		}
		d := codex.Decline
		if answer.Allow {
			d = codex.Accept
		}
		return d, func(t codex.Taken) {
			how := approve.Unconfirmed
			switch t {
			case codex.AsSent:
				how = approve.Verdict(answer.Allow)
			case codex.Elsewhere:
				how = approve.InPane
			}
			settled(how)
		}
	}
}

func (a ownerVerbs) interruptCommand() *cli.Command {
	return &cli.Command{
		Name:      "interrupt",
		Usage:     "end an agent's running turn",
		ArgsUsage: "AGENT [TEXT]",
		Description: "The agent stays up and keeps its conversation. TEXT, if given, is its next message. AGENT may be one of another host of\n" +
			"your team: agent3@build1.",
		Action: func(c *cli.Context) error {
			if c.NArg() < 1 || c.NArg() > 2 {
				return usagef("interrupt: needs an agent, and takes at most one text, in quotes")
			}
			if c.NArg() == 2 && words.Blank(c.Args().Get(1)) {
				return usagef("interrupt: the text is empty")
			}
			host, ids, _, err := aimed(a).splitAt([]string{c.Args().First()})
			if err != nil {
				return err
			}
			if host != "" {
				return a.interruptAt(c, host, ids[0])
			}
			id, err := agent.ParseAgent(c.Args().First())
			if err != nil {
				return err
			}
			f, err := a.fleet()
			if err != nil {
				return err
			}
			r, err := fleet.Panes{Fleet: f}.Interrupt(c.Context, fleet.InterruptRequest{Agent: id, Text: c.Args().Get(1)})
			switch {
			case r.Ended:
				a.print("%s: its turn has ended", id)
			case r.Was.State == agent.Waiting:
				a.print("%s: is %s, and no turn is running: nothing to interrupt", id, r.Was.How())
			case r.Was.State != "":
				a.print("%s: is %s: nothing to interrupt", id, r.Was.State)
			}
			if r.Message != "" {
				a.print("%s", r.Message)
			}
			return err
		},
	}
}

func (a ownerVerbs) interruptAt(c *cli.Context, host string, id agent.ID) error {
	return there(a.app, c, host, "interrupt", fleet.InterruptRequest{Agent: id, Text: c.Args().Get(1)}, func(r fleet.InterruptResult) {
		if r.Ended {
			a.print("%s: its turn has ended", id.At(host))
		} else {
			a.print("%s: no turn is running: nothing to interrupt", id.At(host))
		}
		if r.Message != "" {
			a.print("%s", r.Message)
		}
	})
}
