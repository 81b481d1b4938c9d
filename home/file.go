package home

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"netsky/agent"
	"netsky/internal/proc"
	"netsky/internal/words"

	"golang.org/x/sys/unix"
)

// ErrLink reports a path below the home that leads through a symbolic link.
var ErrLink = errors.New("is a symbolic link")

// OpenDir opens a directory below the home, component by component, following no symbolic
// link. With create it creates missing ones, mode 0700 whatever the umask. The caller
// closes the file; its descriptor is for the *at calls.
func (h Dir) OpenDir(rel string, create bool) (*os.File, error) {
	fd, err := proc.Open(h.dir, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_RDONLY)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		var st unix.Stat_t
		if unix.Lstat(h.dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			err = ErrLink
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: h.dir, Err: err}
	}
	done, top := h.dir, true
	for part := range strings.SplitSeq(path.Clean(rel), "/") {
		if part == "." {
			continue
		}
		if part == ".." || part == "" {
			unix.Close(fd)
			return nil, fmt.Errorf("%s: not a path below the home", rel)
		}
		done += "/" + part
		next, made, err := openatDir(fd, part, create)
		unix.Close(fd)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: done, Err: err}
		}
		if fd = next; made && top { // creating anything in a directory makes that a home
			if err := h.mark(false); err != nil {
				unix.Close(fd)
				return nil, err
			}
		}
		top = false
	}
	return os.NewFile(uintptr(fd), done), nil
}

// Records returns the names, without ".json", of the records in a directory, in order: none if it does not
// exist. With an error there may be more.
func Records(h Dir, rel string) (names []string, err error) {
	d, err := h.OpenDir(rel, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	all, err := d.Readdirnames(-1)
	for _, file := range all {
		if name, ok := strings.CutSuffix(file, ".json"); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}

// Agents returns the agents of the records in a directory, in display order.
func Agents(h Dir, rel string) (ids []agent.ID, err error) {
	names, err := Records(h, rel)
	for _, name := range names {
		if id, err := agent.Parse(name); err == nil && id.IsAgent() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, agent.Compare)
	return ids, err
}

func openatDir(dir int, name string, create bool) (fd int, made bool, err error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_RDONLY
	fd, err = proc.Openat(dir, name, flags, 0)
	if err == unix.ENOENT && create {
		err := unix.Mkdirat(dir, name, 0o700)
		if err != nil && err != unix.EEXIST {
			return -1, false, err
		}
		made = err == nil
		fd, err = proc.Openat(dir, name, flags, 0)
		if err == unix.EACCES && made { // the umask left no permission to open it
			if err = unix.Fchmodat(dir, name, 0o700, 0); err == nil {
				fd, err = proc.Openat(dir, name, flags, 0)
			}
		}
		if err == nil && made {
			if err = unix.Fchmod(fd, 0o700); err != nil {
				unix.Close(fd)
			}
		}
		if err != nil {
			return -1, made, err
		}
		return fd, made, nil
	}
	if err == unix.ENOTDIR || err == unix.ELOOP {
		var st unix.Stat_t
		if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return -1, false, ErrLink
		}
	}
	return fd, false, err
}

var tempCount atomic.Uint64

// WriteFile replaces the file atomically: a dot-file in the same directory, mode 0600,
// then a rename. With sync the file and then the directory are fsynced, so that the new
// content survives a power loss.
func (h Dir) WriteFile(rel string, data []byte, sync bool) error {
	return h.writeFiles(path.Dir(rel), []string{path.Base(rel)}, data, sync)
}

// writeFiles is WriteFile of the same data to several files of a directory, each named
// once. They are links to one file, which is written and flushed once: that is safe as
// nothing here writes into a file with several names. After an error some may have been
// replaced, but none for lack of space.
func (h Dir) writeFiles(rel string, names []string, data []byte, sync bool) (err error) {
	dir, err := h.OpenDir(rel, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	d := int(dir.Fd())
	failed := func(op, name string, err error) error {
		return &fs.PathError{Op: op, Path: h.Path(rel, name), Err: reason(err)}
	}
	temps := make([]string, 0, len(names))
	defer func() {
		if err != nil {
			for _, temp := range temps { // those not renamed yet
				unix.Unlinkat(d, temp, 0)
			}
		}
	}()
	f, err := writeTemp(d, data)
	if err != nil {
		return failed("write", names[0], err)
	}
	temps = append(temps, f.Name())
	if sync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return failed("write", names[0], err)
	}
	for _, name := range names[1:] {
		temp, err := newTemp(d, func(temp string) error { return unix.Linkat(d, temps[0], d, temp, 0) })
		if err != nil {
			return failed("write", name, err)
		}
		temps = append(temps, temp)
	}
	for i, name := range names {
		if err := unix.Renameat(d, temps[i], d, name); err != nil {
			return failed("rename", name, err)
		}
	}
	if sync {
		return dir.Sync()
	}
	return nil
}

// create writes a file that does not exist yet, in one step; the error matches
// fs.ErrExist if it does.
func (h Dir) create(rel string, data []byte) error {
	dir, err := h.OpenDir(path.Dir(rel), true)
	if err != nil {
		return err
	}
	defer dir.Close()
	d := int(dir.Fd())
	f, err := writeTemp(d, data)
	if err == nil {
		defer unix.Unlinkat(d, f.Name(), 0)
		if err = f.Close(); err == nil {
			err = unix.Linkat(d, f.Name(), d, path.Base(rel), 0)
		}
	}
	if err != nil {
		return &fs.PathError{Op: "create", Path: h.Path(rel), Err: reason(err)}
	}
	return nil
}

// newTemp creates a dot-file under a name that no other writer uses.
func newTemp(dir int, make func(name string) error) (name string, err error) {
	name = ".tmp-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(tempCount.Add(1), 10)
	if err = make(name); err == unix.EEXIST { // left by a dead process with our pid
		unix.Unlinkat(dir, name, 0)
		err = make(name)
	}
	return name, err
}

// rewrite is WriteFile for a full disk: it overwrites the existing file, which needs no
// space. A reader, or a power loss, may see half of it.
func (h Dir) rewrite(rel string, data []byte) error {
	f, err := h.openFile(rel, unix.O_RDWR, false)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	const block = 4096 // the first block is already allocated
	st, ok := info.Sys().(*syscall.Stat_t)
	if len(data) > block || info.Size() > block || info.Size() == 0 || !ok || st.Nlink != 1 {
		return &fs.PathError{Op: "write", Path: h.Path(rel), Err: unix.ENOSPC}
	}
	if old := int(info.Size()); old > len(data) { // JSON may end with blanks
		data = append(slices.Clone(data), bytes.Repeat([]byte(" "), old-len(data))...)
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return f.Sync()
}

// writeTemp creates a dot-file with the data; its Name is relative to the directory.
func writeTemp(dir int, data []byte) (*os.File, error) {
	fd := -1
	temp, err := newTemp(dir, func(name string) (err error) {
		fd, err = proc.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
		return err
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), temp)
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		unix.Unlinkat(dir, temp, 0)
		return nil, reason(err)
	}
	return f, nil
}

// reason returns an error without its path, for messages that name the path.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// ReadFile reads a file of at most limit bytes. It never blocks on a FIFO or a device and
// never follows a link: only a regular file is read.
func (h Dir) ReadFile(rel string, limit int64) ([]byte, error) {
	f, err := h.openFile(rel, unix.O_RDONLY, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, limit)
}

// ReadOwn reads a file that a person has named, anywhere, possibly through links. Like
// ReadFile it reads only a regular file of at most limit bytes, and never blocks on any
// other.
func ReadOwn(file string, limit int64) ([]byte, error) {
	fd, err := proc.Open(file, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: file, Err: err}
	}
	f := os.NewFile(uintptr(fd), file)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", file)
	}
	return readAll(f, limit)
}

