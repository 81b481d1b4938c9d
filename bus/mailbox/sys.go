package mailbox

import (
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// retry repeats a call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func Open(dir int, name string, flags int) (fd int, err error) {
	if err := Step("open"); err != nil {
		return -1, err
	}
	err = retry(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0o600)
		if err == unix.EPERM && flags&NoAtime != 0 { // a file of root's
			fd, err = unix.Openat(dir, name, flags&^NoAtime|unix.O_CLOEXEC, 0o600)
		}
		return err
	})
	return fd, err
}

func Fstat(fd int) (st unix.Stat_t, err error) {
	if err := Step("fstat"); err != nil {
		return st, err
	}
	err = retry(func() error { return unix.Fstat(fd, &st) })
	return st, err
}

// Lstat stats a name in a directory and follows no link.
func Lstat(dir int, name string) (st unix.Stat_t, err error) {
	if err := Step("lstat"); err != nil {
		return st, err
	}
	err = retry(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

// Read reads at least want bytes, or to the end of the file.
func Read(fd int, buf []byte, want int) (n int, err error) {
	if err := Step("read"); err != nil {
		return 0, err
	}
	for n < want {
		var got int
		err := retry(func() (err error) {
			got, err = unix.Read(fd, buf[n:])
			return err
		})
		if err != nil || got == 0 {
			return n, err
		}
		n += got
	}
	return n, nil
}

func Write(fd int, data []byte) error {
	if err := Step("write"); err != nil {
		return err
	}
	for len(data) > 0 {
		var n int
		err := retry(func() (err error) {
			n, err = unix.Write(fd, data)
			return err
		})
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func Fsync(fd int) error {
	if err := Step("fsync"); err != nil {
		return err
	}
	return retry(func() error { return unix.Fsync(fd) })
}

func Link(dir int, from string, toDir int, to string) error {
	if err := Step("link"); err != nil {
		return err
	}
	return retry(func() error { return unix.Linkat(dir, from, toDir, to, 0) })
}

func Unlink(dir int, name string) error {
	if err := Step("unlink"); err != nil {
		return err
	}
	return retry(func() error { return unix.Unlinkat(dir, name, 0) })
}

// Rename moves a name over another one.
func Rename(dir int, from string, toDir int, to string) error {
	if err := Step("rename"); err != nil {
		return err
	}
	return retry(func() error { return unix.Renameat(dir, from, toDir, to) })
}

// Move moves a name and never overwrites: EEXIST if the name is taken.
func Move(dir int, from string, toDir int, to string) error {
	if err := Step("move"); err != nil {
		return err
	}
	err := retry(func() error { return renameExclusive(dir, from, toDir, to) })
	if err != unix.EINVAL && err != unix.ENOSYS && err != unix.ENOTSUP {
		return err
	}
	// The file system has no such rename. A crash between the two calls leaves the file
	// under both names; its ID keeps it one message.
	if err := Link(dir, from, toDir, to); err != nil {
		return err
	}
	return Unlink(dir, from)
}

// Names calls fn with the names in a directory, from its beginning, until
// fn returns false.
func Names(fd int, fn func(name string) bool) error {
	_, err := Dirents(fd, nil, func(name []byte) bool { return fn(string(name)) })
	return err
}

// listings are buffers for Dirents: the daemon lists directories all day.
var listings = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Dirents is Names with names that are valid only during the call, and with the
// caller's buffer, if that is not nil. parts is how many system calls returned them:
// only a single one is a consistent snapshot.
func Dirents(fd int, buf []byte, fn func(name []byte) bool) (parts int, err error) {
	if err := Step("list"); err != nil {
		return 0, err
	}
	if buf == nil {
		pooled := listings.Get().(*[32 << 10]byte)
		defer listings.Put(pooled)
		buf = pooled[:]
	}
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return 0, err
	}
	for ; ; parts++ {
		var n int
		err := retry(func() (err error) {
			n, err = unix.ReadDirent(fd, buf)
			return err
		})
		if err != nil || n <= 0 {
			return parts, err
		}
		if !eachDirent(buf[:n], fn) {
			return parts + 1, nil
		}
	}
}

// Pwrite writes at an offset.
func Pwrite(fd int, data []byte, off int64) error {
	if err := Step("pwrite"); err != nil {
		return err
	}
	return retry(func() error {
		_, err := unix.Pwrite(fd, data, off)
		return err
	})
}

// Flock locks or unlocks an open file.
func Flock(fd, how int) error { return retry(func() error { return unix.Flock(fd, how) }) }
