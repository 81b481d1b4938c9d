// Package daemon composes netsky's long-running services: the mirror of
// the bus in the records, the router, the owner's mailbox, the watchdog, the schedules, the tasks, the control client
// that watches panes, the forecast of conflicts, the count of what turns cost, the phone bridge, the dashboard, and the door,
// which answers requests about the daemon and passes on those for deeds. They start in order and stop in reverse, each within its own time limit; one
// that does not stop is named and abandoned.
//
// The daemon serves the agents but is not their parent: they live in tmux, their mail in
// directories. Killing it at any moment harms none of them; mail between agents continues
// without it, and only the history, the outboxes and the filing of the owner's mail wait
// for the next one.
package daemon

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/daemon/observe"
	"netsky/daemon/schedule"
	"netsky/daemon/upkeep"
	"netsky/dashboard"
	"netsky/home"
	"netsky/spawn"
	"netsky/store"
	"netsky/view"
	"netsky/watch"
	"netsky/work/dispatch"
	"netsky/work/merge"
)

// Options configure the daemon.
type Options struct {
	Home     home.Dir
	Bus      *bus.Bus
	Launcher *spawn.Launcher
	// Runtimes returns the runtimes as of now, by name; an agent whose runtime is missing there is left alone. nil: there are none.
	Runtimes func() map[string]spawn.Runtime
	// Plan returns how an agent would be started now, with its conversation; it reads the
	// configuration each time. nil: nothing is restarted.
	Plan func(ctx context.Context, id agent.ID, environ []string) (spawn.Plan, error)
	// Conversation returns the conversation that a start of the agent continues; see
	// [watch.Options].
	Conversation func(id agent.ID) (string, error)
	// Setup returns commands for a tmux server that a restart has to start; may be nil.
	Setup              func() []string
	Hang, Repage, Tick time.Duration // see [watch.Options]
	Wakes              int
	Escalate           func(ctx context.Context, subject, body string) (by string, err error)
	Mistake            func() (text, then string) // see [watch.Options]
	Upkeep             upkeep.Keeper              // what is kept, and for how long; the zero value keeps all
	// Listen is the dashboard's address, such as "127.0.0.1:7717"; "" disables it.
	// TLS, if set, returns the certificate to serve with, or nil for none; Wide lets the
	// dashboard listen without TLS on an address that others can reach; Desk answers agents' requests
	// for approval, unless it is nil.
	Listen string
	TLS    func() (*tls.Config, error)
	Wide   bool
	Desk   dashboard.Desk
	// Phone carries messages between the owner's phone and the bus, until ctx ends or it
	// fails; records returns the open database, nil while there is none. nil: there is no
	// phone.
	Phone func(ctx context.Context, records func() *store.DB) error
	// Cost counts what agents' turns cost, until ctx ends; records is as for Phone. nil: nothing does.
	Cost func(ctx context.Context, records func() *store.DB) error
	// Hold bars those who are at the end of a budget, before a task's brief is sent; nil: there are none.
	Hold func(ctx context.Context, db *store.DB) error
	// Enough reports whether those tasks may start that need a closed one; nil: it is enough that it is closed.
	Enough func(ctx context.Context, db *store.DB, k store.Task) bool
	// Bring brings what an agent on another host has committed, Begin what its work on a task begins at, and Far returns how
	// that agent is, as far as is known; may be nil.
	Bring func(ctx context.Context, id agent.ID) error
	Begin func(ctx context.Context, k store.Task) error
	Far   func(id agent.ID) spawn.Status
	// Check returns the command that proves work, as of now; may be nil.
	Check func() string
	// Updates looks for new versions of netsky, until ctx ends. nil: nothing does.
	Updates func(ctx context.Context) error
	// Link carries mail between this host and the others of its team, if it has one, until ctx ends. known returns the agents as the
	// watchdog has seen them last, and the number of that look; records returns the open database, or nil. nil: nothing does.
	Link func(ctx context.Context, known func(context.Context) ([]view.Agent, uint64, error), records func() *store.DB) error
	// Look answers what other hosts see of this one, until ctx ends. nil: nothing does.
	Look func(ctx context.Context) error
	// LinkServer runs the team's server as a child of the daemon, if this host has one, until ctx ends. nil: nothing does.
	LinkServer func(ctx context.Context) error
	Version    string
	Log        *slog.Logger
	// Deeds serves GET /api and POST /deeds/ and /hosts/ on the control socket; nil: nothing does. [PeerOf] says who asks.
	Deeds http.Handler
	// May returns an error unless whoever asks over the control socket may do what the verb does; nil: everybody may.
	May func(ctx context.Context, verb string) error
	// Wanted makes Run return ErrUnwanted once it holds the lock, if the desired state of
	// the daemon is down: whoever wrote that and then looked for a daemon to end may not
	// have seen this one yet.
	Wanted bool
}

