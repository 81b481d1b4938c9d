// Package store keeps the records of one netsky in one SQLite file, meta.db,
// and defines the record types that all packages above it share.
//
// What is recorded is an [Op]: one thing that happened, such as [StartSession] or
// [AddLog]. Each op is idempotent, and if two ops concern the same thing the later one by
// its own time wins, so replaying ops, even out of order, changes nothing. [DB.Apply]
// writes ops in one transaction; one goroutine writes for all callers and commits waiting
// ones together. Other processes may write at the same time.
//
// Which to use:
// - the daemon holds a [DB] from [Open];
// - a verb records through a [Journal], which falls back to files in state/spool and never
// makes a verb fail, or wait longer than two seconds;
// - readers use [OpenRead].
//
// The package does not know what a mailbox looks like, which process is alive, or what its
// columns refer to. It is not a queue: the bus is the truth of what was delivered, and
// messages and deliveries can be rebuilt from the directories. A rebuilt database begins
// with the last start of each agent, from the files of the home.
//
// A process crash at any point leaves whole transactions. A power loss may take the last
// ones with it, never half of one (WAL, synchronous NORMAL). A database is created under a
// temporary name and linked to its place when it has its tables, and migrated in one
// transaction; a crash leaves at most a file named ".tmp-….db" in the home. [Backup] copies
// it while it is used, and [Restore] puts a copy in its place.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"netsky/home"
	"netsky/internal/advice"
)

// ErrNotFound is returned by reads when nothing has that id.
var ErrNotFound = advice.With(errors.New("not on record"),
	"`netsky find TEXT` searches texts, file names and ids; `netsky log` and `netsky channel ls AGENT` list ids")

// busyMS is how long a connection waits for another process's transaction, in
// milliseconds. Ours last a few.
const busyMS = 5000

// A DB is the open database. Its methods may be called from any goroutine.
type DB struct {
	*pool
	Mail
	Agents
	Work
	History
	fresh atomic.Int64 // how often the file was found replaced

	reqs  chan *request // to the goroutine of run; nil: opened for reading
	quit  chan struct{}
	done  chan struct{}
	close sync.Once

	watchMu    sync.Mutex
	watch      *sql.Conn // for DataVersion: the number counts per connection
	watchFresh int64     // what fresh was when watch was opened
}

// A pool is the connections that read. A reopened database has others.
type pool struct {
	// Now is the clock for records without a time. It may be set before the first use.
	Now  func() time.Time
	home home.Dir
	read atomic.Pointer[sql.DB] // several connections, mode=ro
}

// Mail reads messages, what became of them, and what waits in a program's input.
type Mail struct{ *pool }

// Agents reads agents and their sessions.
type Agents struct{ *pool }

// Work reads tasks, what they need, and notes.
type Work struct{ *pool }

// History reads what happened, in its order, whatever it is about.
type History struct{ *pool }

// Open opens the home's database for writing and reading, creates it if it is missing and
// migrates its tables. For a database that a newer netsky wrote the error matches
// ErrNewer. The caller must call Close, which waits for the writer to stop.
//
// If the file is removed or replaced while it is open, the next Apply or Refresh opens, or
// creates, the one that has its name then; Replaced counts that. A created one begins with
// what the home's files hold about the agents.
func Open(ctx context.Context, home home.Dir) (*DB, error) {
	return open(ctx, home, busyMS)
}

func open(ctx context.Context, home home.Dir, busyMS int) (*DB, error) {
	w, err := openWriter(ctx, home, busyMS, false)
	if err != nil {
		return nil, fileError(home, err)
	}
	db, err := newDB(home)
	if err != nil {
		w.close()
		return nil, err
	}
	// Callers wait for their commit, so more than a group would only hide how many wait.
	db.reqs, db.quit, db.done = make(chan *request, maxGroup), make(chan struct{}), make(chan struct{})
	go db.run(w)
	return db, nil
}

