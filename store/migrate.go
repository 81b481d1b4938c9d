package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"netsky/internal/advice"
)

// A migration is added together with the fixture of its schema: see TestSchemas.
//
//go:embed migrations/*.sql
var migrations embed.FS

// ErrNewer is returned for a database that a newer netsky wrote.
var ErrNewer = advice.With(errors.New("schema is newer than this netsky supports"),
	"this netsky is older than the database: run the newer one, or move meta.db away")

// ErrOlder is returned by OpenRead for a database that an older netsky wrote. Open migrates
// it.
var ErrOlder = errors.New("has not been migrated yet")

// migrationNames returns the files in the order in which they run; how many have run is
// the database's user_version.
func migrationNames(all fs.FS) []string {
	names, err := fs.Glob(all, "migrations/*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	slices.Sort(names)
	return names
}

// Schema returns the version of the tables this netsky knows.
func Schema() int { return len(migrationNames(migrations)) }

func userVersion(ctx context.Context, c *sql.Conn) (v int, err error) {
	err = c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v)
	return v, err
}

// checkVersion refuses what this program cannot work with and returns the number of
// missing migrations.
func checkVersion(have, known int) (missing int, err error) {
	if have > known {
		return 0, fmt.Errorf("%w: %d; this one supports %d", ErrNewer, have, known)
	}
	return known - have, nil
}

// migrate updates the tables in one transaction: a database is never half migrated, and of
// two processes that try at once the second finds it done.
func migrate(ctx context.Context, c *sql.Conn, all fs.FS) error {
	names := migrationNames(all)
	have, err := userVersion(ctx, c)
	if err != nil {
		return err
	}
	missing, err := checkVersion(have, len(names))
	if err != nil || missing == 0 {
		return err
	}
	tx, err := c.BeginTx(ctx, nil) // immediate: it waits for the other one
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	if missing, err = checkVersion(have, len(names)); err != nil || missing == 0 {
		return err
	}
	for _, name := range names[have:] {
		text, err := fs.ReadFile(all, name)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	// A pragma takes no parameters; the number is ours.
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(names))); err != nil {
		return err
	}
	return tx.Commit()
}