func readAll(f *os.File, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", f.Name(), limit)
	}
	return data, nil
}

// OpenAppend opens a file for appending, created with mode 0600 if missing. A line written
// with one Write call is not mixed with another process's.
func (h Dir) OpenAppend(rel string) (*os.File, error) {
	return h.openFile(rel, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT, true)
}

func (h Dir) openFile(rel string, flags int, create bool) (*os.File, error) {
	dir, err := h.OpenDir(path.Dir(rel), create)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := proc.Openat(int(dir.Fd()), path.Base(rel), flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err == unix.ELOOP {
		err = ErrLink
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: h.Path(rel), Err: err}
	}
	f := os.NewFile(uintptr(fd), h.Path(rel))
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", h.Path(rel))
	}
	if err == nil && create {
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Remove removes a file below the home; a missing one is no error.
func (h Dir) Remove(rel string) error {
	dir, err := h.OpenDir(path.Dir(rel), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Unlinkat(int(dir.Fd()), path.Base(rel), 0); err != nil && err != unix.ENOENT {
		return &fs.PathError{Op: "remove", Path: h.Path(rel), Err: err}
	}
	return nil
}

// Room returns an error that matches unix.ENOSPC unless a directory's file system has so many bytes for us.
func Room(dir string, bytes int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < bytes {
		return fmt.Errorf("%s: needs %s, and %s are free: %w", dir, words.Size(bytes), words.Size(free), unix.ENOSPC)
	}
	return nil
}