// The daemon runs for weeks and does little, so a small heap matters more than collection
// time, unless a browser shows panes. It holds under 2 MB; work may exceed the limit.
const (
	memoryLimit = 24 << 20
	heapGrowth  = 50  // percent, between collections
	heapLooking = 200 // the same while panes are captured all the time
)

// Run runs the daemon until ctx ends, it is asked to stop, or the door or a service fails.
// A second daemon of the same home fails with an error that matches home.ErrLocked.
func Run(ctx context.Context, o Options) error {
	lock, err := o.Home.Lock(agent.DaemonName)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if o.Wanted {
		if err := unwanted(o.Home); err != nil {
			return err
		}
	}
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(heapGrowth)
	defer time.AfterFunc(10*time.Second, debug.FreeOSMemory).Stop() // the start needs more than what follows

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &daemon{
		o: o, lock: lock, stop: stop, started: time.Now(),
		panes: make(chan struct{}, 1), doors: make(chan net.Listener, 1),
	}
	d.screens = &screens{tmux: o.Launcher.Tmux, home: o.Home, log: func(what string, err error) {
		o.Log.Warn("screens", "what", what, "error", err)
	}}
	if err := d.open(); err != nil {
		return err
	}
	defer func() {
		if lock.Here() {
			o.Home.Remove(home.DaemonPID)
			o.Home.Remove(home.DaemonSocket)
		}
	}()
	// Another program may listen where a dead daemon served, and must not be sent our
	// token.
	if err := o.Home.Remove(URLFile); err != nil {
		o.Log.Warn("url file", "error", err)
	}
	d.before = d.predecessor()
	d.writePID()
	o.Log.Info("start", "pid", os.Getpid(), "version", o.Version)
	d.watchdog = watch.New(d.watchdogOptions())
	d.schedules = schedule.New(o.Home, o.Bus, d.database, o.Log)
	d.tasks = dispatch.NewKeeper(o.Launcher, d.database, d.watchdog.Statuses, o.Log)
	d.tasks.Hold, d.tasks.Enough, d.tasks.Bring, d.tasks.Begin, d.tasks.Far = o.Hold, o.Enough, o.Bring, o.Begin, o.Far
	// In order: each starts after those it uses, and stops before them. The door closes
	// first: then callers see that no daemon is running.
	services := []service{
		{name: "records", run: patient(o.Log, "records", d.records)},
		{name: "router", run: patient(o.Log, "router", d.route)},
		{name: "owner", run: patient(o.Log, "owner", d.owner)},
		{name: "watchdog", run: patient(o.Log, "watchdog", d.watchdog.Run)},
		{name: "schedules", run: patient(o.Log, "schedules", d.schedules.Run)},
		{name: "tasks", run: patient(o.Log, "tasks", d.tasks.Run)},
		{name: "hub", run: patient(o.Log, "hub", d.hub)},
		{name: "landings", run: patient(o.Log, "landings", d.landings)},
		{name: "forecast", run: patient(o.Log, "forecast", merge.NewService(merge.Options{Home: o.Home, Log: o.Log}).Run)},
	}
	if o.Cost != nil {
		services = append(services, service{name: "cost", run: patient(o.Log, "cost", func(ctx context.Context) error { return o.Cost(ctx, d.database) })})
	}
	if o.Phone != nil {
		services = append(services, service{name: "phone", run: patient(o.Log, "phone", d.phone)})
	}
	if o.Updates != nil {
		services = append(services, service{name: "updates", run: patient(o.Log, "updates", o.Updates)})
	}
	if o.Look != nil {
		services = append(services, service{name: "look", run: patient(o.Log, "look", o.Look)})
	}
	if o.LinkServer != nil {
		services = append(services, service{name: "link server", run: patient(o.Log, "link server", o.LinkServer)})
	}
	if o.Link != nil {
		services = append(services, service{name: "link", run: patient(o.Log, "link", func(ctx context.Context) error {
			return o.Link(ctx, agents{d.watchdog, d.runtimes, o.Home}.known(), d.database)
		})})
	}
	if o.Listen != "" {
		services = append(services, service{name: "dashboard", run: patient(o.Log, "dashboard", d.web)})
	}
	services = append(services, service{name: "home", run: d.home}, service{name: "door", run: d.serve})
	err = runAll(ctx, o.Log, services...)
	o.Log.Info("stop", "error", err)
	return err
}

