package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
	"gopkg.in/natefinch/lumberjack.v2"

	"netsky/agent"
	"netsky/attention"
	"netsky/cli/view"
	"netsky/config"
	"netsky/daemon"
	"netsky/daemon/upkeep"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/spawn"
	"netsky/spawn/keeper"
	"netsky/store"
)

func (a *app) daemonCommand() *cli.Command {
	return &cli.Command{
		Name:  "daemon",
		Usage: "manage the daemon, which watches the agents, keeps the records and serves the dashboard",
		Description: "`netsky up` starts it. Agents and their mail work without it. Until it runs again, mail that programs put into an\n" +
			"outbox waits, and deaths of agents are not recorded.",
		Subcommands: []*cli.Command{
			{
				Name: "run", Usage: "run the daemon in the foreground", Action: a.daemonRun,
				Flags: []cli.Flag{&cli.BoolFlag{Name: "wanted", Usage: "end at once if the daemon has been stopped; for the verbs that start it"}},
			},
			{
				Name: "status", Usage: "report whether it is running and answers",
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
				Action: a.daemonStatus,
			},
			{Name: "stop", Usage: "end it; `netsky up` starts it again", Action: a.daemonStop},
		},
		Action: a.needsSub,
	}
}

func (a *app) needsSub(c *cli.Context) error {
	names := ""
	for _, s := range c.Command.Subcommands {
		if !s.Hidden {
			names += " " + s.Name
		}
	}
	verb := verbOf(c)
	if c.NArg() > 0 {
		return usagef("%s: no verb %q; there are:%s", verb, c.Args().First(), names)
	}
	return usagef("%s: needs one of:%s", verb, names)
}

var errDaemonRuns = advice.With(errors.New("a daemon is already running for this home"),
	"`netsky daemon status` shows it, `netsky daemon stop` ends it")

func (a *app) daemonRun(c *cli.Context) error {
	if err := a.notForClones("daemon run"); err != nil {
		return err
	}
	a.bears = config.Whole
	h, err := a.madeHome()
	if err != nil {
		return err
	}
	l, err := a.night()
	if err != nil {
		return err
	}
	// The library that creates and rotates the logs leaves their mode to the umask.
	// Agents inherit theirs from tmux.
	unix.Umask(0o077)
	file := &lumberjack.Logger{Filename: h.Path(home.LogDir, "netsky.jsonl"), MaxSize: 10, MaxBackups: 5}
	if keep := a.config.Records.Keep; keep.Duration > 0 {
		file.MaxAge = 1 + int(keep.Hours()/24) // days
	}
	defer file.Close()
	log := slog.New(slog.NewJSONHandler(io.Writer(file), nil))
	if a.mistake != nil {
		log.Warn("config", "error", a.mistake)
	}
	o := a.daemonOptions(l, log)
	o.Wanted = c.Bool("wanted")
	err = daemon.Run(c.Context, o)
	if errors.Is(err, home.ErrLocked) {
		return fmt.Errorf("%w: %w", errDaemonRuns, err)
	}
	return err
}

// night returns the launcher of one who looks after agents that run, whatever is wrong in
// netsky.toml. If that may be the name of the tmux server, it is the one that agents were
// last started on.
func (a *app) night() (*spawn.Launcher, error) {
	a.bears = config.Whole
	l, err := a.launcher()
	if err == nil && a.harm == config.Whole && !a.lastServer(l) {
		return nil, exitError{exitUsage, a.mistake}
	}
	return l, err
}

func (a *app) daemonOptions(l *spawn.Launcher, log *slog.Logger) daemon.Options {
	w := a.config.Watchdog
	o := daemon.Options{
		Home: l.Home, Bus: l.Bus, Launcher: l, Runtimes: a.runtimesNow(l), Plan: a.planAgain, Setup: a.setupAgain,
		Conversation: func(id agent.ID) (string, error) { return plan.Conversation(l.Home, id) },
		Listen:       a.config.Dashboard.Listen, TLS: a.dashboardTLS, Wide: a.config.Dashboard.Wide, Answer: a.config.Dashboard.Answer, Version: Version, Log: log,
		Hang: w.Hang.Duration, Repage: w.Repage.Duration, Tick: w.Tick.Duration, Wakes: w.Wakes, Upkeep: upkeepOf(l.Home, a.config),
		Mistake: func() (text, then string) { return config.Mistake(l.Home) },
	}
	o.Cost = a.costService(l, log)
	o.Hold = hold(l)
	o.Enough = func(ctx context.Context, db *store.DB, k store.Task) bool {
		c, _, _ := config.Load(l.Home)
		return judgeOf(l.Home, db, c).Enough(ctx, k)
	}
	o.Check = func() string {
		c, _, _ := config.Load(l.Home) // a mistake is shown by others
		return c.Work.Check
	}
	if a.phone(l.Home).On() {
		o.Phone = a.phoneService(l, log)
	}
	// What needs the owner is texted by the bridge; the other ways are for when that fails.
	o.Escalate = escalating(l.Home, a.ways())
	return o
}

