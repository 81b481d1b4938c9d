//go:build cgo

package store

// The driver registers itself as "sqlite3". A build without cgo compiles, and Open then
// fails because there is no driver.
import _ "github.com/mattn/go-sqlite3"
