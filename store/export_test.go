package store

import (
	"context"
	"io/fs"
	"testing/fstest"

	"netsky/home"
)

// OnCopyStep has f called before each step of a copy.
func OnCopyStep(f func(name string)) { copyStep = f }

// MigrationsTo returns the migrations up to a schema.
func MigrationsTo(n int) fstest.MapFS {
	all := fstest.MapFS{}
	for _, name := range migrationNames(migrations)[:n] {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			panic(err)
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	return all
}

// Migrate migrates the home's database with these migrations, and makes one if there is none.
func Migrate(ctx context.Context, h home.Dir, all fs.FS) error {
	c, done, err := connect(ctx, h.Path(home.DBFile), "rwc", writable)
	if err != nil {
		return err
	}
	defer done()
	return migrate(ctx, c, all)
}
