package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
	"gopkg.in/natefinch/lumberjack.v2"

	"netsky/agent"
	"netsky/attention"
	"netsky/cli/view"
	"netsky/config"
	"netsky/cost"
	"netsky/daemon"
	"netsky/daemon/upkeep"
	"netsky/fleet"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/link"
	"netsky/link/ssh"
	"netsky/spawn"
	"netsky/spawn/keeper"
	"netsky/store"
	agentview "netsky/view"
)

// daemonVerbs runs what runs in the background.
type daemonVerbs struct{ *app }

func (a daemonVerbs) daemonCommand() *cli.Command {
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
			{
				Name: "restart", Usage: "start it anew, as the netsky that is installed now; agents and their mail continue", Action: selfVerbs(a).daemonRestart,
				Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
			},
			{
				Name: "supervise-restart", Usage: "carry out an update or a restart of the daemon", Hidden: true, Action: selfVerbs(a).supervise,
				Description: "For netsky itself, which runs it beside the daemon. By hand: `netsky daemon restart`.",
			},
		},
		Action: a.needsSub,
	}
}

var errDaemonRuns = advice.With(errors.New("a daemon is already running for this home"),
	"`netsky daemon status` shows it, `netsky daemon stop` ends it")

func (a daemonVerbs) daemonRun(c *cli.Context) error {
	if err := a.may("daemon run"); err != nil {
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
func (a daemonVerbs) night() (*spawn.Launcher, error) {
	a.bears = config.Whole
	l, err := a.launcher()
	if err == nil && a.harm == config.Whole && !viewVerbs(a).lastServer(l) {
		return nil, exitError{exitUsage, a.mistake}
	}
	return l, err
}

func (a daemonVerbs) daemonOptions(l *spawn.Launcher, log *slog.Logger) daemon.Options {
	f := a.fleetOf(l)
	d := fleet.Daemon{Fleet: f}.Offering()
	others := &link.Deeds{Do: d.Asked}
	w := a.config.Watchdog
	o := daemon.Options{
		Home: l.Home, Bus: l.Bus, Launcher: l, Runtimes: fleet.Revival{Fleet: f}.RuntimesNow(), Plan: fleet.Revival{Fleet: f}.PlanAgain, Setup: fleet.Revival{Fleet: f}.SetupAgain,
		Conversation: func(id agent.ID) (string, error) { return plan.Conversation(l.Home, id) },
		Listen:       a.config.Dashboard.Listen, TLS: dashboardVerbs(a).dashboardTLS, Wide: a.config.Dashboard.Wide, Version: Version, Log: log,
		Hang: w.Hang.Duration, Repage: w.Repage.Duration, Tick: w.Tick.Duration, Wakes: w.Wakes, Upkeep: upkeepOf(l.Home, a.config),
		Mistake: func() (text, then string) { return config.Mistake(l.Home) }, Deeds: d.Control(others.Ask), May: d.PeerMay,
	}
	if a.config.Dashboard.Answer {
		o.Desk = fleet.Page{Fleet: a.ownersFleet(l, log)}
	}
	o.Cost = costVerbs(a).costService(l, log)
	o.Hold = func(ctx context.Context, db *store.DB) error { return cost.Hold(ctx, l.Bus, db) }
	o.Enough = func(ctx context.Context, db *store.DB, k store.Task) bool {
		c, _, _ := config.Load(l.Home)
		return fleet.Judge(l.Home, db, c).Enough(ctx, k)
	}
	o.Bring = fleet.Work{Fleet: a.ownersFleet(l, log)}.Bring
	o.Begin = fleet.Tasks{Fleet: a.ownersFleet(l, log)}.Begin
	o.Far = func(id agent.ID) spawn.Status { return fleet.Far(l.Home, id) }
	o.Check = func() string {
		c, _, _ := config.Load(l.Home) // a mistake is shown by others
		return c.Work.Check
	}
	if phoneVerbs(a).phone(l.Home).On() {
		o.Phone = phoneVerbs(a).phoneService(l, log)
	}
	if a.config.Self.Every() > 0 {
		o.Updates = fleet.Program{Fleet: f}.LookForUpdates
	}
	o.Link = func(ctx context.Context, known func(context.Context) ([]agentview.Agent, uint64, error), records func() *store.DB) error {
		t := fleet.NewTelling(l, known, records)
		return link.Run(ctx, link.Options{
			Home: l.Home, Bus: l.Bus, SSH: ssh.Client{Home: l.Home, Environ: a.environ, Unasked: true}, Log: log, Version: Version, Agents: t.Agents, Needs: t.Needs, Deeds: others,
			Entries: t.Entries, TakeEntries: t.TakeEntries,
		})
	}
	o.Look = hostVerbs(a).look(l.Home)
	o.LinkServer = a.linkKeeper(l, log).Run
	// What needs the owner is texted by the bridge; the other ways are for when that fails.
	o.Escalate = escalating(l.Home, ownerVerbs(a).ways())
	return o
}

// ownersFleet returns the netsky of a launcher on behalf of the owner, whom a page or the phone has made
// sure of.
func (a daemonVerbs) ownersFleet(l *spawn.Launcher, log *slog.Logger) *fleet.Fleet {
	f := a.fleetOf(l)
	f.Actor, f.UI = agent.Owner, logged{ui{a: a.app}, log}
	return f
}

// logged is the UI of what the daemon does for somebody elsewhere.
type logged struct {
	ui
	log *slog.Logger
}

// Ask asks nobody.
func (logged) Ask(string) (string, error) { return "", fleet.ErrNobody }

// Warn logs what went wrong.
func (l logged) Warn(err error) { l.log.Warn("deed", "error", err) }

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

func (a daemonVerbs) daemonStatus(c *cli.Context) error {
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
		a.print("running, pid %d, version %s, for %s", v.PID, v.Version, words.Ago(time.Since(v.Since.Time())))
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

func (a daemonVerbs) daemonStop(c *cli.Context) error {
	if err := a.may("daemon stop"); err != nil {
		return err
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	ended, err := fleet.Daemon{Fleet: a.fleetOf(spawn.New(spawn.Site{Home: h}))}.StopDaemon(c.Context)
	var again *fleet.PartlyError
	if err != nil && !errors.As(err, &again) {
		return err
	}
	if ended {
		a.print("daemon ended; `netsky up` starts it again")
	} else {
		a.print("daemon was not running")
	}
	return err
}

// runCommand runs the process in every agent's pane.
func (a daemonVerbs) runCommand() *cli.Command {
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
