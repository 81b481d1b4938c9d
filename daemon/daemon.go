// Package daemon composes netsky's long-running services and nothing else: the
// door that answers who is there, the owner's mailbox, the router, the mirror of
// the bus in the records, the watch over deaths, the line in the pane of an
// agent that knows nothing of its mail, and the restart of one whose receiver
// has died.
//
// The daemon is a convenience to the agents, not their parent: they live in
// tmux, their mail in directories. Killed at any moment it harms none of them;
// mail between agents goes on without it, and only the history, the outboxes
// and the owner's filing wait for the next one.
package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/daemon/observe"
	"netsky/dashboard"
	"netsky/spawn"
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
		woken: make(chan struct{}, 1), panes: make(chan struct{}, 1), doors: make(chan net.Listener, 1),
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
	services := []service{
		{"door", d.serve},
		{"router", patient(o.Log, "router", func(ctx context.Context) error {
			return o.Bus.RunRouter(ctx, func(what string, err error) {
				if err != nil {
					o.Log.Warn("route", "what", what, "error", err)
				} else {
					o.Log.Info("route", "what", what)
				}
			})
		})},
		{"records", patient(o.Log, "records", d.records)},
		{"owner", patient(o.Log, "owner", d.owner)},
		{"hub", patient(o.Log, "hub", d.hub)},
		{"deaths", patient(o.Log, "deaths", d.deaths)},
		{"pointer", patient(o.Log, "pointer", d.pointer)},
		{"attend", patient(o.Log, "attend", d.attend)},
		{"home", d.home},
	}
	if o.Listen != "" {
		services = append(services, service{"dashboard", patient(o.Log, "dashboard", d.web)})
	}
	err = runAll(ctx, o.Log, services...)
	o.Log.Info("stop", "error", err)
	return err
}

type daemon struct {
	o       Options
	lock    *home.Lock
	stop    context.CancelFunc
	started time.Time
	woken   chan struct{} // for deaths; one waiting wake is enough
	panes   chan struct{} // for hub, likewise
	screens *screens

	before string // pid of a daemon that did not end by itself, until that is on record; records' alone, once it runs

	doors chan net.Listener // to serve's goroutine: what to answer on from now on
	door  os.FileInfo       // the socket's file; home's alone, once it runs

	mu     sync.Mutex        // guards what follows
	db     *store.DB         // nil while the database cannot be had
	server *dashboard.Server // nil while it does not serve
	served Web
}

func (d *daemon) wake() {
	for _, c := range []chan struct{}{d.woken, d.panes} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// A service runs until ctx ends or it fails. Returning nil early is a failure.
type service struct {
	name string
	run  func(ctx context.Context) error
}

// runAll runs the services; the first to stop stops the rest, and all are
// waited for.
func runAll(ctx context.Context, log *slog.Logger, list ...service) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(list)) // each sends once
	for _, s := range list {
		go func() {
			err := s.run(ctx)
			if err == nil && ctx.Err() == nil {
				err = errors.New("ended by itself")
			}
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("%s: %w", s.name, err)
				log.Error("service ended", "service", s.name, "error", err)
			}
			ended <- err
			cancel()
		}()
	}
	var first error
	for range list {
		if err := <-ended; first == nil && !errors.Is(err, context.Canceled) {
			first = err
		}
	}
	return first
}

// patient runs a service again when it fails, after 1 s, 2 s, … up to a
// minute: a full disk or a broken database must not take the daemon's other
// services down. A run of ten minutes counts as recovery.
func patient(log *slog.Logger, name string, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for wait := time.Second; ; wait = min(2*wait, time.Minute) {
			began := time.Now()
			err := run(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if time.Since(began) > 10*time.Minute {
				wait = time.Second
			}
			log.Warn("again", "service", name, "in", wait.String(), "error", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(wait):
			}
		}
	}
}

// records opens the database, takes in what was spooled, and mirrors the bus
// until something fails.
func (d *daemon) records(ctx context.Context) error {
	db, err := store.Open(ctx, d.o.Home)
	if err != nil {
		return err
	}
	defer db.Close()
	d.setDB(db)
	defer d.setDB(nil)
	if d.before != "" {
		err := db.Apply(ctx, store.AddLog{
			Key: fmt.Sprintf("daemon-%d", d.started.UnixMilli()), Level: store.LevelWarn, Part: "daemon",
			Text: fmt.Sprintf("started, pid %d; the daemon before it, pid %s, was killed or crashed", os.Getpid(), d.before),
		})
		if err != nil {
			return err
		}
		d.before = ""
	}
	ctx, cancel := context.WithCancel(ctx)
	var upkeep sync.WaitGroup
	upkeep.Go(func() { d.upkeep(ctx, db) })
	defer upkeep.Wait() // before the database closes
	defer cancel()
	return (&observe.Observer{Bus: d.o.Bus, DB: db, Log: d.o.Log.With("part", "observe")}).Run(ctx)
}

func (d *daemon) setDB(db *store.DB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.db = db
}

func (d *daemon) database() *store.DB {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.db
}

// record puts down what happened: in the open database, else in the spool.
func (d *daemon) record(ctx context.Context, ops ...store.Op) {
	if db := d.database(); db != nil && db.Apply(ctx, ops...) == nil {
		return
	}
	d.o.Launcher.Journal.Record(ctx, ops...)
}

// owner files what comes for the owner, so that it is on record and stays in
// delivered/ for `netsky inbox`, which remembers by itself what was read.
func (d *daemon) owner(ctx context.Context) error {
	if err := d.o.Bus.Make(agent.Owner); err != nil {
		return err
	}
	r, err := d.o.Bus.Receive(ctx, agent.Owner, bus.ReceiveOptions{Report: func(what string, err error) {
		d.o.Log.Info("owner's mailbox", "what", what, "error", err)
	}})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		m, err := r.Next(ctx)
		if err != nil {
			return err
		}
		if err := m.Confirm(); err != nil {
			return err
		}
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &ne) && ne.Timeout())
}