func (d *daemon) watchdogOptions() watch.Options {
	return watch.Options{
		Launcher: d.o.Launcher, Runtimes: d.runtimes, Plan: d.o.Plan, Conversation: d.o.Conversation, Setup: d.o.Setup,
		Hang: d.o.Hang, Repage: d.o.Repage, Tick: d.o.Tick, Wakes: d.o.Wakes, Escalate: d.o.Escalate, Mistake: d.o.Mistake, Records: d, Log: d.o.Log,
	}
}

func (d *daemon) runtimes() map[string]spawn.Runtime {
	if d.o.Runtimes == nil {
		return nil
	}
	return d.o.Runtimes()
}

// Watch does what the watchdog of a daemon does, for that long: the ticker's last resort if
// no daemon can be started. What happens is recorded in the spool if need be.
func Watch(ctx context.Context, o Options, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	o.Hang = 0 // silence is counted over a longer time
	if err := o.Bus.Make(agent.Owner); err != nil {
		return err
	}
	return watch.New((&daemon{o: o}).watchdogOptions()).Run(ctx)
}

type daemon struct {
	o       Options
	lock    *home.Lock
	stop    context.CancelFunc
	started time.Time
	panes   chan struct{} // wakes hub; one waiting wake is enough
	screens *screens

	watchdog  *watch.Watchdog
	schedules *schedule.Keeper
	tasks     *dispatch.Keeper

	before string // pid of a daemon that did not end by itself, until that is recorded; owned by records once it runs

	doors chan net.Listener // tells serve's goroutine where to answer from now on
	door  os.FileInfo       // the socket's file; owned by home once it runs

	mu     sync.Mutex        // guards the fields below
	mirror *observe.Observer // nil while the database is not available
	server *dashboard.Server // nil while the dashboard is not served
	served Web
}

// wake makes the watchdog look at the agents, has the schedules and the tasks looked at, and attaches
// the hub if there are any agents.
func (d *daemon) wake() {
	d.watchdog.Wake()
	d.schedules.Wake()
	d.tasks.Wake()
	select {
	case d.panes <- struct{}{}:
	default:
	}
}

// phone runs the phone bridge as soon as there is a database.
func (d *daemon) phone(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for d.database() == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return d.o.Phone(ctx, d.database)
}

// route delivers mail from the agents' outboxes.
func (d *daemon) route(ctx context.Context) error {
	return d.o.Bus.RunRouter(ctx, func(what string, err error) {
		if err != nil {
			d.o.Log.Warn("route", "what", what, "error", err)
		} else {
			d.o.Log.Info("route", "what", what)
		}
	})
}
