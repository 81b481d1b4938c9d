package mailbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"netsky/home"
)

// MakeDir opens a directory below the home as OpenDir does, and creates it if it is
// missing: mode 0700, and it and its parents survive a loss of power.
func MakeDir(home home.Dir, rel string) (int, error) {
	fd, err := OpenDir(home, rel)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return fd, err
	}
	if err := makeDir(home, rel); err != nil {
		return -1, err
	}
	return OpenDir(home, rel)
}

// OpenDir opens a directory below the home without following links below it.
func OpenDir(h home.Dir, rel string) (int, error) {
	root, err := Open(unix.AT_FDCWD, h.Root(), unix.O_DIRECTORY|unix.O_RDONLY)
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

func makeDir(home home.Dir, rel string) error {
	if err := Step("mkdir"); err != nil {
		return &fs.PathError{Op: "mkdir", Path: home.Path(rel), Err: err}
	}
	f, err := home.OpenDir(rel, true)
	if err != nil {
		return err
	}
	f.Close()
	for up := path.Dir(rel); ; up = path.Dir(up) {
		fd, err := OpenDir(home, up)
		if err != nil {
			return err
		}
		err = Fsync(fd)
		unix.Close(fd)
		if err != nil {
			return &fs.PathError{Op: "fsync", Path: home.Path(up), Err: err}
		}
		if up == "." {
			return nil
		}
	}
}

// A Kept is a descriptor that stays open for long.
type Kept struct {
	FD   int
	path string // where it was when it was opened
}

func Keep(fd int) Kept {
	path, _ := pathOf(fd)
	return Kept{fd, path}
}

// Here reports whether it is still where it was opened: not removed, moved away or
// replaced, nor behind a link at any place of its path.
func (k Kept) Here() bool {
	path, ok := pathOf(k.FD)
	return ok && path == k.path
}

// A Dir is a directory kept open. One that has been moved or replaced is opened again,
// or refused. It is not safe for concurrent use.
type Dir struct {
	Home    home.Dir
	Rel     string
	open    bool
	kept    Kept
	checked time.Time
}

// checkAgain is how long a check is valid: the system calls for one message.
const checkAgain = 5 * time.Millisecond

// Use returns the descriptor, valid until the next call. mended describes what had to
// be repaired first, "" if nothing.
func (d *Dir) Use() (fd int, mended string, err error) {
	now := time.Now()
	if d.open && now.Sub(d.checked) < checkAgain {
		return d.kept.FD, "", nil
	}
	if d.open {
		if d.kept.Here() {
			d.checked = now
			return d.kept.FD, "", nil
		}
		d.Close()
	}
	fd, err = OpenDir(d.Home, d.Rel)
	if errors.Is(err, fs.ErrNotExist) {
		mended = "was missing and has been recreated"
		fd, err = MakeDir(d.Home, d.Rel)
	}
	if err != nil {
		return -1, "", err
	}
	st, err := Fstat(fd)
	if err == nil && st.Mode&0o022 != 0 {
		mended = fmt.Sprintf("was open to others (mode %04o), now 0700", st.Mode&0o7777)
		err = unix.Fchmod(fd, 0o700)
	}
	if err != nil {
		unix.Close(fd)
		return -1, "", fmt.Errorf("%s: %w", d.Home.Path(d.Rel), err)
	}
	d.open, d.kept, d.checked = true, Keep(fd), now
	return fd, mended, nil
}

func (d *Dir) Close() {
	if d.open {
		unix.Close(d.kept.FD)
		d.open = false
	}
}

// Count counts the envelopes in an open directory and stops at limit.
func Count(dir, limit int) (n int, err error) {
	_, err = Dirents(dir, nil, func(name []byte) bool {
		if name[0] != '.' && bytes.HasSuffix(name, []byte(".json")) {
			n++
		}
		return n < limit
	})
	return n, err
}
