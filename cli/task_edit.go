package cli

import (
	"github.com/urfave/cli/v2"

	"netsky/work/task"
)

func (a taskVerbs) taskEditCommand() *cli.Command {
	return &cli.Command{
		Name: "edit", Usage: "change a task's title, priority, estimate or agent", ArgsUsage: "ID", Action: a.taskEdit,
		Description: "Nobody is told. A task that its agent has been given gets another by `netsky task start ID --agent N`.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "title", Usage: "call it `TITLE`"},
			&cli.StringFlag{Name: "agent", Usage: "`AGENT` does it; nobody: no one"},
			&cli.IntFlag{Name: "priority", Usage: "`N`: 0 is done first, 9 last", DefaultText: "as it is"},
			&cli.DurationFlag{Name: "estimate", Usage: "it should take `TIME`, such as 90m; 0 is not known", DefaultText: "as it is"},
		},
	}
}

func (a taskVerbs) taskEdit(c *cli.Context) error {
	id, err := one(c, "one id")
	if err != nil {
		return err
	}
	change := task.Change{Assignee: c.String("agent")}
	if c.IsSet("title") {
		title := c.String("title")
		change.Title = &title
	}
	if c.IsSet("priority") {
		n := c.Int("priority")
		change.Priority = &n
	}
	if c.IsSet("estimate") {
		n := wholeMinutes(c.Duration("estimate"))
		change.EstimateMinutes = &n
	}
	if c.NumFlags() == 0 {
		return usagef("task edit: needs what to change: --title, --agent, --priority or --estimate")
	}
	return a.editTask(c, id, change)
}
