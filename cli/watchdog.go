package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/config"
	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/spawn"
	"netsky/watch"
)

func (a daemonVerbs) watchdogCommand() *cli.Command {
	return &cli.Command{
		Name: "watchdog", Usage: "show what the watchdog saw and did",
		Description: "The watchdog is the part of the daemon that starts agents again when they have died, and tells you of those that hang.",
		Subcommands: []*cli.Command{
			{
				Name: "events", Args: true, Usage: "print deaths, restarts, crash loops, hangs and dialogs, oldest first",
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "n", Value: 40, Usage: "print the last `N`, at most 1000"},
					&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep printing new ones, until Ctrl-C"},
					&cli.BoolFlag{Name: "json", Usage: "print one JSON object; with --follow one per line"},
				},
				Action: func(c *cli.Context) error { return viewVerbs(a).logOf(c, "watchdog events", "events", watch.Part) },
			},
			// The session netsky-ticker runs these.
			{Name: "tick", Usage: "start the daemon if it should be running and does not answer", Hidden: true, Action: a.tick},
			{Name: "ticker", Usage: "tick every minute", Hidden: true, Action: a.ticker},
			{Name: "revive", Usage: "start the ticker if neither it nor the daemon runs", Hidden: true, Action: a.revive},
		},
		Action: a.needsSub,
	}
}

// startRevival starts `watchdog revive` beside a keeper, which reaps all its children.
func (a daemonVerbs) startRevival(h home.Dir) {
	bin, err := fleet.Binary()
	if err != nil {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	bin = update.Program(h, bin)
	p, err := os.StartProcess(bin, []string{bin, "watchdog", "revive"}, &os.ProcAttr{
		Dir: h.Root(), Env: fleet.DaemonEnviron(h, a.environ), Files: []*os.File{null, null, null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err == nil {
		_ = p.Release()
	}
}

// revive starts the ticker, which starts the daemon: in a session of its own, because the
// keeper that noticed that both are gone ends with all that is below it. The lock up lets
// only one of them start it.
func (a daemonVerbs) revive(c *cli.Context) error {
	l, err := a.night()
	if err != nil {
		return err
	}
	if err := fleet.DaemonWanted(l.Home); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, time.Minute)
	defer cancel()
	_, err = l.Up(ctx, spawn.UpOptions{By: agent.DaemonName, Wanted: true, Ticker: true})
	return err
}

// watchFor is how long a tick without a daemon looks after the agents; the ticker ends one
// after half a minute.
const watchFor = 12 * time.Second

func (a daemonVerbs) tick(c *cli.Context) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	bin, err := fleet.Binary()
	if err != nil {
		return err
	}
	lock, err := h.Lock(home.TickLock)
	if errors.Is(err, home.ErrLocked) {
		a.print("another tick is in progress: %v", err)
		return nil
	} else if err != nil {
		return err
	}
	defer lock.Unlock()
	p, did, err := daemon.Tick(c.Context, h, func(ctx context.Context) (daemon.Pong, daemon.Started, error) {
		return fleet.StartDaemon(ctx, h, bin, a.environ, func(err error) { a.warn("%v", err) })
	})
	switch {
	case errors.Is(err, daemon.ErrUnwanted):
		a.print("the daemon is meant to be down")
	case err != nil && !h.Ticks(): // the tick before this one has failed too, as far as is known
		l, lerr := a.night()
		if lerr != nil {
			return errors.Join(err, lerr)
		}
		a.print("%v; looking after the agents without it", err)
		o := a.daemonOptions(l, slog.New(slog.DiscardHandler))
		o.Escalate = escalating(l.Home, ownerVerbs(a).allWays(l.Home)) // no bridge texts the owner now
		return cmp.Or(daemon.Watch(c.Context, o, watchFor), error(exitError{exitFailed, errTold}))
	case err != nil:
		return err
	case did != "":
		a.print("%s", did)
	default:
		a.print("the daemon answers, pid %d", p.PID)
	}
	return nil
}

func (a daemonVerbs) ticker(c *cli.Context) error {
	bin, err := fleet.Binary()
	if err != nil {
		return err
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	every := time.Minute
	a.bears = config.Parts
	if cfg, err := a.cfg(); err == nil {
		every = cfg.Watchdog.Tick.Duration
	} else {
		a.warn("%v; ticking every minute", err)
	}
	a.print("netsky's ticker: every %v, starts the daemon again if it is gone", every)
	daemon.RunTicker(c.Context, daemon.TickerOptions{
		Home: h, Binary: bin, Program: func() string { return update.Program(h, bin) }, Socket: a.getenv(spawn.TickerSocket), Environ: execx.Inherited(a.environ), Every: every, Out: a.out,
		Warn: func(err error) { a.warn("%v", err) },
	})
	return nil
}
