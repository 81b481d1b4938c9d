package chatdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"netsky/phone/chat"
)

// A Decoder returns the text of an attributedBody.
type Decoder func(attributedBody []byte) (string, error)

// Options are what a DB is made with.
type Options struct {
	Path   string  // of chat.db; it need not exist yet
	Decode Decoder // Text if nil

	// What follows has defaults.
	Now   func() time.Time
	Every time.Duration // between two looks; 750 ms
	Wait  time.Duration // how long Next waits for something; 30 s
	Busy  time.Duration // how long a locked database is waited for; 5 s
	Rest  time.Duration // how long Next rests after a first failure; 500 ms
}

// The times after which a row is read though something of it is missing, and those for which it
// stays in the cursor.
const (
	settle     = 500 * time.Millisecond
	grace      = 2500 * time.Millisecond
	emptyAfter = 10 * time.Second
	asideFor   = 10 * time.Minute
	planFor    = 31 * 24 * time.Hour // Messages lets people plan for fewer days
	maxAside   = 100
)

const (
	defaultEvery = 750 * time.Millisecond
	activeEvery  = 200 * time.Millisecond
	activeFor    = time.Minute
	defaultWait  = 30 * time.Second
	defaultBusy  = 5 * time.Second
	defaultRest  = 500 * time.Millisecond
	longestRest  = 30 * time.Second
	freshAfter   = 2 * time.Minute // a connection is replaced after it
)

var errClosed = errors.New("chat.db: closed")

// A DB reads one chat.db. Its methods may be called at the same time, except that Next is called
// by one caller only.
type DB struct {
	o      Options
	closed chan struct{}
	once   sync.Once

	mu   sync.RWMutex // held for reading while conn is in use
	conn *conn        // nil: to be opened
	// opened counts connections; it is written with mu held for writing.
	opened uint64

	// What follows is Next's.
	seen     uint64 // the connection and
	version  int64  // the data_version of the last look
	marks    []mark
	active   time.Time // when something last came
	failures int       // in a row
	failed   time.Time
}

// New returns a reader of the database at o.Path. Nothing is opened yet, so it cannot fail: each
// method opens what it needs, and reports a *chat.Degraded if it can't.
func New(o Options) *DB {
	if abs, err := filepath.Abs(o.Path); err == nil {
		o.Path = abs
	}
	if o.Decode == nil {
		o.Decode = Text
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Every = or(o.Every, defaultEvery)
	o.Wait = or(o.Wait, defaultWait)
	o.Busy = or(o.Busy, defaultBusy)
	o.Rest = or(o.Rest, defaultRest)
	return &DB{o: o, closed: make(chan struct{})}
}

func or(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// Path returns the database's path.
func (d *DB) Path() string { return d.o.Path }

// Close releases the database; a Next that waits returns.
func (d *DB) Close() error {
	d.once.Do(func() { close(d.closed) })
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.conn.close()
	d.conn = nil
	return err
}

// use calls f with a connection to the file that has the name now. It is opened if there is none,
// or none to that file.
func (d *DB) use(ctx context.Context, f func(*conn) error) error {
	d.mu.RLock()
	for !d.conn.current(d.o) {
		d.mu.RUnlock()
		if err := d.renew(ctx); err != nil {
			return err
		}
		d.mu.RLock()
	}
	defer d.mu.RUnlock()
	err := f(d.conn)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err() // SQLite only says that it was interrupted
	}
	switch codeOf(err) {
	case codeIO, codeCorrupt, codeNotDB, codeCantOpen, codeReadOnly:
		d.conn.broken.Store(true)
	}
	return d.degraded(err)
}

// renew opens the database, unless somebody else has.
func (d *DB) renew(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.closed:
		return errClosed
	default:
	}
	if d.conn.current(d.o) {
		return nil
	}
	d.conn.close()
	d.conn = nil
	d.opened++
	c, err := openConn(ctx, d.o, d.opened)
	if err != nil {
		return d.degraded(err)
	}
	d.conn = c
	return nil
}

// view calls f with one state of the database, which ends with it.
func (d *DB) view(ctx context.Context, f func(*view) error) error {
	return d.use(ctx, func(c *conn) error {
		tx, err := c.pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return f(&view{ctx: ctx, tx: tx, o: d.o, schema: c.schema, handles: map[int64]string{}, chats: map[int64]chatRow{}})
	})
}

// A view is one state of the database.
type view struct {
	ctx     context.Context
	tx      *sql.Tx
	o       Options
	schema  schema
	handles map[int64]string
	chats   map[int64]chatRow
}

// one reads one row; ok is false if there is none.
func (v *view) one(query string, args []any, into ...any) (ok bool, err error) {
	err = v.tx.QueryRowContext(v.ctx, query, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// all reads all rows of a query.
func (v *view) all(query string, args []any, row func(*sql.Rows) error) error {
	rows, err := v.tx.QueryContext(v.ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// SQLite's result codes.
const (
	codeBusy     = 5
	codeLocked   = 6
	codeReadOnly = 8
	codeIO       = 10
	codeCorrupt  = 11
	codeCantOpen = 14
	codeProtocol = 15 // somebody held a lock of the log's index for ten seconds
	codeAuth     = 23
	codeNotDB    = 26
)

// degraded puts what the owner can do beside an error.
func (d *DB) degraded(err error) error {
	var known *chat.Degraded
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	out := &chat.Degraded{Reason: fmt.Sprintf("%s: %v", d.o.Path, err), Err: err}
	switch codeOf(err) {
	case codeAuth, codeCantOpen, codeReadOnly:
		out.Next = adviceAccess
	case codeBusy, codeLocked, codeProtocol:
		out.Reason = fmt.Sprintf("%s: locked by another process (%v)", d.o.Path, err)
	case codeCorrupt, codeNotDB:
		out.Next = "quit Messages and open it again, which repairs what it can; `sqlite3 chat.db 'PRAGMA integrity_check'` shows what is damaged"
	}
	return out
}

// adviceAccess is for a file that the system does not let us open.
const adviceAccess = "grant Full Disk Access (System Settings, Privacy & Security) to the program that netsky is started by: " +
	"the terminal application, or netsky's own file if launchd starts it; if it has the grant, switch it off and on again. " +
	"Then restart that program and netsky: the grant is read at their start"
