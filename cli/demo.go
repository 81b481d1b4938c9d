package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"netsky/cli/view"
	"netsky/config"
	"netsky/fleet"
	"netsky/internal/chaos"
	"netsky/internal/execx"
	"netsky/spawn/demo"
)

func (a setupVerbs) demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "a one-minute tour in a temporary home",
		Description: "Has two demo agents, which are no models, work on a temporary git repository: edits and commits, a conflict foretold,\n" +
			"a check, a landing, an undo, and an agent and the daemon killed meanwhile; then it counts the answers. On a terminal it\n" +
			"pauses for reading. It costs nothing and leaves nothing behind, even if it is killed. Without git it is shorter.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "quick", Usage: "do not pause for reading"}},
		Action: a.takeTour,
		Subcommands: []*cli.Command{{
			Name: "serve", Usage: "run a demo agent", ArgsUsage: "AGENT", Hidden: true, Action: a.demoServe,
			Description: "For netsky itself, which runs it in a demo agent's pane. By hand: `netsky agent N --type demo`.",
		}, {
			Name: "mind", Usage: "clean up after a tour or a drill that was killed", Hidden: true, Action: a.mindHome,
			Description: "For netsky itself, which runs it beside a temporary home.",
		}},
	}
}

// takeTour runs the tour in a temporary home.
func (a setupVerbs) takeTour(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("demo: takes no arguments")
	}
	if err := a.may("demo"); err != nil {
		return err
	}
	// Closing the terminal ends the tour like Ctrl-C, unless SIGHUP is ignored.
	ctx := c.Context
	if !signal.Ignored(syscall.SIGHUP) {
		var stop func()
		ctx, stop = Signals(ctx, syscall.SIGHUP)
		defer stop()
	}
	o, err := a.tourOptions()
	if err != nil {
		return err
	}
	// Nobody reads along where the output is not a terminal.
	_, terminal := view.Width(a.out)
	o.Quick = c.Bool("quick") || !terminal
	err = demo.Tour(ctx, o)
	if errors.Is(err, demo.ErrInterrupted) {
		return exitError{128 + int(endedBy(ctx)), err}
	}
	return err
}

func (a setupVerbs) tourOptions() (demo.TourOptions, error) {
	bin, err := fleet.Binary()
	o := demo.TourOptions{
		Binary: bin, Environ: execx.Inherited(a.environ), Width: 120, Colors: a.colors(), Err: a.err,
		Say: func(text string) { fmt.Fprintln(a.stdout(), text) },
	}
	if width, ok := view.Width(a.out); ok {
		o.Width = width
	}
	return o, err
}

func (a setupVerbs) mindHome(c *cli.Context) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	bin, err := fleet.Binary()
	if err != nil {
		return err
	}
	what, err := chaos.Mind(c.Context, h, a.in, chaos.SandboxOptions{Binary: bin, Environ: a.environ})
	switch {
	case errors.Is(err, chaos.ErrNotBeside):
		return usagef("demo mind: %w", err)
	case err == nil && what != "":
		a.warn("the %s was killed; its processes have ended and its home is removed", what)
	}
	return err
}

func (a setupVerbs) demoServe(c *cli.Context) error {
	id, err := oneAgent(c, "one agent")
	if err != nil {
		return err
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	a.bears = config.Ignored // the watchdog may have started it again
	b, err := a.bus()
	if err != nil {
		return err
	}
	err = demo.Run(c.Context, demo.Options{Home: h, Agent: id, Start: a.getenv("NETSKY_START"), Bus: b, In: a.in, Out: a.out})
	var crash demo.Crash
	switch {
	case errors.As(err, &crash):
		return exitError{crash.Status, err}
	case errors.Is(err, context.Canceled):
		return exitError{128 + int(endedBy(c.Context)), errTold} // as a shell reports it
	}
	return err
}