// escalating returns what reaches the owner by these ways, nil if there are none.
func escalating(h home.Dir, ways attention.Ways) func(ctx context.Context, subject, body string) (string, error) {
	if ways.None() {
		return nil
	}
	return func(ctx context.Context, subject, body string) (string, error) {
		return ways.Send(ctx, h, attention.Alert{Subject: subject, Body: body})
	}
}

// upkeepOf returns what keeps the home within its bounds; nothing does while they are
// unknown.
func upkeepOf(h home.Dir, c config.Config) upkeep.Keeper {
	if c.Records.Keep.Duration == 0 {
		return upkeep.Keeper{}
	}
	return upkeep.Keeper{Home: h, MaxBytes: c.Bus.MaxBytes, Bounds: upkeep.Bounds{
		Mail: c.Bus.Keep.Duration, Records: c.Records.Keep.Duration, Bytes: c.Records.MaxBytes,
	}}
}

// anew returns an app that reads netsky.toml anew, for starting an agent again: a mistake
// that can't be about how agents run keeps none down.
func (a *app) anew() *app {
	fresh := newApp(a.in, io.Discard, io.Discard, a.environ)
	fresh.bears = config.Ignored
	return fresh
}

// runtimesNow returns what returns the runtimes that netsky.toml has at the time. A mistake in it leaves
// those that it had before.
func (a *app) runtimesNow(l *spawn.Launcher) func() map[string]spawn.Runtime {
	all, at := a.planner(l).Runtimes(), l.Home.Mark(home.ConfigFile)
	var mu sync.Mutex
	return func() map[string]spawn.Runtime {
		mu.Lock()
		defer mu.Unlock()
		now := l.Home.Mark(home.ConfigFile)
		if at.Same(now) {
			return all
		}
		at = now
		fresh := a.anew()
		if l, err := fresh.launcher(); err == nil {
			all = fresh.planner(l).Runtimes()
		}
		return all
	}
}

// planAgain plans a start of the agent as of now, with that environment; nil is the one of
// its last start.
func (a *app) planAgain(ctx context.Context, id agent.ID, environ []string) (spawn.Plan, error) {
	fresh := a.anew()
	l, err := fresh.launcher()
	if err != nil {
		return spawn.Plan{}, err
	}
	before, err := l.Home.LoadLaunch(id)
	if err != nil {
		return spawn.Plan{}, err
	}
	plans, _, err := fresh.planner(l).Plans(ctx, []agent.ID{id}, plan.Wish{Runtime: before.Runtime, Dir: before.Dir})
	if err != nil {
		return spawn.Plan{}, err
	}
	if plans[0].Environ = environ; environ == nil {
		plans[0].Environ = before.Env
	}
	return plans[0], fresh.planner(l).Again(ctx, &plans[0])
}

// setupAgain returns the configuration of a tmux server as of now. A mistake in it keeps
// no agent down.
func (a *app) setupAgain() []string {
	lines, _ := a.anew().tmuxSetup()
	return lines
}

func (a *app) daemonStatus(c *cli.Context) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	v := view.DaemonOf(c.Context, h)
	if c.Bool("json") {
		return a.writeJSON(v)
	}
	switch v.State {
	case "running":
		a.print("running, pid %d, version %s, for %s", v.PID, v.Version, view.Ago(time.Since(v.Since.Time())))
		return nil
	case "hung":
		return fmt.Errorf("daemon: %w", daemon.ErrHung)
	}
	a.print("%s", v.Word())
	if v.Wanted {
		return fmt.Errorf("daemon: %w, but should be", daemon.ErrNotRunning)
	}
	return nil
}

func (a *app) daemonStop(c *cli.Context) error {
	if err := a.notForClones("daemon stop"); err != nil {
		return err
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	unwritten := h.SetDesired(agent.DaemonName, false, string(self))
	if unwritten != nil {
		a.warn("%v", unwritten)
	}
	ended, err := daemon.Stop(c.Context, h)
	if err != nil {
		return err
	}
	if ended {
		a.print("daemon ended; `netsky up` starts it again")
	} else {
		a.print("daemon was not running")
	}
	if unwritten != nil {
		return nil
	}
	return notWantedAgain(h)
}

// notWantedAgain returns an error if the daemon's desired state is up again.
func notWantedAgain(h home.Dir) error {
	if d, err := h.LoadDesired(agent.DaemonName); err == nil && d.Up {
		return exitError{exitPartly, errors.New("daemon: a concurrent `netsky up` or `netsky dashboard` starts it again")}
	}
	return nil
}

// runCommand runs the process in every agent's pane.
func (a *app) runCommand() *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "run an agent's program in its pane", ArgsUsage: "AGENT", Hidden: true,
		Description: "For netsky itself, which starts it in each agent's pane. By hand: `netsky agent N`.",
		Action: func(c *cli.Context) error {
			id, err := oneAgent(c, "one agent")
			if err != nil {
				return err
			}
			h, err := a.home()
			if err != nil {
				return err
			}
			if code := keeper.Run(h, id, Version, func() { a.startRevival(h) }); code != 0 {
				return exitError{code, errTold}
			}
			return nil
		},
	}
}
