package store

import (
	"context"
	"database/sql"

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

// openWriter opens the database, or creates it; with lost, an earlier one existed.
func openWriter(ctx context.Context, h home.Dir, busyMS int, lost bool) (*writer, error) {
	_, ok, err := checkFile(h)
	if err == nil && !ok {
		err = create(ctx, h, lost)
	}
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite3", dsn(h.Path(home.DBFile), "rw", "immediate", busyMS, writable))
	if err != nil {
		return nil, err
	}
	w := &writer{home: h, busyMS: busyMS, pool: pool, tx: &tx{}}
	pool.SetMaxOpenConns(1)
	if w.tx.conn, err = pool.Conn(ctx); err == nil {
		err = migrate(ctx, w.tx.conn)
	}
	if err == nil {
		// The log must not keep its largest size.
		err = w.tx.exec("PRAGMA journal_size_limit = 8388608")
	}
	if err == nil {
		var info unix.Stat_t
		info, _, err = checkFile(h)
		w.dev, w.ino = uint64(info.Dev), info.Ino
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
