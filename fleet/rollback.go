package fleet

import (
	"cmp"
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
	if u.draft, err = f.begin(update.Run{
		Kind: update.Rollback, Binary: u.in.Binary, Previous: kept, From: update.Build{Version: f.Version, Schema: store.Schema()}, By: f.Actor,
	}); err != nil {
		return r, err
	}
	if err := cmp.Or(u.prepareBack(kept, last), ctx.Err()); err != nil {
		return u.abandon(err)
	}
	if r, err = u.draft.HandOver(ctx); err != nil {
		return r, err
	}
	return f.follow(ctx, r.ID)
}

// ErrStopped is returned to whoever ends an update or a rollback before a supervisor has it.
var ErrStopped = errors.New("interrupted: nothing was changed")

// abandon ends a run that could not be prepared.
func (u *updater) abandon(why error) (update.Run, error) {
	if u.ctx.Err() != nil { // what was at work says only that it was ended
		why = ErrStopped
	}
	return u.draft.Run, errors.Join(why, u.draft.Abandon(u.ctx, why))
}

func (u *updater) prepareBack(kept string, last update.Run) error {
	if err := update.Owned(kept); errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("%s: no program was kept, so there is nothing to go back to", kept), "`netsky self status` shows the last update")
	} else if err != nil {
		return err
	}
	if err := u.preflight(); err != nil {
		return err
	}
	r := &u.draft.Run
	if sum, err := update.Sum(kept); err != nil {
		return err
	} else if sum == r.From.SHA256 { // what was to replace it was taken back
		return advice.With(fmt.Errorf("%s: is the same as the present program, so there is nothing to go back to", kept), "`netsky self status` shows the last update")
	}
	dir, err := u.draft.Scratch()
	if err != nil {
		return err
	}
	c, err := u.ask(u.ctx, kept, dir)
	if err != nil {
		return fmt.Errorf("the program that was kept: %w", err)
	}
	r.To.Version, r.To.Schema = c.Version, c.Schema
	question := fmt.Sprintf("This goes back from netsky %s to %s.", u.Version, c.Version) + u.agents()
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
