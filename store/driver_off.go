//go:build !cgo

package store

import (
	"context"
	"database/sql"
	"errors"
)

// A build without cgo compiles, and has no driver: opening a database fails.
func copyPages(context.Context, *sql.Conn, *sql.Conn) error {
	return errors.New("this netsky was built without SQLite")
}
