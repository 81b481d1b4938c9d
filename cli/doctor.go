package cli

import (
	"context"

	"github.com/urfave/cli/v2"

	"netsky/cli/doctor"
	"netsky/config"
	"netsky/fleet"
)

func (a setupVerbs) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "examine the installation; --fix repairs what it safely can",
		Description: "Checks the programs that agents need and their logins, netsky's home, mailboxes and records, the daemon, the ticker,\n" +
			"the disk and the clock. Each line says what is wrong and what to do. It spends no tokens, takes a few seconds at\n" +
			"most, and works when other verbs do not. The exit status is 1 if something is wrong, 0 with warnings only.\n\n" +
			"--fix sets modes, makes missing directories, loads records that wait, removes unfinished files of killed processes,\n" +
			"and starts a daemon or ticker that should be running. If the home is larger than normal, it removes what is older than\n" +
			"[bus] keep and [records] keep, as the daemon does every hour. It prints each thing it did. It deletes no other mail, and\n" +
			"leaves alone what netsky can't prove to be its own.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "fix", Usage: "repair what netsky can prove to be its own"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.doctor,
	}
}

func (a setupVerbs) doctor(c *cli.Context) error {
	o := a.doctorOptions()
	var r doctor.Report
	if c.Bool("fix") {
		if err := a.may("doctor --fix"); err != nil {
			return err
		}
		r = doctor.Fix(c.Context, o)
	} else {
		r = doctor.Run(c.Context, o)
	}
	if c.Bool("json") {
		if err := a.writeJSON(r); err != nil {
			return err
		}
	} else {
		r.Print(a.print)
	}
	if r.Wrong > 0 {
		return exitError{exitFailed, errTold}
	}
	return nil
}

// doctorOptions collects what is examined; whatever can't be had is left out.
func (a setupVerbs) doctorOptions() doctor.Options {
	o := doctor.Options{Version: Version, Environ: a.environ, UserHome: a.getenv("HOME"), Config: config.Default()}
	if o.Home, o.HomeErr = a.home(); o.HomeErr != nil {
		return o
	}
	c, err := a.cfg()
	if o.ConfigErr = err; err == nil {
		o.Config = c
	}
	l, err := fleet.NewLauncher(o.Home, o.Config, a.environ)
	if err != nil {
		o.HomeErr = err
		return o
	}
	o.Launcher, o.Runtimes, o.Service, o.Upkeep = l, a.planner(l).Runtimes(), daemonVerbs(a).serviceOf(o.Home), upkeepOf(o.Home, o.Config)
	o.Start = func(ctx context.Context) error {
		return fleet.Revival{Fleet: a.fleetOf(l)}.ReviveServices(ctx, a.print)
	}
	return o
}
