package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/cli/console"
	"netsky/cli/overview"
)

func (a *app) statusCommand() *cli.Command {
	return &cli.Command{
		Name:    "status",
		Args:    true,
		Aliases: []string{"ps", "ls", "list"},
		Usage:   "how the agents are, and what waits",
		Description: "Each agent with its state, since when, and what the verdict rests on. It needs neither the daemon nor the\n" +
			"database. --line prints it in short for a tmux status-right of your own. `ps`, `ls` and `list` are the same verb.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "draw it again every second, until Ctrl-C"},
			&cli.BoolFlag{Name: "line", Usage: "one short line"},
			&cli.IntFlag{Name: "width", Usage: "with --line: in at most `N` columns", DefaultText: "as wide as it is"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "with evidence, directories and ids"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("status: takes no arguments; `netsky show %s` tells one agent's story", c.Args().First())
			}
			if c.Bool("line") {
				width := c.Int("width")
				if c.IsSet("width") { // what tmux computes may be below 1
					width = max(width, 1)
				}
				return a.statusLine(c.Context, width)
			}
			if c.Bool("watch") {
				return a.watchStatus(c)
			}
			v, err := a.view(c.Context)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return a.writeJSON(v)
			}
			for _, line := range v.Screen(c.Bool("verbose")).Fit(0, 0, a.colors()) {
				fmt.Fprintln(a.stdout(), line)
			}
			return nil
		},
	}
}

func (a *app) view(ctx context.Context) (overview.View, error) {
	l, err := a.launcher()
	if err != nil {
		return overview.View{}, err
	}
	return overview.Collect(ctx, overview.Options{
		Launcher: l, Runtimes: a.planner(l).Runtimes(), Version: Version, UserHome: a.getenv("HOME"),
		Unread: func() (int, error) { return a.unread(l) },
	}), nil
}

func (a *app) watchStatus(c *cli.Context) error {
	if _, ok := console.Width(a.out); !ok {
		return usagef("status --watch: not a terminal")
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		v, err := a.view(c.Context)
		if err != nil {
			return err
		}
		a.clear()
		width, height := console.Size(a.out)
		fmt.Fprint(a.out, strings.Join(v.Screen(c.Bool("verbose")).Fit(width, height, a.colors()), "\n"))
		select {
		case <-c.Context.Done():
			fmt.Fprintln(a.out)
			return nil
		case <-tick.C:
		}
	}
}
