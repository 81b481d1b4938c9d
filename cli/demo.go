package cli

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"netsky/spawn/demo"
)

func (a *app) demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "a tour of a minute, in a home of its own that is removed again",
		Description: "Starts three demo agents, hands out ten jobs over the bus, kills an agent and the daemon on the way, and counts\n" +
			"what came of it. It costs nothing and leaves nothing behind, also when it is killed.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "quick", Usage: "without the pauses for reading along"}},
		Action: a.tour,
		Subcommands: []*cli.Command{{
			Name: "serve", Usage: "be a demo agent", ArgsUsage: "AGENT", Hidden: true, Action: a.demoServe,
			Description: "For netsky itself, which runs it in a demo agent's pane. By hand: `netsky agent N --type demo`.",
		}, {
			Name: "mind", Usage: "clear up after a tour that was killed", Hidden: true, Action: a.mindTour,
			Description: "For netsky itself, which runs it beside a tour.",
		}},
	}
}

// endedBy is the signal that has ended the context: main names it as the cause.
func endedBy(ctx context.Context) syscall.Signal {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if strings.HasPrefix(context.Cause(ctx).Error(), sig.String()) {
			return sig
		}
	}
	return syscall.SIGINT
}

func (a *app) demoServe(c *cli.Context) error {
	id, err := oneAgent(c, "one agent")
	if err != nil {
		return err
	}
	h, err := a.home()
	if err != nil {
		return err
	}
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
		return exitError{128 + int(endedBy(c.Context)), errTold} // as a shell says it
	}
	return err
}
