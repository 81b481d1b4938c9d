package mailbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"netsky/home"
)

// Lines is a file of a mailbox, or of a host's mailboxes, to which its only writer, such as the
// holder of the mailbox's lock, appends lines. A crash leaves at most half a line at the end, which readers skip; what is
// not known to be whole is replaced by a new file.
type Lines struct {
	Home  home.Dir
	Box   string // the mailbox's directory
	Name  string // of the file in it
	Files *Maker
	Size  int64 // of the file, as far as the lines are valid

	open  bool
	file  Kept
	doubt bool // the file has an invalid part after Size
}

// reopen opens the file, and creates it if it is missing.
func (l *Lines) reopen() error {
	l.Close()
	dir, err := MakeDir(l.Home, l.Box)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, size, err := openLines(dir, l.Name, l.path(), unix.O_RDWR|unix.O_APPEND|unix.O_CREAT)
	if err != nil {
		return err
	}
	l.open, l.file, l.Size = true, Keep(fd), size
	if err := l.Files.EnsureMode(fd); err != nil {
		return err
	}
	if size == 0 { // possibly just created: its name must survive too
		return Fsync(dir)
	}
	return nil
}

// openLines opens such a file.
func openLines(dir int, name, path string, flags int) (fd int, size int64, err error) {
	fd, err = Open(dir, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return -1, 0, fmt.Errorf("open %s: %w", path, err)
	}
	st, err := Fstat(fd)
	if err == nil {
		err = CheckStat(st)
	}
	if err != nil {
		unix.Close(fd)
		return -1, 0, fmt.Errorf("%s: %w", path, err)
	}
	return fd, st.Size, nil
}

func (l *Lines) path() string { return l.Home.Path(l.Box, l.Name) }

// Open opens the file, and creates it if it is missing, for a writer that does not read it.
func (l *Lines) Open() error {
	if err := l.reopen(); err != nil {
		return err
	}
	return l.each(func([]byte) error { return nil })
}

// A LinesAt is a place in such a file. The zero value is the beginning.
type LinesAt struct {
	ino  uint64
	size int64
}

// ReadLines calls fn with each line of the file behind a place, and returns the place behind
// them. A file that was replaced since is read from its beginning; a missing one has no lines.
func ReadLines(h home.Dir, box, name string, since LinesAt, fn func(line []byte)) (LinesAt, error) {
	dir, err := OpenDir(h, box)
	if errors.Is(err, fs.ErrNotExist) {
		return LinesAt{}, nil
	}
	if err != nil {
		return since, err
	}
	defer unix.Close(dir)
	fd, size, err := openLines(dir, name, h.Path(box, name), unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return LinesAt{}, nil
	}
	if err != nil {
		return since, err
	}
	defer unix.Close(fd)
	st, err := Fstat(fd)
	if err != nil {
		return since, err
	}
	if st.Ino != since.ino || size < since.size {
		since = LinesAt{ino: st.Ino}
	}
	in := bufio.NewReaderSize(io.NewSectionReader(ReaderAt(fd), since.size, size-since.size), 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF { // the beginning of a line is no line yet
			return since, nil
		}
		if err != nil {
			return since, fmt.Errorf("read %s: %w", h.Path(box, name), err)
		}
		fn(line)
		since.size += int64(len(line))
	}
}

// Close closes the file.
func (l *Lines) Close() {
	if l.open {
		unix.Close(l.file.FD)
		l.open = false
	}
}

// Gone reports whether the file is not open, or has been removed or replaced.
func (l *Lines) Gone() bool { return !l.open || !l.file.Here() }

// each calls fn with each line; it is valid only during the call.
func (l *Lines) each(fn func(line []byte) error) error {
	// One read is one step, however long the file is.
	if err := Step("read"); err != nil {
		return err
	}
	half, err := eachLine(l.file.FD, l.Size, l.path(), fn)
	l.doubt = l.doubt || half
	return err
}

// eachLine calls fn with each line of a file. half reports that there is half a line at its end.
func eachLine(fd int, size int64, name string, fn func(line []byte) error) (half bool, err error) {
	in := bufio.NewReaderSize(io.NewSectionReader(ReaderAt(fd), 0, size), 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return len(line) > 0, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return false, fmt.Errorf("read %s: %w", name, err)
		}
		if err := fn(line); err != nil {
			return false, err
		}
	}
}

// Append appends lines; with sync they survive a loss of power. If that fails, the file is
// replaced by what all writes, which includes these lines: the kernel may have dropped what
// it could not write.
func (l *Lines) Append(lines []byte, sync bool, all func(io.Writer) error) error {
	if l.open && !l.doubt {
		err := Write(l.file.FD, lines)
		if err == nil && sync {
			err = Fsync(l.file.FD)
		}
		if err == nil {
			l.Size += int64(len(lines))
			return nil
		}
	}
	l.doubt = true
	return l.Replace(all)
}

// Replace replaces the file by a new one with what all writes, which survives a loss of power.
func (l *Lines) Replace(all func(io.Writer) error) error {
	dir, err := MakeDir(l.Home, l.Box)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	temp := TempName(l.Name)
	if err := Unlink(dir, temp); err != nil && err != unix.ENOENT {
		return err
	}
	err = l.Files.WriteNew(dir, temp, func(fd int) error {
		out := bufio.NewWriterSize(Writer(fd), 64<<10)
		if err := all(out); err != nil {
			return err
		}
		return out.Flush()
	})
	if err != nil {
		return err
	}
	if err := Rename(dir, temp, dir, l.Name); err != nil {
		return err
	}
	if err := Fsync(dir); err != nil {
		return err
	}
	l.doubt = false
	return l.reopen()
}
