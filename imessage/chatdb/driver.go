//go:build cgo

package chatdb

import (
	"errors"

	"github.com/mattn/go-sqlite3"
)

// codeOf returns SQLite's primary result code of an error, or 0.
func codeOf(err error) int {
	var e sqlite3.Error
	if errors.As(err, &e) {
		return int(e.Code)
	}
	return 0
}
