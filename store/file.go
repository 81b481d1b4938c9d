package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/home"
)

// dsn returns the data source name. It contains the pragmas because one sent by Exec
// reaches only one connection of a pool.
func dsn(file, mode, txlock string, busyMS int, more string) string {
	u := url.URL{Scheme: "file", Path: file}
	return u.String() + "?mode=" + mode + "&_txlock=" + txlock + "&_foreign_keys=1&_busy_timeout=" +
		strconv.Itoa(busyMS) + "&_stmt_cache_size=64" + more
}

// logSuffixes end the names of the log beside a database and of its index.
var logSuffixes = []string{"-wal", "-shm"}

const writable = "&_journal_mode=WAL&_synchronous=NORMAL"

// checkFile is lookAt of the database's file.
func checkFile(h home.Dir) (info unix.Stat_t, ok bool, err error) { return lookAt(h.Path(home.DBFile)) }

// lookAt reports whether a database file exists, refuses a link or other irregular file,
// and makes it private.
//
// It must never open the file: closing a descriptor drops every POSIX lock this process
// has on it, including those of SQLite connections in use.
func lookAt(file string) (info unix.Stat_t, ok bool, err error) {
	err = unix.Lstat(file, &info)
	if err == unix.ENOENT {
		return info, false, nil
	}
	if err != nil {
		return info, false, &fs.PathError{Op: "open", Path: file, Err: err}
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFLNK:
		return info, false, &fs.PathError{Op: "open", Path: file, Err: home.ErrLink}
	default:
		return info, false, fmt.Errorf("%s: not a regular file", file)
	}
	if info.Mode&0o077 != 0 {
		if err := os.Chmod(file, 0o600); err != nil {
			return info, false, err
		}
	}
	return info, true, nil
}

// createLock is held while the database is created, copied or put back.
const createLock = "records"

// create creates the database under a temporary name, with all its tables and what the
// home's files hold about the agents, and then links it to its place: whoever sees meta.db
// sees a complete one. It is no error if another process was faster. With lost, an earlier
// database existed.
func create(ctx context.Context, h home.Dir, lost bool) error {
	lock, err := h.WaitLock(ctx, createLock, nil)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	defer lock.Unlock()
	if _, ok, err := checkFile(h); ok || err != nil {
		return err
	}
	dir, err := h.OpenDir(".", false)
	if err != nil {
		return err
	}
	defer dir.Close()
	if done, err := putBack(h, dir); done || err != nil {
		return err
	}
	d := int(dir.Fd())
	temp := ".tmp-" + agent.NewStart() + ".db"
	err = newFile(dir, temp)
	defer func() {
		for _, suffix := range append(logSuffixes, "") {
			unix.Unlinkat(d, temp+suffix, 0)
		}
	}()
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite3", dsn(h.Path(temp), "rw", "immediate", 1000, writable+"&_auto_vacuum=2"))
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		err = migrate(ctx, conn, migrations)
		if err == nil {
			err = (&tx{conn}).rebuild(append(withNotice(rebuilt(h), lost), scheduled(h)...))
		}
		conn.Close()
	}
	if closed := db.Close(); err == nil { // moves the log into the file and fsyncs it
		err = closed
	}
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := dropLog(dir, home.DBFile); err != nil {
		return err
	}
	if err := unix.Linkat(d, temp, d, home.DBFile, 0); err != nil && err != unix.EEXIST {
		return &fs.PathError{Op: "create", Path: h.Path(home.DBFile), Err: err}
	}
	return nil
}

// newFile creates an empty file in a directory.
func newFile(dir *os.File, name string) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err == nil {
		err = unix.Fchmod(fd, 0o600) // whatever the umask
		unix.Close(fd)
	}
	if err != nil {
		return &fs.PathError{Op: "create", Path: dir.Name() + "/" + name, Err: err}
	}
	return nil
}

// dropLog removes the log of a database that no longer has its name: SQLite would replay
// it into the next one. A process that has the old file open keeps its log, which has no
// name then.
func dropLog(dir *os.File, name string) error {
	for _, suffix := range logSuffixes {
		if err := remove(dir, name+suffix); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a file of a directory; a missing one is no error.
func remove(dir *os.File, name string) error {
	if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && err != unix.ENOENT {
		return &fs.PathError{Op: "remove", Path: dir.Name() + "/" + name, Err: err}
	}
	return nil
}

// malformed is what SQLite says of a database whose structure is broken.
const malformed = "database disk image is malformed"

// Damaged reports whether an error means that the file is no database, or an incomplete
// one. Opening a home without the file creates a new one from the bus.
func Damaged(err error) bool {
	if err == nil {
		return false
	}
	// SQLite's own messages: its error type exists only in a build with cgo.
	text := err.Error()
	return strings.Contains(text, "file is not a database") || strings.Contains(text, malformed) ||
		strings.Contains(text, "malformed database schema")
}

// fileError prefixes SQLite's error with the database's file.
func fileError(h home.Dir, err error) error { return namedError(h.Path(home.DBFile), err) }

func namedError(file string, err error) error {
	if strings.Contains(err.Error(), file) {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}
