package observe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"netsky/bus"
	"netsky/home"
	"netsky/store"
)

// Records opens the database for reading. After an update it migrates the tables, as a verb
// that writes would. If the database was lost, Records rebuilds it from the agents' files
// and mailboxes and reports that. The error matches fs.ErrNotExist in a home in which no
// agent was ever started.
func Records(ctx context.Context, h home.Dir, mail func() (*bus.Bus, error)) (db *store.DB, rebuilt bool, err error) {
	db, err = store.OpenRead(ctx, h)
	if errors.Is(err, store.ErrOlder) {
		if db, err = store.Open(ctx, h); err == nil {
			if err = db.Close(); err == nil {
				db, err = store.OpenRead(ctx, h)
			}
		}
	}
	if !errors.Is(err, fs.ErrNotExist) || !store.Launched(h) {
		return db, false, err
	}
	b, err := mail()
	if err == nil {
		if db, err = store.Open(ctx, h); err == nil {
			if err = (&Observer{Bus: b, DB: db}).Sync(ctx); err != nil {
				err = errors.Join(err, db.Close())
			}
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("the records are missing and could not be rebuilt: %w", err)
	}
	return db, true, nil
}

// Sync opens the database and makes one pass, where no daemon mirrors the mailboxes.
func Sync(ctx context.Context, h home.Dir, mail func() (*bus.Bus, error)) error {
	b, err := mail()
	if err != nil {
		return err
	}
	w, err := store.Open(ctx, h)
	if err == nil {
		err = errors.Join((&Observer{Bus: b, DB: w}).Sync(ctx), w.Close())
	}
	return err
}
