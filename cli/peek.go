package cli

import (
	"context"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/cli/view"
	"netsky/fleet"
)

// paneVerbs shows and attaches to agents' terminals.
type paneVerbs struct{ *app }

func (a paneVerbs) peekCommand() *cli.Command {
	return &cli.Command{
		Name:        "peek",
		Usage:       "print an agent's screen",
		ArgsUsage:   "AGENT",
		Description: "Of an agent on another host of your team, agent3@build1, it is the screen there.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Value: 40, Usage: "print the last `LINES`"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "print it again whenever it changes, until Ctrl-C"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.peek,
	}
}

func (a paneVerbs) peek(c *cli.Context) error {
	n := c.Int("n")
	if n < 1 || n > 100_000 {
		return usagef("peek: -n %d: must be 1 to 100000", n)
	}
	host, ids, _, err := aimed(a).splitAt(c.Args().Slice())
	switch {
	case err != nil:
		return err
	case host != "" && c.NArg() > 1:
		return usagef("peek: takes one agent, not %d", c.NArg())
	case host != "" && c.Bool("follow"):
		return a.followAt(c.Context, host, fleet.PeekRequest{Agent: ids[0], Lines: n})
	case host != "":
		return there(a.app, c, host, "peek", fleet.PeekRequest{Agent: ids[0], Lines: n}, a.pane)
	}
	id, err := oneAgent(c, "one agent")
	if err != nil {
		return err
	}
	f, err := a.fleet()
	if err != nil {
		return err
	}
	r := fleet.PeekRequest{Agent: id, Lines: n}
	if c.Bool("follow") {
		return a.followPane(c.Context, 300*time.Millisecond, func(ctx context.Context) (fleet.PeekResult, error) {
			return fleet.Panes{Fleet: f}.Peek(ctx, r)
		})
	}
	v, err := fleet.Panes{Fleet: f}.Peek(c.Context, r)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(v)
	}
	a.pane(v)
	return nil
}

func (a paneVerbs) pane(v fleet.PeekResult) {
	for _, line := range v.Lines {
		a.print("%s", line)
	}
}

// followAt follows the screen of an agent on another host.
func (a paneVerbs) followAt(ctx context.Context, host string, r fleet.PeekRequest) error {
	f, err := a.fleet()
	if err != nil {
		return err
	}
	return a.followPane(ctx, 2*time.Second, func(ctx context.Context) (v fleet.PeekResult, err error) {
		err = fleet.Host{Fleet: f, Name: host}.Do(ctx, "peek", r, &v)
		return v, err
	})
}

func (a paneVerbs) followPane(ctx context.Context, every time.Duration, look func(context.Context) (fleet.PeekResult, error)) error {
	if _, ok := view.Width(a.out); !ok {
		return usagef("peek --follow: not a terminal")
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for before := "\x00"; ; {
		v, err := look(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if now := strings.Join(v.Lines, "\n"); now != before && ctx.Err() == nil {
			before = now
			a.clear()
			a.print("%s", now)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
