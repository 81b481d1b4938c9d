package cli

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/spawn"
)

func (a *app) peekCommand() *cli.Command {
	return &cli.Command{
		Name:      "peek",
		Usage:     "print an agent's screen",
		ArgsUsage: "AGENT",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Value: 40, Usage: "print the last `LINES`"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "print it again whenever it changes, until Ctrl-C"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.peek,
	}
}

func (a *app) peek(c *cli.Context) error {
	id, err := oneAgent(c, "one agent")
	if err != nil {
		return err
	}
	n := c.Int("n")
	if n < 1 || n > 100_000 {
		return usagef("peek: -n %d: must be 1 to 100000", n)
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	if c.Bool("follow") {
		return a.followPane(c, l, id, n)
	}
	lines, st, err := a.paneLines(c, l, id, n)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"agent": id, "state": st.State, "pane": st.Pane(), "lines": append([]string{}, lines...)})
	}
	for _, line := range lines {
		a.print("%s", line)
	}
	return nil
}

func (a *app) paneLines(c *cli.Context, l *spawn.Launcher, id agent.ID, n int) ([]string, spawn.Status, error) {
	list, err := l.Inspect(c.Context)
	if err != nil {
		return nil, spawn.Status{}, err
	}
	st := list.Find(id)
	if st.Pane() == "" {
		return nil, st, spawn.NoPane(st)
	}
	lines, err := l.LastLines(c.Context, st, n)
	return lines, st, err
}

func (a *app) followPane(c *cli.Context, l *spawn.Launcher, id agent.ID, n int) error {
	if _, ok := view.Width(a.out); !ok {
		return usagef("peek --follow: not a terminal")
	}
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for before := "\x00"; ; {
		lines, _, err := a.paneLines(c, l, id, n)
		if err != nil && c.Context.Err() == nil {
			return err
		}
		if now := strings.Join(lines, "\n"); now != before && c.Context.Err() == nil {
			before = now
			a.clear()
			a.print("%s", now)
		}
		select {
		case <-c.Context.Done():
			return nil
		case <-tick.C:
		}
	}
}
