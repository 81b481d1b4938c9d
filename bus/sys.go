package bus

import (
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// The system calls of this package stand here and nowhere else, each behind
// its step, so that a test can end the world before any of them.

// retry runs the call again when a signal interrupted it.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func sysOpen(dir int, name string, flags int) (fd int, err error) {
	if err := step("open"); err != nil {
		return -1, err
	}
	err = retry(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0o600)
		if err == unix.EPERM && flags&noAtime != 0 { // a file of root's
			fd, err = unix.Openat(dir, name, flags&^noAtime|unix.O_CLOEXEC, 0o600)
		}
		return err
	})
	return fd, err
}

func sysFstat(fd int) (st unix.Stat_t, err error) {
	if err := step("fstat"); err != nil {
		return st, err
	}
	err = retry(func() error { return unix.Fstat(fd, &st) })
	return st, err
}

// sysLstat looks at a name in a directory and follows no link.
func sysLstat(dir int, name string) (st unix.Stat_t, err error) {
	if err := step("lstat"); err != nil {
		return st, err
	}
	err = retry(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

// sysRead reads at least want bytes, or as far as the file goes.
func sysRead(fd int, buf []byte, want int) (n int, err error) {
	if err := step("read"); err != nil {
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

func sysWrite(fd int, data []byte) error {
	if err := step("write"); err != nil {
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

func sysFsync(fd int) error {
	if err := step("fsync"); err != nil {
		return err
	}
	return retry(func() error { return unix.Fsync(fd) })
}

func sysLink(dir int, from string, toDir int, to string) error {
	if err := step("link"); err != nil {
		return err
	}
	return retry(func() error { return unix.Linkat(dir, from, toDir, to, 0) })
}

func sysUnlink(dir int, name string) error {
	if err := step("unlink"); err != nil {
		return err
	}
	return retry(func() error { return unix.Unlinkat(dir, name, 0) })
}

// sysRename moves a name over another one.
func sysRename(dir int, from string, toDir int, to string) error {
	if err := step("rename"); err != nil {
		return err
	}
	return retry(func() error { return unix.Renameat(dir, from, toDir, to) })
}

// sysMove moves a name and never overwrites: EEXIST if the name is taken.
func sysMove(dir int, from string, toDir int, to string) error {
	if err := step("move"); err != nil {
		return err
	}
	err := retry(func() error { return renameExclusive(dir, from, toDir, to) })
	if err != unix.EINVAL && err != unix.ENOSYS && err != unix.ENOTSUP {
		return err
	}
	// A file system that has no such rename. A crash between the two calls
	// leaves the file under both names; its ID keeps it one message.
	if err := sysLink(dir, from, toDir, to); err != nil {
		return err
	}
	return sysUnlink(dir, from)
}

// sysNames calls fn with the names in a directory, from its beginning, until
// fn returns false.
func sysNames(fd int, fn func(name string) bool) error {
	buf := listings.Get().(*[32 << 10]byte)
	defer listings.Put(buf)
	_, err := sysDirents(fd, buf[:], func(name []byte) bool { return fn(string(name)) })
	return err
}

// listings are buffers for sysNames: the daemon lists directories all day.
var listings = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// sysDirents is sysNames with the caller's buffer and names that are good only
// during the call. parts says in how many parts the system gave them: only one
// part is a picture of one moment.
func sysDirents(fd int, buf []byte, fn func(name []byte) bool) (parts int, err error) {
	if err := step("list"); err != nil {
		return 0, err
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
