package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/cli/view"
	"netsky/config"
	"netsky/fleet"
	"netsky/spawn"
)

// viewVerbs shows agents and what happened.
type viewVerbs struct{ *app }

func (a viewVerbs) statusCommand() *cli.Command {
	return &cli.Command{
		Name:    "status",
		Args:    true,
		Aliases: []string{"ps", "ls", "list"},
		Usage:   "print the state of the agents, and what needs you",
		Description: "Prints the state of each agent, since when, and the mail that waits for it; -v adds what that state is based on. It\n" +
			"works without the daemon and without the database. `ps`, `ls` and `list` are aliases.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "print it again every second, until Ctrl-C"},
			&cli.BoolFlag{Name: "line", Usage: "print one short line, for the status-right of your own tmux"},
			&cli.IntFlag{Name: "width", Usage: "with --line: use at most `N` columns", DefaultText: "no limit"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "also print what each state is based on, directories and ids"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("status: takes no arguments; `netsky show %[1]s` prints the history of %[1]s", c.Args().First())
			}
			if c.Bool("line") {
				width := c.Int("width")
				if c.IsSet("width") { // a width that tmux computes may be below 1
					width = max(width, 1)
				}
				return a.statusLine(c.Context, width)
			}
			if c.Bool("watch") {
				return a.watch(c, func(width, height int) ([]string, error) {
					v, err := a.view(c.Context)
					return v.Screen(c.Bool("verbose")).Fit(width, height, a.colors()), err
				})
			}
			v, err := a.view(c.Context)
			if err != nil {
				if v, err = a.viewWithout(c.Context, err); v.Home == "" {
					return err
				}
			}
			if c.Bool("json") {
				return errors.Join(a.writeJSON(v), err)
			}
			for _, line := range v.Screen(c.Bool("verbose")).Fit(0, 0, a.colors()) {
				fmt.Fprintln(a.stdout(), line)
			}
			return err
		},
	}
}

func (a viewVerbs) view(ctx context.Context) (view.View, error) {
	l, err := a.launcher()
	if err != nil {
		return view.View{}, err
	}
	return view.Collect(ctx, a.overviewOptions(l)), nil
}

// viewWithout is view for a home whose configuration can't be read, on the tmux server that
// its agents were started on. The error says why; without a view nothing is known.
func (a viewVerbs) viewWithout(ctx context.Context, why error) (v view.View, err error) {
	h, err := a.home()
	if err != nil {
		return v, why
	}
	l, err := fleet.NewLauncher(h, config.Default(), a.environ)
	if err != nil {
		return v, why
	}
	a.config = config.Default()
	if !a.lastServer(l) {
		return v, why
	}
	return view.Collect(ctx, a.overviewOptions(l)), exitError{exitPartly, why}
}

// lastServer makes the launcher use the tmux server that agents were last started on. It
// reports false if that is unknown: another is not looked at on a guess.
func (a viewVerbs) lastServer(l *spawn.Launcher) bool {
	if a.getenv("NETSKY_TMUX_SOCKET") != "" {
		return true
	}
	ids, _ := l.Bus.Mailboxes()
	socket, latest := "", int64(0)
	for _, id := range ids {
		la, err := l.Home.LoadLaunch(id)
		if err == nil && la.StartedMS > latest {
			socket, latest = la.Socket, la.StartedMS
		}
	}
	if socket != "" {
		l.Tmux.Socket, l.Shared = socket, socket == "default"
	}
	return socket != ""
}

func (a viewVerbs) overviewOptions(l *spawn.Launcher) view.Options {
	return view.Options{
		Launcher: l, Runtimes: a.planner(l).Runtimes(), Version: Version, UserHome: a.getenv("HOME"),
		Unread:  func() (unread, settled int, err error) { return inboxVerbs(a).unread(l) },
		Mistake: func() (text, then string) { return config.Mistake(l.Home) },
		Phone:   func() []string { return phoneVerbs(a).phoneNotes(l.Home) },
		Budgets: func() []string { return costVerbs(a).budgetNotes(l.Home) },
	}
}

// watch prints the text again every second, until Ctrl-C.
func (a viewVerbs) watch(c *cli.Context, text func(width, height int) ([]string, error)) error {
	if _, ok := view.Width(a.out); !ok {
		return usagef("%s --watch: not a terminal", c.Command.Name)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		width, height := view.Size(a.out)
		lines, err := text(width, height)
		if c.Context.Err() != nil { // Ctrl-C may have ended a program that was asked
			fmt.Fprintln(a.out)
			return nil
		}
		if err != nil {
			return err
		}
		a.clear()
		fmt.Fprint(a.out, strings.Join(lines, "\n"))
		select {
		case <-c.Context.Done():
			fmt.Fprintln(a.out)
			return nil
		case <-tick.C:
		}
	}
}
