package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/home"
)

// A Copy is a copy of the records.
type Copy struct {
	File   string // its absolute path
	Bytes  int64
	Schema int // the version of its tables
	Took   time.Duration
}

const (
	copyTemp = ".tmp-0-0"               // a copy that is being made; one that is left was never whole
	restored = home.DBFile + "-restore" // a whole copy, which belongs in the place of a missing database
)

// copyStep is called before each step of a copy that a crash could keep from happening.
// Tests replace it.
var copyStep = func(name string) {}

// Backup copies the home's records to the file rel of the home, by SQLite's online backup:
// as they were at one moment, while others read and write. The log grows by what they
// write meanwhile. The copy has mode 0600 and appears under its name, in the place of any
// other, when it is whole and on the disk.
//
// Any schema is copied as it is, also one that is newer than this netsky's. Without a
// database the error matches fs.ErrNotExist; where the disk has no room, unix.ENOSPC.
func Backup(ctx context.Context, h home.Dir, rel string) (Copy, error) {
	began := time.Now()
	lock, err := h.WaitLock(ctx, createLock, nil)
	if err != nil {
		return Copy{}, fmt.Errorf("copy the records: %w", err)
	}
	defer lock.Unlock()
	c := Copy{File: h.Path(rel)}
	dir, err := h.OpenDir(path.Dir(rel), true)
	if err == nil {
		defer dir.Close()
		c.Schema, c.Bytes, err = duplicate(ctx, h, home.DBFile, dir)
	}
	if err == nil {
		copyStep("whole")
		err = dropLog(dir, path.Base(rel))
	}
	if err == nil {
		err = rename(dir, copyTemp, path.Base(rel))
	}
	if err != nil {
		return Copy{}, fmt.Errorf("copy the records to %s: %w", c.File, err)
	}
	c.Took = time.Since(began)
	return c, nil
}

// Restore puts the copy rel, which stays, in the place of the home's database. The database
// that is there, damaged or not, stays as the file aside, its log beside it under aside-wal
// and aside-shm: it has all that was committed until the copy took its place. Nobody needs
// to have closed it: a DB that is open changes over, see Open. aside may be "" if there is
// no database.
//
// aside names one deed: once it is done, Restore does nothing, whatever the database holds
// by then. A crash leaves the database that was there, or none and a whole copy, which the
// next Restore or Open puts in its place.
func Restore(ctx context.Context, h home.Dir, rel, aside string) error {
	lock, err := h.WaitLock(ctx, createLock, nil)
	if err == nil {
		defer lock.Unlock()
		err = restore(ctx, h, rel, aside)
	}
	if err != nil {
		return fmt.Errorf("restore %s: %w", h.Path(rel), err)
	}
	return nil
}

func restore(ctx context.Context, h home.Dir, rel, aside string) error {
	there, ok, err := checkFile(h)
	if err != nil {
		return err
	}
	if aside != "" {
		kept, began, err := lookAt(h.Path(aside))
		if err != nil {
			return err
		}
		if ok && began && (kept.Dev != there.Dev || kept.Ino != there.Ino) {
			if _, unfinished, err := lookAt(h.Path(restored)); err != nil || !unfinished {
				return err
			}
			// A netsky that knows nothing of restored has made another database since.
			aside += "-" + agent.NewStart()
		}
	} else if ok {
		return fmt.Errorf("%w: %s, and no name to keep it under", fs.ErrExist, h.Path(home.DBFile))
	}
	dir, err := h.OpenDir(".", false)
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, _, err := duplicate(ctx, h, rel, dir); err != nil {
		return err
	}
	if ok {
		// While a connection is open, SQLite neither removes the log nor begins another.
		// If there is no database in the file, there is nothing to hold.
		if _, done, err := connect(ctx, h.Path(home.DBFile), "rw", ""); err == nil {
			defer done()
		}
		if err := keep(h, dir, aside); err != nil {
			return errors.Join(err, remove(dir, copyTemp))
		}
	}
	copyStep("kept")
	if err := rename(dir, copyTemp, restored); err != nil {
		return err
	}
	copyStep("prepared")
	if err := remove(dir, home.DBFile); err != nil {
		return err
	}
	copyStep("removed")
	_, err = putBack(h, dir)
	return err
}

// keep gives the database and its log second names.
func keep(h home.Dir, dir *os.File, aside string) error {
	to, err := h.OpenDir(path.Dir(aside), true)
	if err != nil {
		return err
	}
	defer to.Close()
	// The database's is the last, as it says that a restore has begun.
	for _, suffix := range append(logSuffixes, "") {
		copyStep("keep")
		name := path.Base(aside) + suffix
		if suffix != "" {
			if err := remove(to, name); err != nil { // of an earlier try
				return err
			}
		}
		err := unix.Linkat(int(dir.Fd()), home.DBFile+suffix, int(to.Fd()), name, 0)
		if err != nil && err != unix.EEXIST && (err != unix.ENOENT || suffix == "") {
			return &os.LinkError{Op: "link", Old: h.Path(home.DBFile + suffix), New: h.Path(aside + suffix), Err: err}
		}
	}
	return to.Sync()
}

