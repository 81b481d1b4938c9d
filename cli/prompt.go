package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/fleet/plan"
	"netsky/prompts"
)

func (a mailVerbs) promptCommand() *cli.Command {
	return &cli.Command{
		Name:      "prompt",
		Usage:     "print an agent's system prompt",
		ArgsUsage: "AGENT",
		Description: "Prints the system prompt for the agent's next start. --layers shows where each part comes from: the base, the role,\n" +
			"and the files listed in `addendum` in netsky.toml.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "layers", Usage: "print a heading for each part"},
			&cli.BoolFlag{Name: "startup", Usage: "print the text in front of its first message instead"},
		},
		Action: func(c *cli.Context) error {
			id, err := oneAgent(c, "one agent")
			if err != nil {
				return err
			}
			l, err := a.launcher()
			if err != nil {
				return err
			}
			plans, _, err := a.planner(l).Plans(c.Context, []agent.ID{id}, plan.Wish{})
			if err != nil {
				return err
			}
			a.planner(l).Foresee(c.Context, &plans[0])
			in := plans[0].Prompt
			if c.Bool("startup") {
				text, err := prompts.Startup(in)
				if err != nil {
					return err
				}
				fmt.Fprintln(a.stdout(), strings.TrimSuffix(text, "\n"))
				return nil
			}
			if !c.Bool("layers") {
				text, err := prompts.Render(in)
				if err != nil {
					return err
				}
				fmt.Fprintln(a.stdout(), strings.TrimSuffix(text, "\n"))
				return nil
			}
			layers, err := prompts.Layers(in)
			if err != nil {
				return err
			}
			for i, layer := range layers {
				fmt.Fprintf(a.stdout(), "=== layer %d: %s (%d bytes)\n%s\n", i+1, layer.Name, len(layer.Text), layer.Text)
			}
			return nil
		},
	}
}
