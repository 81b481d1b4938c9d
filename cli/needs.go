package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/bus/envelope"
	"netsky/cli/console"
	"netsky/cli/overview"
	"netsky/internal/advice"
	"netsky/spawn"
	"netsky/spawn/needs"
	"netsky/spawn/worktree/git"
)

func (a *app) needsCommand() *cli.Command {
	return &cli.Command{
		Name: "needs", Usage: "list everything that needs you, and the command that settles it", ArgsUsage: "[CODE]",
		Description: "Approvals, dialogs, logins and limits, agents that hang, crash or are down, and questions to you; with CODE, all of one.\n" +
			"The dashboard shows the same list.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "print it again every second, until Ctrl-C"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usagef("needs: takes one code at most")
			}
			if c.Bool("watch") {
				return a.watch(c, func(width, height int) ([]string, error) {
					v, err := a.view(c.Context)
					lines, unsure := v.NeedsNow()
					if unsure != nil {
						lines = append(lines, "! the list may be incomplete: "+unsure.Error())
					}
					for i, line := range lines {
						lines[i] = console.Cut(envelope.Plain(line), width)
					}
					return lines[:min(len(lines), max(height, 1))], err
				})
			}
			return a.needs(c)
		},
	}
}

func (a *app) needs(c *cli.Context) error {
	v, err := a.view(c.Context)
	if err != nil {
		if v, err = a.viewWithout(c.Context, err); v.Home == "" {
			return err
		}
	}
	list := v.Needs
	if c.NArg() > 0 || c.Bool("json") { // the lines have no room for steps
		a.steps(c.Context, list)
	}
	lines, unsure := v.NeedsNow()
	if code := c.Args().First(); code != "" {
		n, ok := needs.Find(list, code)
		if !ok {
			return advice.With(errors.Join(fmt.Errorf("needs: %s: no such item; it may have been settled", envelope.Line(code, 40)), unsure),
				"`netsky needs` lists what needs you")
		}
		list, lines = []needs.Need{n}, n.Whole(time.Now())
	}
	if c.Bool("json") {
		err = errors.Join(a.writeJSON(map[string]any{"needs": list}), err)
	} else if len(lines) > 0 {
		a.print("%s", strings.Join(lines, "\n"))
	}
	if unsure != nil {
		return exitError{exitPartly, fmt.Errorf("needs: the list may be incomplete: %w", unsure)}
	}
	return err
}

// stepsLimit is how long git may take to tell the next steps; without them each item has its other commands.
const stepsLimit = 5 * time.Second

// steps adds to conflicts between two agents what can be done about them now.
func (a *app) steps(ctx context.Context, list []needs.Need) {
	if !slices.ContainsFunc(list, needs.Need.Stepwise) {
		return
	}
	h, err := a.home()
	if err != nil {
		return
	}
	cfg, err := a.cfg()
	if err != nil || git.Version(ctx) != nil {
		return // whose mistake is an item of its own, as `netsky work` reports a git too old
	}
	ctx, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	r, end := a.stateReader(ctx, h, cfg)
	defer end()
	states, _ := r.States(ctx)
	for i := range list {
		list[i].AddStep(states)
	}
}

// need returns what needs the owner under that code.
func (a *app) need(ctx context.Context, l *spawn.Launcher, code string) (needs.Need, bool) {
	list, err := l.Inspect(ctx)
	if err != nil {
		return needs.Need{}, false
	}
	found, _ := overview.Needs(ctx, a.overviewOptions(l), list, overview.Daemon{}) // what can't be read has no code
	return needs.Find(found, code)
}
