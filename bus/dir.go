package bus

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent/home"
)

// openDir opens a directory below the home without following a link below it.
func openDir(home home.Dir, rel string, create bool) (int, error) {
	fd, err := openExisting(home, rel)
	if err == nil || !create || !errors.Is(err, fs.ErrNotExist) {
		return fd, err
	}
	if err := makeDir(home, rel); err != nil {
		return -1, err
	}
	return openExisting(home, rel)
}

func openExisting(h home.Dir, rel string) (int, error) {
	root, err := sysOpen(unix.AT_FDCWD, h.Root(), unix.O_DIRECTORY|unix.O_RDONLY)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: h.Root(), Err: err}
	}
	defer unix.Close(root)
	fd, err, ok := openBeneath(root, rel)
	if ok {
		if err == unix.ELOOP {
			err = home.ErrLink
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: h.Path(rel), Err: err}
		}
		return fd, nil
	}
	f, err := h.OpenDir(rel, false)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	err = retry(func() error {
		fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// makeDir makes a directory below the home, mode 0700, and sees to it that it
// and its parents survive a loss of power.
func makeDir(home home.Dir, rel string) error {
	if err := step("mkdir"); err != nil {
		return &fs.PathError{Op: "mkdir", Path: home.Path(rel), Err: err}
	}
	f, err := home.OpenDir(rel, true)
	if err != nil {
		return err
	}
	f.Close()
	for up := path.Dir(rel); ; up = path.Dir(up) {
		fd, err := openExisting(home, up)
		if err != nil {
			return err
		}
		err = sysFsync(fd)
		unix.Close(fd)
		if err != nil {
			return &fs.PathError{Op: "fsync", Path: home.Path(up), Err: err}
		}
		if up == "." {
			return nil
		}
	}
}

// A dir is a directory kept open. Before each use the system is asked where it
// lies now, so one that was removed, moved away or replaced, by a link too and
// at any place of its path, is opened anew (or refused). It is not safe for
// concurrent use.
type dir struct {
	home    home.Dir
	rel     string
	open    bool
	fd      int
	path    string // where it lay when it was opened
	checked time.Time
}

// checkAgain is how long a check holds good: the system calls of one letter.
const checkAgain = 5 * time.Millisecond

// use returns the descriptor, good until the next call. mended says what had
// to be done about the directory first, "" if nothing had.
func (d *dir) use() (fd int, mended string, err error) {
	now := time.Now()
	if d.open && now.Sub(d.checked) < checkAgain {
		return d.fd, "", nil
	}
	if d.open {
		if path, ok := pathOf(d.fd); ok && path == d.path {
			d.checked = now
			return d.fd, "", nil
		}
		d.close()
	}
	fd, err = openExisting(d.home, d.rel)
	if errors.Is(err, fs.ErrNotExist) {
		mended = "was gone and is made anew"
		fd, err = openDir(d.home, d.rel, true)
	}
	if err != nil {
		return -1, "", err
	}
	st, err := sysFstat(fd)
	if err == nil && st.Mode&0o022 != 0 {
		mended = fmt.Sprintf("was open to others (mode %04o) and is 0700 now", st.Mode&0o7777)
		err = unix.Fchmod(fd, 0o700)
	}
	if err != nil {
		unix.Close(fd)
		return -1, "", fmt.Errorf("%s: %w", d.home.Path(d.rel), err)
	}
	d.open, d.fd, d.checked = true, fd, now
	d.path, _ = pathOf(fd)
	return fd, mended, nil
}

func (d *dir) close() {
	if d.open {
		unix.Close(d.fd)
		d.open = false
	}
}
