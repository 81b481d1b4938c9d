//go:build cgo

package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/mattn/go-sqlite3" // registers itself as "sqlite3"
)

// copyPages copies the database of src over that of dst, a few pages at a time until ctx
// ends. src is in a transaction, so what others write meanwhile changes nothing of it.
func copyPages(ctx context.Context, dst, src *sql.Conn) error {
	return dst.Raw(func(to any) error {
		return src.Raw(func(from any) error {
			b, err := to.(*sqlite3.SQLiteConn).Backup("main", from.(*sqlite3.SQLiteConn), "main")
			if err != nil {
				return err
			}
			defer b.Finish()
			for left := -1; ctx.Err() == nil; left = b.Remaining() {
				copyStep("pages")
				done, err := b.Step(256)
				if err != nil || done {
					return err
				}
				if b.Remaining() == left { // the driver says nothing when a file is locked
					return errors.New("the copy is in use by another process")
				}
			}
			return ctx.Err()
		})
	})
}
