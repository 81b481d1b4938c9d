// Package upkeep keeps a home within its bounds: it removes delivered mail, records and
// state files that are old, or too many, and makes the database shorter.
//
// It removes nothing that somebody may still need: no mail that is unread, waits or is in
// an agent's ledger, no question that the owner has not answered, nothing in poison/, no
// unfinished task, no note, no schedule, no attachment of mail that is kept, and no id that
// keeps a message from taking effect twice. Of the files it knows only netsky's own, by their
// place and name. What it removed is in the log.
//
// A pass does its work in small parts and rests after each, so that it never keeps a
// sender waiting. It can be killed at any point: each part is whole, and the next pass
// begins with what is left. The lock "upkeep" keeps passes apart.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"netsky/bus"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/store"
)

// Bounds are how much is kept.
type Bounds struct {
	Mail    time.Duration // delivered mail, and ids
	Records time.Duration // records, and state files that nothing uses; at least as long as Mail
	Bytes   int64         // of records; more are removed earlier, but not before Mail
}

// keep returns how long records are kept.
func (b Bounds) keep() time.Duration { return max(b.Records, b.Mail) }

// A Keeper makes passes over one home.
type Keeper struct {
	Home     home.Dir
	MaxBytes int64 // the largest message
	Bounds   Bounds
	Log      *slog.Logger     // nil: silent
	Now      func() time.Time // nil: the machine's clock
	// Rest is how long a pass rests after each part, as a multiple of what the part took.
	Rest int
}

// Removed counts what a pass removed.
type Removed struct {
	Mail    int   // messages' files
	Records int   // rows
	Files   int   // state files, and files that came with mail
	Bytes   int64 // by which the database is shorter
}

func (r Removed) String() string {
	return fmt.Sprintf("mail %d, records %d, files %d, database %d KiB shorter", r.Mail, r.Records, r.Files, r.Bytes>>10)
}

const lock = "upkeep"

// Pass removes what is beyond the bounds. A ctx that ends in the middle is no error: the
// next pass continues. If another process makes a pass, the error matches
// home.ErrLocked.
func (k *Keeper) Pass(ctx context.Context, db *store.DB) (r Removed, err error) {
	held, err := k.Home.Lock(lock)
	if err != nil {
		return r, err
	}
	defer held.Unlock()
	p := &pass{Keeper: k, db: db, now: time.Now()}
	if k.Now != nil {
		p.now = k.Now()
	}
	p.key = fmt.Sprintf("upkeep-%d-", p.now.UnixNano())
	var errs []error
	for _, part := range []func(context.Context) error{p.mail, p.attached, p.records, p.files, p.shown} {
		if err := part(ctx); err != nil && ctx.Err() == nil {
			errs = append(errs, err)
		}
	}
	return p.removed, errors.Join(errs...)
}

// A pass is one removal of what is old.
type pass struct {
	*Keeper
	db      *store.DB
	now     time.Time
	key     string // of its log entries
	removed Removed
}

// rest lets others work after a part that took as long as since began.
func (p *pass) rest(ctx context.Context, began time.Time) error {
	if p.Rest == 0 {
		return ctx.Err()
	}
	return proc.Sleep(ctx, min(time.Duration(p.Rest)*time.Since(began), time.Second))
}

// bus returns the mailboxes, from which mail that is older than keep may be removed.
func (p *pass) bus(keep time.Duration) *bus.Bus {
	return bus.New(p.Home, bus.Options{MaxBytes: p.MaxBytes, Keep: keep, Now: p.Now})
}

// record logs what was removed.
func (p *pass) record(ctx context.Context, what, text string) error {
	return p.db.Apply(ctx, store.CountLog{Key: p.key + what, Part: "upkeep", Text: text})
}
