package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Space is the size of the database in bytes.
type Space struct {
	File int64
	Free int64 // of it, pages that hold nothing and are used again

	gives bool // the file can be shortened step by step
}

// Used returns the bytes that hold records.
func (s Space) Used() int64 { return s.File - s.Free }

// Spare reports whether the file has more free pages than it needs for what comes next.
func (s Space) Spare() bool { return s.Free > max(4<<20, s.File/16) }

// Whole reports whether the database was made by a netsky that could not shorten it: only
// a copy of all that it holds makes it shorter.
func (s Space) Whole() bool { return !s.gives }

// RowQuerier is a connection or a pool.
type RowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Measure returns the size.
func Measure(ctx context.Context, q RowQuerier) (s Space, err error) {
	var pages, free, size, mode int64
	for _, p := range []struct {
		name string
		to   *int64
	}{{"page_count", &pages}, {"freelist_count", &free}, {"page_size", &size}, {"auto_vacuum", &mode}} {
		if err := q.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(p.to); err != nil {
			return s, err
		}
	}
	return Space{File: pages * size, Free: free * size, gives: mode == 2}, nil
}

// pages is how many pages one call of Shorten gives back.
const pages = 128

// Shorten gives a few free pages back to the disk, in the transaction that is open.
func Shorten(c *sql.Conn) error {
	// SQLite gives back one page for each row it is asked for.
	list, err := c.QueryContext(context.Background(), fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pages))
	if err != nil {
		return err
	}
	defer list.Close()
	for list.Next() {
	}
	return list.Err()
}

// Rewrite copies all records into a new file in the place of the old one, which from then
// on can be shortened. Others wait, or spool, until it is done.
func Rewrite(ctx context.Context, pool *sql.DB) error {
	c, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "PRAGMA auto_vacuum = 2"); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "VACUUM")
	return err
}
