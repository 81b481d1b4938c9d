package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/fleet"
	"netsky/internal/chaos"
	"netsky/internal/execx"
)

func (a setupVerbs) drillCommand() *cli.Command {
	return &cli.Command{
		Name:  "drill",
		Usage: "break a temporary netsky on purpose, and check that it recovers",
		Description: "Starts demo agents in a temporary home, kills, stops, starves and limits them and netsky's own processes while mail\n" +
			"flows, waits for the recovery from each fault, and accounts for every message at the end. It costs nothing, touches\n" +
			"nothing of yours and prints what it will do before it asks. The small disk that it fills needs Linux and the right to\n" +
			"make user namespaces; without it, that fault is reported as not tried. The exit status is 1 if anything failed, and 3\n" +
			"if something could not be tried or proved. What failed can be looked at in the home, which is then kept.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "agents", Value: 3, Usage: "start `N` workers beside agent0 and agentinfinity, at most 50"},
			&cli.DurationFlag{Name: "for", Value: 2 * time.Minute, Usage: "after one of each, go on until `TIME` has passed, such as 30s or 1h"},
			&cli.StringFlag{Name: "only", Usage: "only the faults `NAMES` of the list that it prints, separated by commas"},
			&cli.Uint64Flag{Name: "seed", Usage: "use the random numbers of an earlier drill `SEED`", DefaultText: "a new one"},
			&cli.BoolFlag{Name: "keep", Usage: "keep the home even if everything passed"},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object at the end"},
			&cli.BoolFlag{Name: "inside", Hidden: true},
		},
		Action: a.drill,
	}
}

func (a setupVerbs) drill(c *cli.Context) error {
	if err := a.may("drill"); err != nil {
		return err
	}
	bin, err := fleet.Binary()
	if err != nil {
		return err
	}
	o := chaos.Alone{
		Clones: c.Int("agents"), For: c.Duration("for"), Seed: c.Uint64("seed"), Keep: c.Bool("keep"),
		Binary: bin, Environ: execx.Inherited(a.environ), Err: a.err, Say: func(l chaos.Line) {
			if !c.Bool("json") {
				a.print("%s", l)
			}
		},
	}
	if c.IsSet("only") {
		o.Only = strings.Split(c.String("only"), ",")
	}
	if !c.IsSet("seed") {
		o.Seed = rand.Uint64N(1_000_000)
	}
	text, err := o.Plan()
	if err != nil {
		return usagef("drill: %w", err)
	}
	if !signal.Ignored(syscall.SIGHUP) { // closing the terminal ends it like Ctrl-C
		var stop func()
		c.Context, stop = Signals(c.Context, syscall.SIGHUP)
		defer stop()
	}
	if c.Bool("inside") {
		return a.runDrill(c, o)
	}
	fmt.Fprintln(a.err, text)
	if !c.Bool("yes") {
		if ok, err := a.confirm("drill", "Do this?"); err != nil || !ok {
			return err
		}
	}
	status, err := o.Apart(c.Context, c.Bool("json"), a.out, func() os.Signal { return endedBy(c.Context) })
	switch {
	case errors.Is(err, chaos.ErrNotApart):
		o.NoDisk = err
		return a.runDrill(c, o)
	case err == nil && status != 0:
		return exitError{status, errTold}
	}
	return err
}

func (a setupVerbs) runDrill(c *cli.Context, o chaos.Alone) error {
	r, kept, err := o.Run(c.Context)
	if kept != "" {
		a.warn("%s", chaos.Kept(kept))
	}
	switch {
	case c.Context.Err() != nil:
		return exitError{128 + int(endedBy(c.Context)), err}
	case err != nil:
		return err
	case c.Bool("json"):
		err = a.writeJSON(r)
	default:
		a.print("%s", r.Counts())
	}
	if why := r.Err(); errors.Is(why, chaos.ErrNotTried) && err == nil {
		return exitError{exitPartly, why}
	} else if err == nil {
		err = why
	}
	return err
}
