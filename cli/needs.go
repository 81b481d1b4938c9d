package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/internal/advice"
	"netsky/work"
	"netsky/work/git"
	"netsky/work/tree"
)

// ownerVerbs shows what needs the owner, answers it, and sets how the owner is reached.
type ownerVerbs struct{ *app }

func (a ownerVerbs) needsCommand() *cli.Command {
	return &cli.Command{
		Name: "needs", Usage: "list everything that needs you, and the command that settles it", ArgsUsage: "[CODE]",
		Description: "Approvals, dialogs, logins and limits, agents that hang, crash or are down, and questions to you; with CODE, all of one.\n" +
			"Behind them, as `also`, what could be done with the agents' work now. The dashboard shows the same list.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "print it again every second, until Ctrl-C"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usagef("needs: takes one code at most")
			}
			if c.Bool("watch") {
				read, end := a.workNow(c.Context)
				defer end()
				return viewVerbs(a).watch(c, func(width, height int) ([]string, error) {
					v, err := viewVerbs(a).view(c.Context)
					lines, unsure := v.NeedsNow()
					lines = append(lines, readyLines(attention.Ready(read()))...)
					if unsure != nil {
						lines = append(lines, "! the list may be incomplete: "+unsure.Error())
					}
					for i, line := range lines {
						lines[i] = view.Cut(envelope.Plain(line), width)
					}
					return lines[:min(len(lines), max(height, 1))], err
				})
			}
			return a.needs(c)
		},
	}
}

func (a ownerVerbs) needs(c *cli.Context) error {
	v, err := viewVerbs(a).view(c.Context)
	if err != nil {
		if v, err = viewVerbs(a).viewWithout(c.Context, err); v.Home == "" {
			return err
		}
	}
	list := v.Needs
	ready := []attention.Command{}
	if one := c.NArg() > 0; !one || slices.ContainsFunc(list, attention.Need.Stepwise) {
		read, end := a.workNow(c.Context)
		states := read()
		end()
		for i := range list {
			list[i].AddStep(states)
		}
		ready = append(ready, attention.Ready(states)...)
	}
	lines, unsure := v.NeedsNow()
	lines = append(lines, readyLines(ready)...)
	if code := c.Args().First(); code != "" {
		n, ok := attention.Find(list, code)
		if !ok {
			return advice.With(errors.Join(fmt.Errorf("needs: %s: no such item; it may have been settled", envelope.Line(code, 40)), unsure),
				"`netsky needs` lists what needs you")
		}
		list, lines = []attention.Need{n}, n.Whole(time.Now())
	}
	if c.Bool("json") {
		err = errors.Join(a.writeJSON(map[string]any{"needs": list, "ready": ready}), err)
	} else if len(lines) > 0 {
		a.print("%s", strings.Join(lines, "\n"))
	}
	if unsure != nil {
		return exitError{exitPartly, fmt.Errorf("needs: the list may be incomplete: %w", unsure)}
	}
	return err
}

// workLimit is how long git may take to tell how the work is; without that, each item has its other commands.
const workLimit = 3 * time.Second

// workNow returns what reads how the agents' work is, for what can be done about it. The caller must call end.
func (a ownerVerbs) workNow(ctx context.Context) (read func() []work.State, end func()) {
	read, end = func() []work.State { return nil }, func() {}
	h, err := a.home()
	if err != nil {
		return read, end
	}
	if trees, err := tree.List(h); err == nil && len(trees) == 0 {
		return read, end
	}
	cfg, err := a.cfg()
	if err != nil || git.Version(ctx) != nil {
		return read, end // whose mistake is an item of its own, as `netsky work` reports a git too old
	}
	r, end := workVerbs(a).stateReader(ctx, h, cfg)
	return func() []work.State {
		ctx, cancel := context.WithTimeout(ctx, workLimit)
		defer cancel()
		list, _ := r.States(ctx)
		return list
	}, end
}

// maxReady is how many lines say what could be done though nothing needs the owner.
const maxReady = 5

func readyLines(list []attention.Command) (lines []string) {
	for _, r := range list[:min(len(list), maxReady)] {
		lines = append(lines, fmt.Sprintf("also   %s: %s", r.Does, r.Line))
	}
	if more := len(list) - maxReady; more > 0 {
		lines = append(lines, fmt.Sprintf("also   %d more: netsky work", more))
	}
	for i := range lines {
		lines[i] = envelope.Plain(lines[i])
	}
	return lines
}
