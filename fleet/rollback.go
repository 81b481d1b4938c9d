package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"netsky/daemon/update"
	"netsky/daemon/update/release"
	"netsky/internal/advice"
	"netsky/store"
)

// Rollback puts the program that the last update has kept in the place of this one, as an update does; the present one is kept
// in its place. Where the records' tables are newer than that program knows, the copy of them that the update made is put
// back, too, and what was recorded since is kept in a file.
func (f Program) Rollback(ctx context.Context, agree bool) (r update.Run, err error) {
	if err := f.May("self rollback"); err != nil {
		return r, err
	}
	u := &updater{Program: f, UpdateRequest: UpdateRequest{Yes: agree, Faults: func(context.Context) []string { return nil }}, ctx: ctx}
	if u.in, err = release.Find(ctx, f.Launcher.Binary, f.Environ); err != nil {
		return r, err
	}
	last, err := update.Installed(f.Home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	kept := update.Kept(u.in.Binary)
	if u.draft, err = update.Begin(f.Home, update.Run{
		Kind: update.Rollback, Binary: u.in.Binary, Previous: kept, From: update.Build{Version: f.Version, Schema: store.Schema()}, By: f.Actor,
	}); err != nil {
		return r, err
	}
	if err := u.prepareBack(kept, last); err != nil {
		return u.draft.Run, errors.Join(err, u.draft.Abandon(ctx, err))
	}
	if r, err = u.draft.HandOver(ctx); err != nil {
		return r, err
	}
	return f.follow(ctx, r.ID)
}

func (u *updater) prepareBack(kept string, last update.Run) error {
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("%s: no program was kept; nothing was updated yet", kept), "`netsky self status` shows what was")
	} else if err != nil {
		return err
	}
	if err := u.preflight(); err != nil {
		return err
	}
	r := &u.draft.Run
	dir, err := os.MkdirTemp("", "netsky-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // just made
	c, err := u.ask(u.ctx, kept, dir)
	if err != nil {
		return fmt.Errorf("the program that was kept: %w", err)
	}
	r.To.Version, r.To.Schema = c.Version, c.Schema
	question := fmt.Sprintf("Go back from netsky %s to %s?", u.Version, c.Version) + u.agents()
	schema, err := store.SchemaOf(u.ctx, u.Home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if schema > c.Schema {
		if last.Backup == "" || last.Schema > c.Schema {
			return advice.With(fmt.Errorf("netsky %s knows the records' tables up to version %d; they have version %d, and no copy was kept that it can use", c.Version, c.Schema, schema),
				"stay at this version")
		}
		r.Restore = last.Backup
		question += fmt.Sprintf("\nIt can't use the present records: those of %s are put back, and what was recorded since then is kept in a file.", time.UnixMilli(last.StoppedMS).Format("2006-01-02 15:04"))
	}
	if err := u.agreed(question); err != nil {
		return err
	}
	staged, err := u.draft.Stage()
	if err != nil {
		return err
	}
	if err := os.Link(kept, staged); err != nil {
		return err
	}
	r.To.SHA256, err = update.Sum(staged)
	return err
}
