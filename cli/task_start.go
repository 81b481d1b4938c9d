package cli

import (
	"errors"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/fleet"
	"netsky/work/dispatch"
)

func (a taskVerbs) taskStartCommand() *cli.Command {
	return &cli.Command{
		Name: "start", Usage: "give a task to an agent", ArgsUsage: "ID",
		Description: "Starts the agent, as `netsky agent` does, unless it is up or --queue is given, and sends it the task. Its answer closes the\n" +
			"task. A task that needs others starts by itself when those are proved, or, without a check, closed; `after`\n" +
			"under [work] chooses. The task of an agent that has ended goes on when the agent is up again, or is given to another here. The other options are those of `netsky agent`.\n\n" +
			"An agent on another host of your team, such as 3@build1, must be up there, in a clone of the repository here. What it\n" +
			"commits is brought here, for `netsky work`, `diff`, `check` and `land`.",
		Flags: startFlags(
			&cli.StringFlag{Name: "agent", Usage: "`AGENT` does it", DefaultText: "its assignee"},
			&cli.BoolFlag{Name: "queue", Usage: "do not start the agent: the task waits in its mailbox"},
			&cli.BoolFlag{Name: "anyway", Usage: "start it now: it needs no other task any more"},
			&cli.BoolFlag{Name: "again", Usage: "start a task that has ended once more"},
		),
		Action: a.taskStart,
	}
}

func (a taskVerbs) taskStart(c *cli.Context) error {
	id, err := one(c, "one id; --agent says who does it")
	if err != nil {
		return err
	}
	req := fleet.TaskRequest{
		Task: id, Queue: c.Bool("queue"), Anyway: c.Bool("anyway"), Again: c.Bool("again"), Start: startRequest(c, nil, ""),
	}
	if who := c.String("agent"); who != "" {
		if req.Agent, err = agent.ParseAgentAddress(who); err != nil {
			return usagef("task start: agent: %w", err)
		}
	}
	t, err := a.tasks()
	if err != nil {
		return err
	}
	p := a.printer(false)
	p.Out, p.Size = a.err, nil // the task is what stdout is about
	t.UI = ui{a.app, view.NewUp(p)}
	s, err := t.Start(c.Context, req)
	if s.Task.Brief == "" && err != nil { // nothing was recorded
		var told exitError
		if errors.As(err, &told) {
			return err
		}
		return a.taskErr("task start", err)
	}
	if !c.Bool("json") {
		a.print("%s", t.Started(s))
	} else if werr := a.writeJSON(map[string]any{"task": s.Task, "waits": append([]string{}, idsOf(s)...), "kept": s.Kept}); werr != nil {
		return werr
	}
	return err
}

func idsOf(s dispatch.Started) (ids []string) {
	for _, k := range s.Waits {
		ids = append(ids, k.ID)
	}
	return ids
}
