// Package daemon composes netsky's long-running services and nothing else: the
// mirror of the bus in the records, the router, the owner's mailbox, the watchdog
// over the agents, the control client by which panes are watched, the dashboard, and
// the door that answers who is there. They are started in order and stopped in
// reverse, each within a time of its own; one that isn't is named and left behind.
//
// The daemon is a convenience to the agents, not their parent: they live in
// tmux, their mail in directories. Killed at any moment it harms none of them;
// mail between agents goes on without it, and only the history, the outboxes
// and the owner's filing wait for the next one.
package daemon

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/dashboard"
	"netsky/spawn"
	"netsky/spawn/watchdog"
	"netsky/store"
)

// Options are all that the daemon is made of.
type Options struct {
	Home     home.Dir
	Bus      *bus.Bus
	Launcher *spawn.Launcher
	Runtimes map[string]spawn.Runtime // by name; an agent on one that is missing here is left alone
	// Plan is how an agent would be started now, with its conversation; it reads
	// the configuration anew. nil: nothing is restarted.
	Plan func(ctx context.Context, id agent.ID) (spawn.Plan, error)
	// Listen is the dashboard's address, such as "127.0.0.1:7717"; "" is none.
	// TLS, if set, tells what it is served with, nil if with nothing; Wide is the
	// owner's word that it may be an address that others can reach without that.
	Listen  string
	TLS     func() (*tls.Config, error)
	Wide    bool
	Version string
	Log     *slog.Logger
	// Wanted ends Run with ErrUnwanted once it holds the lock, if it is on file that
	// the daemon is to be down: whoever wrote that and then looked for a daemon to
	// end may not have seen this one yet.
	Wanted bool
}

// The daemon lives for weeks and does little: a small heap is worth more to it
// than the time of collecting it, unless somebody looks at panes. What it holds is
// under 2 MB; work may take it over the limit.
const (
	memoryLimit = 24 << 20
	heapGrowth  = 50  // percent, between collections
	heapLooking = 200 // the same while panes are captured all the time
)

// Run runs the daemon until ctx ends, it is told to stop, or the door or a
// service fails. A second daemon of the same home is refused with an error that
// matches agent.ErrLocked.
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
	// Where a dead daemon served, anybody may be by now: nobody is to be sent there
	// with our token.
	if err := o.Home.Remove(URLFile); err != nil {
		o.Log.Warn("url file", "error", err)
	}
	d.before = d.predecessor()
	d.writePID()
	o.Log.Info("start", "pid", os.Getpid(), "version", o.Version)
	d.watchdog = watchdog.New(watchdog.Options{
		Launcher: o.Launcher, Runtimes: o.Runtimes, Plan: o.Plan, Records: d, Log: o.Log,
	})
	// In order: what one uses is started before it, and ends after it. The door closes
	// first: whoever asks then hears that no daemon is there.
	services := []service{
		{name: "records", run: patient(o.Log, "records", d.records)},
		{name: "router", run: patient(o.Log, "router", d.route)},
		{name: "owner", run: patient(o.Log, "owner", d.owner)},
		{name: "watchdog", run: patient(o.Log, "watchdog", d.watchdog.Run), within: 10 * time.Second},
		{name: "hub", run: patient(o.Log, "hub", d.hub)},
	}
	if o.Listen != "" {
		services = append(services, service{name: "dashboard", run: patient(o.Log, "dashboard", d.web)})
	}
	services = append(services, service{name: "home", run: d.home}, service{name: "door", run: d.serve})
	err = runAll(ctx, o.Log, services...)
	o.Log.Info("stop", "error", err)
	return err
}

type daemon struct {
	o       Options
	lock    *home.Lock
	stop    context.CancelFunc
	started time.Time
	panes   chan struct{} // wakes hub; one waiting wake is enough
	screens *screens

	watchdog *watchdog.Watchdog

	before string // pid of a daemon that did not end by itself, until that is on record; records' alone, once it runs

	doors chan net.Listener // to serve's goroutine: what to answer on from now on
	door  os.FileInfo       // the socket's file; home's alone, once it runs

	mu     sync.Mutex        // guards what follows
	db     *store.DB         // nil while the database cannot be had
	server *dashboard.Server // nil while it does not serve
	served Web
}

// wake has the agents looked at, and the hub attached if there are any.
func (d *daemon) wake() {
	d.watchdog.Wake()
	select {
	case d.panes <- struct{}{}:
	default:
	}
}

// route carries mail out of the agents' outboxes.
func (d *daemon) route(ctx context.Context) error {
	return d.o.Bus.RunRouter(ctx, func(what string, err error) {
		if err != nil {
			d.o.Log.Warn("route", "what", what, "error", err)
		} else {
			d.o.Log.Info("route", "what", what)
		}
	})
}
