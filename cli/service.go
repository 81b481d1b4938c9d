package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/urfave/cli/v2"

	"netsky/agent/home"
	"netsky/agent/program"
	"netsky/spawn"
	"netsky/spawn/service"
)

func (a *app) serviceCommand() *cli.Command {
	dry := &cli.BoolFlag{Name: "dry-run", Usage: "print the files and commands, and change nothing"}
	asJSON := &cli.BoolFlag{Name: "json", Usage: "print one JSON object"}
	return &cli.Command{
		Name: "service", Usage: "bring up what was up after a reboot", Action: a.needsSub,
		Description: "Registers this home with systemd (on macOS: launchd), for you alone: after a reboot the agents that you had up are\n" +
			"started with their conversations, and once a minute the daemon is started if it should be running and is gone. What\n" +
			"you have ended stays down. Starting agents sends nothing to a model.",
		Subcommands: []*cli.Command{
			{Name: "install", Usage: "write the unit files and enable them; it starts no agent", Flags: []cli.Flag{dry, asJSON}, Action: func(c *cli.Context) error {
				return a.changeService(c, service.Install)
			}},
			{Name: "uninstall", Usage: "disable and remove them; running agents stay", Flags: []cli.Flag{asJSON}, Action: func(c *cli.Context) error {
				return a.changeService(c, service.Uninstall)
			}},
			{Name: "status", Usage: "report whether it is installed, enabled and active", Flags: []cli.Flag{asJSON}, Action: a.serviceStatus},
			{
				Name: "run", Usage: "bring up what is wanted up", Hidden: true, Action: a.serviceRun,
				Description: "For the unit that `netsky service install` writes. By hand: `netsky up`.",
			},
		},
	}
}

func (a *app) serviceOptions() (service.Options, error) {
	h, err := a.home()
	return a.serviceOf(h), err
}

func (a *app) serviceOf(h home.Dir) service.Options {
	o := service.Options{Home: h, System: runtime.GOOS, UserHome: a.getenv("HOME"), Environ: a.environ, User: os.Getuid()}
	own, err := binary()
	if err == nil {
		o.Binary = own
	}
	// The link on PATH outlives a moved or rebuilt checkout.
	real, err := filepath.EvalSymlinks(own)
	if link := program.Find(a.getenv("PATH"), "netsky"); link != "" && err == nil {
		if to, err := filepath.EvalSymlinks(link); err == nil && to == real {
			o.Binary = link
		}
	}
	return o
}

func (a *app) changeService(c *cli.Context, do func(context.Context, service.Options) (service.Result, error)) error {
	if err := a.notForClones("service " + c.Command.Name); err != nil {
		return err
	}
	o, err := a.serviceOptions()
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		do = func(_ context.Context, o service.Options) (service.Result, error) { return service.Plan(o) }
	}
	r, err := do(c.Context, o)
	untold := errors.Is(err, service.ErrManager)
	if err != nil && !untold {
		return err
	}
	if c.Bool("json") {
		if jerr := a.writeJSON(r); jerr != nil {
			return jerr
		}
	} else {
		a.printService(c, r, untold)
	}
	if untold {
		a.warn("%v", err)
		for _, line := range r.Failed {
			fmt.Fprintln(a.err, "once it runs (it does when you log in): "+line)
		}
		return exitError{exitPartly, errTold}
	}
	return nil
}

func (a *app) printService(c *cli.Context, r service.Result, untold bool) {
	switch {
	case c.Bool("dry-run"):
		for _, f := range r.Files {
			a.print("%s:\n%s", f.Path, f.Text)
		}
		for _, line := range r.Commands {
			a.print("would run: %s", line)
		}
	case c.Command.Name == "uninstall" && len(r.Removed) == 0:
		a.print("not installed")
	}
	for _, path := range r.Written {
		a.print("wrote %s", tilde(a, path))
	}
	for _, path := range r.Removed {
		a.print("removed %s", tilde(a, path))
	}
	if c.Command.Name == "install" && !c.Bool("dry-run") && !untold {
		a.print("enabled: what is up when the machine stops is started again; `netsky service uninstall` removes this")
	}
	if r.Note != "" {
		a.print("%s", r.Note)
	}
}

func (a *app) serviceStatus(c *cli.Context) error {
	o, err := a.serviceOptions()
	if err != nil {
		return err
	}
	s := service.Inspect(c.Context, o)
	if c.Bool("json") {
		return a.writeJSON(s)
	}
	if a.print("%s", s); s.Note != "" {
		a.print("%s", s.Note)
	}
	return nil
}

// serviceRun is what the unit runs.
func (a *app) serviceRun(c *cli.Context) error {
	if err := a.notForClones("service run"); err != nil {
		return err
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(l.Home.Path(home.DesiredDir)); errors.Is(err, fs.ErrNotExist) {
		a.print("nothing is wanted up")
		return nil
	}
	setup, err := a.tmuxSetup()
	if err != nil {
		a.warn("%v; starting tmux without it", err)
	}
	ends, err := service.Run{
		Launcher: l, Setup: setup, Plan: a.planAgain,
		Daemon: func(ctx context.Context) error { _, _, err := a.startDaemon(ctx, l.Home, l.Binary); return err },
		Report: func(p spawn.Progress) {
			if p.Agent != "" {
				a.print("%s: %s", p.Agent, p.Step)
			}
		},
	}.Up(c.Context)
	failed := err != nil
	for _, p := range ends {
		failed = failed || p.Step == spawn.StepFailed
		if p.Err != nil {
			a.warn("%s: %v", p.Agent, p.Err)
		}
	}
	switch {
	case err != nil && len(ends) == 0:
		return err
	case err != nil:
		return exitError{exitPartly, err}
	case failed:
		return exitError{exitPartly, errTold}
	case len(ends) == 0:
		a.print("no agent is wanted up that is not")
	}
	return nil
}
