package store

import (
	"context"
	"database/sql"
	"errors"

	"golang.org/x/sys/unix"

	"netsky/home"
)

// A writer is the one connection that writes, and the file it leads to.
type writer struct {
	home     home.Dir
	busyMS   int
	pool     *sql.DB
	tx       *tx
	dev, ino uint64
}

// errMoved reports that the database's name led to another file while it was opened.
var errMoved = errors.New("was replaced while it was opened")

// openWriter opens the database, or creates it; with lost, an earlier one existed.
func openWriter(ctx context.Context, h home.Dir, busyMS int, lost bool) (w *writer, err error) {
	for range 3 {
		if w, err = tryWriter(ctx, h, busyMS, lost); !errors.Is(err, errMoved) {
			break
		}
	}
	return w, err
}

func tryWriter(ctx context.Context, h home.Dir, busyMS int, lost bool) (*writer, error) {
	info, ok, err := checkFile(h)
	if err == nil && !ok {
		if err = create(ctx, h, lost); err == nil {
			info, _, err = checkFile(h)
		}
	}
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite3", dsn(h.Path(home.DBFile), "rw", "immediate", busyMS, writable))
	if err != nil {
		return nil, err
	}
	w := &writer{home: h, busyMS: busyMS, pool: pool, tx: &tx{}, dev: uint64(info.Dev), ino: info.Ino}
	pool.SetMaxOpenConns(1)
	w.tx.conn, err = pool.Conn(ctx)
	if err == nil && !w.current() { // its log, which is open too, may be another file's
		err = errMoved
	}
	if err == nil {
		err = migrate(ctx, w.tx.conn, migrations)
	}
	if err == nil {
		// The log must not keep its largest size.
		err = w.tx.exec("PRAGMA journal_size_limit = 8388608")
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// current reports whether the database's name still leads to the open file.
func (w *writer) current() bool {
	var info unix.Stat_t
	err := unix.Lstat(w.home.Path(home.DBFile), &info)
	return err == nil && uint64(info.Dev) == w.dev && info.Ino == w.ino
}

func (w *writer) close() {
	if w.tx.conn != nil {
		w.tx.conn.Close()
	}
	w.pool.Close()
}