// OpenRead opens the home's database for reading. It creates and migrates nothing: the
// error for a missing one matches fs.ErrNotExist, and for one with older tables ErrOlder,
// until Open has migrated it.
func OpenRead(ctx context.Context, h home.Dir) (*DB, error) {
	_, ok, err := checkFile(h)
	if err == nil && !ok {
		err = &fs.PathError{Op: "open", Path: h.Path(home.DBFile), Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, fileError(h, err)
	}
	db, err := newDB(h)
	if err != nil {
		return nil, err
	}
	have, read := 0, db.read.Load()
	if err := read.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		read.Close()
		return nil, fileError(h, err)
	}
	missing, err := checkVersion(have, Schema())
	if err == nil && missing > 0 {
		err = fmt.Errorf("schema %d is older than this netsky's %d and %w", have, Schema(), ErrOlder)
	}
	if err != nil {
		read.Close()
		return nil, fileError(h, err)
	}
	return db, nil
}

// newDB returns a database that is open for reading.
func newDB(h home.Dir) (*DB, error) {
	read, err := openReaders(h)
	if err != nil {
		return nil, err
	}
	p := &pool{Now: time.Now, home: h}
	p.read.Store(read)
	return &DB{pool: p, Mail: Mail{p}, Agents: Agents{p}, Work: Work{p}, History: History{p}}, nil
}

// openReaders opens the pool for reads: four connections, as with more, readers would
// compete for the processor; idle ones release their memory.
func openReaders(h home.Dir) (*sql.DB, error) {
	read, err := sql.Open("sqlite3", dsn(h.Path(home.DBFile), "ro", "deferred", busyMS, "&_cache_size=-1000"))
	if err != nil {
		return nil, fileError(h, err)
	}
	read.SetMaxOpenConns(4)
	read.SetMaxIdleConns(4)
	read.SetConnMaxIdleTime(time.Minute)
	return read, nil
}

// Close ends the writer after its current transaction, and the readers. Waiting calls of
// Apply get an error. It may be called more than once.
func (db *DB) Close() error {
	var err error
	db.close.Do(func() {
		if db.reqs != nil {
			close(db.quit)
			<-db.done
		}
		db.watchMu.Lock()
		if db.watch != nil {
			db.watch.Close()
			db.watch = nil
		}
		db.watchMu.Unlock()
		err = db.read.Load().Close()
	})
	return err
}

// Home returns the home whose records these are.
func (db *DB) Home() home.Dir { return db.home }

// Replaced returns how often the file was found removed or replaced since Open. When it
// has grown, earlier records may be gone.
func (db *DB) Replaced() int64 { return db.fresh.Load() }

// DataVersion returns a number that changes when any process has committed a change. It is
// only comparable with others from this DB.
func (db *DB) DataVersion(ctx context.Context) (v int64, err error) {
	db.watchMu.Lock()
	defer db.watchMu.Unlock()
	if fresh := db.fresh.Load(); db.watch != nil && db.watchFresh != fresh {
		db.watch.Close()
		db.watch = nil
	}
	if db.watch == nil {
		db.watchFresh = db.fresh.Load()
		if db.watch, err = db.read.Load().Conn(ctx); err != nil {
			db.watch = nil
			return 0, fileError(db.home, err)
		}
	}
	if err = db.watch.QueryRowContext(ctx, "PRAGMA data_version").Scan(&v); err != nil {
		db.watch.Close()
		db.watch = nil
		return 0, fileError(db.home, err)
	}
	return db.watchFresh<<40 | v, nil
}

// QuickCheck reads the file and reports what is wrong with its structure; it compares no
// indexes with their tables and is several times faster than Check.
func (db *DB) QuickCheck(ctx context.Context) error { return db.pragma(ctx, "quick_check(10)") }

// pragma runs a check of SQLite's; what it finds matches Damaged.
func (db *DB) pragma(ctx context.Context, what string) error {
	found, err := Collect(ctx, db.read.Load(), func(r *sql.Rows) (s string, err error) {
		err = r.Scan(&s)
		return s, err
	}, "PRAGMA "+what)
	if err != nil {
		return fileError(db.home, err)
	}
	for _, s := range found {
		if s != "ok" {
			return fileError(db.home, errors.New(malformed+": "+s))
		}
	}
	return nil
}

// Check reads the whole file and reports what is wrong with it.
func (db *DB) Check(ctx context.Context) error {
	if err := db.pragma(ctx, "integrity_check(10)"); err != nil {
		return err
	}
	loose := 0
	err := db.read.Load().QueryRowContext(ctx, "SELECT count(*) FROM pragma_foreign_key_check").Scan(&loose)
	if err == nil && loose > 0 {
		err = fmt.Errorf("%d rows refer to rows that are missing", loose)
	}
	if err != nil {
		return fileError(db.home, err)
	}
	return nil
}