// putBack gives a whole copy the database's name, which no file has, and reports whether
// there was one.
func putBack(h home.Dir, dir *os.File) (bool, error) {
	if _, ok, err := lookAt(h.Path(restored)); !ok || err != nil {
		return false, err
	}
	if err := dropLog(dir, home.DBFile); err != nil {
		return false, err
	}
	copyStep("put")
	return true, rename(dir, restored, home.DBFile)
}

// duplicate makes a whole copy of a database, on the disk, under the name copyTemp.
func duplicate(ctx context.Context, h home.Dir, rel string, dir *os.File) (schema int, bytes int64, err error) {
	size, err := sizeOf(h.Path(rel))
	if err == nil {
		err = home.Room(dir.Name(), size+size/10)
	}
	if err == nil {
		err = remove(dir, copyTemp)
	}
	if err != nil {
		return 0, 0, err
	}
	more := ""
	var info unix.Stat_t
	if rel != home.DBFile && unix.Lstat(h.Path(rel)+"-wal", &info) == unix.ENOENT {
		more = "&immutable=1" // nobody writes it: it is read without a log of its own
	}
	src, done, err := connect(ctx, h.Path(rel), "ro", more)
	if err != nil {
		return 0, 0, namedError(h.Path(rel), err)
	}
	defer done()
	copyStep("new")
	if err := newFile(dir, copyTemp); err != nil {
		return 0, 0, err
	}
	defer func() {
		if err != nil {
			remove(dir, copyTemp)
		}
	}()
	if _, err = src.ExecContext(ctx, "BEGIN"); err == nil {
		schema, err = userVersion(ctx, src) // from here on it is as it was at this moment
	}
	if err == nil {
		err = fill(ctx, dir.Name()+"/"+copyTemp, src)
	}
	if err == nil {
		copyStep("sync")
		bytes, err = flush(dir, copyTemp)
	}
	return schema, bytes, err
}

// fill copies a database into an empty file.
func fill(ctx context.Context, file string, src *sql.Conn) error {
	// It is flushed as a whole, and removed if it is not complete.
	dst, done, err := connect(ctx, file, "rw", "&_journal_mode=OFF&_synchronous=OFF")
	if err != nil {
		return err
	}
	defer done()
	return copyPages(ctx, dst, src)
}

// connect opens one connection to a database, and has it read the file.
func connect(ctx context.Context, file, mode, more string) (c *sql.Conn, done func(), err error) {
	db, err := sql.Open("sqlite3", dsn(file, mode, "deferred", busyMS, more))
	if err != nil {
		return nil, nil, err
	}
	if c, err = db.Conn(ctx); err == nil {
		if _, err = userVersion(ctx, c); err == nil {
			return c, func() { c.Close(); db.Close() }, nil
		}
		c.Close()
	}
	db.Close()
	return nil, nil, err
}

// SchemaOf returns the version of the tables in the home's database, 0 if it has none yet.
// It migrates nothing. Without a database the error matches fs.ErrNotExist, and where the
// file is none, Damaged.
func SchemaOf(ctx context.Context, h home.Dir) (int, error) {
	_, err := Size(h)
	if err != nil {
		return 0, err
	}
	c, done, err := connect(ctx, h.Path(home.DBFile), "ro", "")
	if err != nil {
		return 0, fileError(h, err)
	}
	defer done()
	return userVersion(ctx, c)
}

// Size returns the bytes that a copy of the home's records takes at most.
func Size(h home.Dir) (int64, error) { return sizeOf(h.Path(home.DBFile)) }

func sizeOf(file string) (int64, error) {
	info, ok, err := lookAt(file)
	if err == nil && !ok {
		err = &fs.PathError{Op: "open", Path: file, Err: fs.ErrNotExist}
	}
	if err != nil {
		return 0, err
	}
	var log unix.Stat_t // stays 0 if there is none
	_ = unix.Lstat(file+"-wal", &log)
	return info.Size + log.Size, nil
}

// flush writes a file to the disk and returns its size.
func flush(dir *os.File, name string) (int64, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: dir.Name() + "/" + name, Err: err}
	}
	f := os.NewFile(uintptr(fd), dir.Name()+"/"+name)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Sync()
}

// rename renames a file of a directory, for good.
func rename(dir *os.File, from, to string) error {
	if err := unix.Renameat(int(dir.Fd()), from, int(dir.Fd()), to); err != nil {
		return &os.LinkError{Op: "rename", Old: dir.Name() + "/" + from, New: dir.Name() + "/" + to, Err: err}
	}
	return dir.Sync()
}
