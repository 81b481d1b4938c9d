package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/plan"
	"netsky/prompts"
)

func (a *app) promptCommand() *cli.Command {
	return &cli.Command{
		Name:      "prompt",
		Usage:     "what an agent is told",
		ArgsUsage: "AGENT",
		Description: "Prints the system prompt that the agent's next start would get. --layers shows which part comes from where:\n" +
			"the base, the role, and the files that `addendum` in netsky.toml names.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "layers", Usage: "with a heading for each part"},
			&cli.BoolFlag{Name: "startup", Usage: "the text in front of its first message instead"},
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
