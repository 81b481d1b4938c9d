package chatdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"netsky/phone/chat"
)

// A conn is the open database, as the file that had the name when it was opened.
type conn struct {
	pool      *sql.DB
	watch     *sql.Conn // for data_version, which counts per connection
	number    uint64    // tells connections apart
	immutable bool
	files     files
	schema    schema
	opened    time.Time
	broken    atomic.Bool // it has failed in a way that another may not
}

// A file is what a name stands for, without opening it.
type file struct {
	there    bool
	dev, ino uint64
	size     int64
	mtime    time.Time
}

// files are chat.db and what SQLite keeps beside it.
type files struct{ db, wal, shm file }

func look(path string) (f file, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	f = file{there: true, size: info.Size(), mtime: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		f.dev, f.ino = uint64(st.Dev), st.Ino
	}
	return f, nil
}

func lookAll(path string) (all files, err error) {
	if all.db, err = look(path); err != nil {
		return all, err
	}
	if all.wal, err = look(path + "-wal"); err != nil {
		return all, err
	}
	all.shm, err = look(path + "-shm")
	return all, err
}

// same reports whether a name still stands for the same file, whatever is in it.
func (f file) same(g file) bool { return f.there == g.there && f.dev == g.dev && f.ino == g.ino }

// current reports whether the connection is to what has the name now.
func (c *conn) current(o Options) bool {
	if c == nil || c.broken.Load() || o.Now().Sub(c.opened).Abs() > freshAfter {
		return false
	}
	now, err := lookAll(o.Path)
	if err != nil || !now.db.same(c.files.db) || !now.wal.same(c.files.wal) || !now.shm.same(c.files.shm) {
		return false
	}
	// An immutable one sees no change, so any change is a reason to open it again.
	return !c.immutable || now.db == c.files.db
}

func (c *conn) close() error {
	if c == nil {
		return nil
	}
	if c.watch != nil {
		c.watch.Close()
	}
	return c.pool.Close()
}

func openConn(ctx context.Context, o Options, number uint64) (*conn, error) {
	before, err := lookAll(o.Path)
	if err != nil {
		return nil, &chat.Degraded{Reason: err.Error(), Next: adviceAccess, Err: err}
	}
	if !before.db.there {
		return nil, &chat.Degraded{
			Reason: o.Path + ": there is no such file",
			Next:   "sign in to Messages on this Mac; it makes the file",
			Err:    fs.ErrNotExist,
		}
	}
	c, err := openMode(ctx, o, "", before)
	for tries := 1; errors.Is(err, errReplaced) && tries < 3; tries++ {
		if before, err = lookAll(o.Path); err == nil {
			c, err = openMode(ctx, o, "", before)
		}
	}
	if code := codeOf(err); (code == codeCantOpen || code == codeReadOnly) && !before.wal.there {
		if fixed, ferr := openMode(ctx, o, "&immutable=1", before); ferr == nil {
			fixed.immutable, c, err = true, fixed, nil
		}
	}
	if err != nil {
		return nil, err
	}
	c.number = number
	return c, nil
}

var errReplaced = errors.New("replaced while it was opened")

// openMode opens the file and reads its schema.
func openMode(ctx context.Context, o Options, more string, before files) (_ *conn, err error) {
	u := url.URL{Scheme: "file", Path: o.Path}
	dsn := fmt.Sprintf("%s?mode=ro&_txlock=deferred&_busy_timeout=%d&_cache_size=-1000%s", u.String(), o.Busy.Milliseconds(), more)
	pool, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, err
	}
	c := &conn{pool: pool, opened: o.Now()}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	// One for data_version, two for those who look at the same time.
	pool.SetMaxOpenConns(3)
	if c.watch, err = pool.Conn(ctx); err != nil {
		return nil, err
	}
	if c.schema, err = readSchema(ctx, c.watch, o.Path); err != nil {
		return nil, err
	}
	// The first read may have made the log and its index. None of the three may have been replaced
	// since: of a file that lost its name, an index for instance, no change would be seen.
	if c.files, err = lookAll(o.Path); err != nil {
		return nil, err
	}
	replaced := func(was, is file) bool { return was.there && !is.same(was) }
	if replaced(before.db, c.files.db) || replaced(before.wal, c.files.wal) || replaced(before.shm, c.files.shm) {
		return nil, &chat.Degraded{Reason: o.Path + ": replaced while it was opened", Err: errReplaced}
	}
	return c, nil
}

// dataVersion returns a number that changes with each commit of another connection.
func (c *conn) dataVersion(ctx context.Context) (n int64, err error) {
	if c.immutable {
		return 0, nil
	}
	err = c.watch.QueryRowContext(ctx, "PRAGMA data_version").Scan(&n)
	return n, err
}
