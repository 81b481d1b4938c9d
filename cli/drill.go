package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/agent/program"
	"netsky/spawn/drill"
	"netsky/spawn/throwaway"
)

func (a *app) drillCommand() *cli.Command {
	return &cli.Command{
		Name:  "drill",
		Usage: "break a temporary netsky on purpose, and check that it recovers",
		Description: "Starts demo agents in a temporary home, kills, stops, starves and limits them and netsky's own processes while mail\n" +
			"flows, waits for the recovery from each fault, and accounts for every message at the end. It costs nothing, touches\n" +
			"nothing of yours and prints what it will do before it asks. The small disk that it fills needs Linux and the right to\n" +
			"make user namespaces; without it, that fault is reported as not tried. The exit status is 1 if anything failed, and 3\n" +
			"if something could not be tried. What failed can be looked at in the home, which is then kept.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "agents", Value: 3, Usage: "start `N` workers beside agent0 and agentinfinity, at most 50"},
			&cli.DurationFlag{Name: "for", Value: 2 * time.Minute, Usage: "after one of each, go on until `TIME` has passed, such as 30s or 1h"},
			&cli.StringFlag{Name: "only", Usage: "only the faults `NAMES`, separated by commas"},
			&cli.Uint64Flag{Name: "seed", Usage: "use the random numbers of an earlier drill `SEED`", DefaultText: "a new one"},
			&cli.BoolFlag{Name: "keep", Usage: "keep the home even if everything passed"},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object at the end"},
			&cli.BoolFlag{Name: "inside", Hidden: true},
		},
		Action: a.drill,
	}
}

func (a *app) drill(c *cli.Context) error {
	if id, err := a.self(); err != nil || id != agent.Owner {
		return usagef("drill: only the owner can run it, from a terminal of their own")
	}
	bin, err := binary()
	if err != nil {
		return err
	}
	o := drill.Alone{
		Clones: c.Int("agents"), For: c.Duration("for"), Seed: c.Uint64("seed"), Keep: c.Bool("keep"),
		Binary: bin, Environ: program.Inherited(a.environ), Err: a.err, Say: func(l drill.Line) {
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
	status, err := throwaway.Rerun(c.Context, a.drillInside(o, c.Bool("json")), func() os.Signal { return endedBy(c.Context) })
	switch {
	case errors.Is(err, throwaway.ErrNotApart):
		o.NoDisk = err
		return a.runDrill(c, o)
	case err == nil && status != 0:
		return exitError{status, errTold}
	}
	return err
}

// drillInside returns the same drill as a process that can mount its small disk.
func (a *app) drillInside(o drill.Alone, asJSON bool) *exec.Cmd {
	words := []string{"drill", "--inside", "--agents", strconv.Itoa(o.Clones), "--for", o.For.String(), "--seed", strconv.FormatUint(o.Seed, 10),
		"--keep=" + strconv.FormatBool(o.Keep), "--json=" + strconv.FormatBool(asJSON)}
	if o.Only != nil {
		words = append(words, "--only", strings.Join(o.Only, ","))
	}
	cmd := exec.Command(o.Binary, words...)
	cmd.Env, cmd.Stdout, cmd.Stderr = a.environ, a.out, a.err
	return cmd
}

func (a *app) runDrill(c *cli.Context, o drill.Alone) error {
	r, kept, err := o.Run(c.Context)
	if c.Context.Err() != nil {
		if err != nil && !errors.Is(err, context.Canceled) {
			a.warn("%v", err)
		}
		return exitError{128 + int(endedBy(c.Context)), errors.New("the drill was interrupted; everything it started has ended")}
	}
	if kept != "" {
		a.warn("the home is kept: NETSKY_HOME=%s netsky log, and the verbs that ran are in %s; remove it with rm -r", kept, filepath.Join(filepath.Dir(kept), "drill.log"))
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = a.writeJSON(r)
	} else {
		a.print("%s", r.Counts())
	}
	switch {
	case err != nil:
		return err
	case r.Has(drill.Failed):
		return exitError{exitFailed, fmt.Errorf("drill: something failed, see above; `netsky drill --seed %d` repeats its choices", r.Seed)}
	case r.Has(drill.NotTried):
		return exitError{exitPartly, errors.New("drill: something could not be tried, see above; all else passed")}
	}
	return nil
}
