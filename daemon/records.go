package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/daemon/observe"
	"netsky/daemon/upkeep"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/store"
	"netsky/work/land"
)

const (
	pruneEvery  = time.Hour
	pruneWithin = 10 * time.Minute
	pruneRest   = 9 // a pass works a tenth of its time
)

// records opens the database, loads what was spooled, and mirrors the bus until something
// fails.
func (d *daemon) records(ctx context.Context) error {
	db, err := store.Open(ctx, d.o.Home)
	if err != nil {
		return err
	}
	defer db.Close()
	mirror := &observe.Observer{Bus: d.o.Bus, DB: db, Log: d.o.Log.With("part", "observe")}
	d.setMirror(mirror)
	defer d.setMirror(nil)
	if d.before != "" {
		err := db.Apply(ctx, store.AddLog{
			Key: fmt.Sprintf("daemon-%d", d.started.UnixMilli()), Level: store.LevelWarn, Part: "daemon",
			Text: fmt.Sprintf("started, pid %d; the previous daemon, pid %s, was killed or crashed", os.Getpid(), d.before),
		})
		if err != nil {
			return err
		}
		d.before = ""
	}
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { d.replay(ctx, db) })
	beside.Go(func() { d.prune(ctx, db) })
	defer beside.Wait() // before the database closes
	defer cancel()
	return mirror.Run(ctx)
}

func (d *daemon) setMirror(mirror *observe.Observer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mirror = mirror
}

func (d *daemon) database() *store.DB {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mirror == nil {
		return nil
	}
	return d.mirror.DB
}

// sync records all that has happened on the bus until now.
func (d *daemon) sync(ctx context.Context) error {
	d.mu.Lock()
	mirror := d.mirror
	d.mu.Unlock()
	if mirror == nil {
		return errNoRecords
	}
	return mirror.Sync(ctx)
}

// Record has the running daemon record all that has happened on the bus until now.
func Record(ctx context.Context, h home.Dir) error {
	return call(ctx, h, http.MethodPost, "/sync", nil)
}

// Sync brings the records up to date with the mailboxes: the running daemon does it, else
// this process. mail opens the bus for that.
func Sync(ctx context.Context, h home.Dir, mail func() (*bus.Bus, error)) error {
	if err := Record(ctx, h); !errors.Is(err, ErrNotRunning) {
		return err
	}
	return observe.Sync(ctx, h, mail)
}

// Record records what happened: in the open database, else in the spool.
func (d *daemon) Record(ctx context.Context, ops ...store.Op) {
	if db := d.database(); db != nil && db.Apply(ctx, ops...) == nil {
		return
	}
	d.o.Launcher.Journal.Record(ctx, ops...)
}

// Session returns what is recorded about a start.
func (d *daemon) Session(ctx context.Context, start string) (store.Session, error) {
	db := d.database()
	if db == nil {
		return store.Session{}, errNoRecords
	}
	return db.Session(ctx, start)
}

// owner files mail to the owner, so that it is recorded and stays in delivered/ for
// `netsky inbox`, which keeps track of what was read.
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

// replay loads the spool now and whenever something has been spooled.
func (d *daemon) replay(ctx context.Context, db *store.DB) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		if n, err := db.ReplaySpool(ctx); err != nil {
			d.o.Log.Warn("spool", "error", err)
		} else if n > 0 {
			d.o.Log.Info("spool", "replayed", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// prune removes what is beyond the home's bounds, now and every hour. A pass that does not
// get done leaves the rest to the next.
func (d *daemon) prune(ctx context.Context, db *store.DB) {
	keeper := d.o.Upkeep
	if keeper.Home == (home.Dir{}) {
		return
	}
	keeper.Log, keeper.Rest = d.o.Log, pruneRest
	for {
		careful, err := keeper.Careful() // an error, as of a full disk, must not prevent what frees it
		limited, cancel := context.WithTimeout(ctx, pruneWithin)
		removed, perr := careful.Pass(limited, db)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err = errors.Join(err, perr); err != nil {
			d.o.Log.Warn("upkeep", "error", err)
		}
		if removed != (upkeep.Removed{}) {
			d.o.Log.Info("upkeep", "removed", removed.String())
		}
		if proc.Sleep(ctx, pruneEvery) != nil {
			return
		}
	}
}

// landings settles landings and checks that were cut off.
func (d *daemon) landings(ctx context.Context) error {
	h := d.o.Launcher.Home
	return land.Desk{
		Home: h, Journal: d.o.Launcher.Journal, Records: func(ctx context.Context) (*store.DB, error) { return store.OpenRead(ctx, h) },
		Say: func(format string, args ...any) { d.o.Log.Warn("landing", "what", fmt.Sprintf(format, args...)) },
		Tell: func(to agent.ID, key, text string) error {
			_, _, err := d.o.Bus.SendOnce(ctx, envelope.Envelope{
				ID: key, From: agent.Root, To: to, Kind: envelope.KindNotice, Via: "code", Text: envelope.SafeText(text), Time: time.Now(),
			})
			if errors.Is(err, bus.ErrUsed) {
				err = nil
			}
			return err
		},
	}.Keep(ctx)
}
