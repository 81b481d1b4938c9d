package cost

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A stamp is what tells whether a file has changed.
type stamp struct {
	device, inode, size, mtime int64
}

// stampOf returns the file's stamp; the zero stamp if it is none that can be read.
func stampOf(path string) stamp {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return stamp{}
	}
	return stamp{int64(st.Dev), int64(st.Ino), st.Size, st.Mtim.Nano()}
}

const (
	// maxLine is the longest line that is read, in bytes; longer ones hold pictures or
	// such, no answer of a model.
	maxLine = 4 << 20
	// batch is what one transaction is about.
	batchEntries, batchBytes = 256, 8 << 20
	// headBytes is how much of a file's beginning tells it from another.
	headBytes = 4096
	// skipping begins the state of a reader inside a line that is too long.
	skipping = "…"
)

// A follower reads one file on from where it was read before.
type follower struct {
	m      *Meter
	r      Records
	thread Thread
	source Source
	path   string

	f       *os.File
	at      File // how far it is recorded
	reader  Reader
	skip    bool
	entries []Entry
}

// read reads the file up to a size.
func (f *follower) read(ctx context.Context, size int64) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", f.path, err)
		}
	}()
	fd, err := unix.Open(f.path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f.f = os.NewFile(uintptr(fd), f.path)
	defer f.f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("not a regular file")
	}
	if err := f.find(ctx, int64(st.Dev), int64(st.Ino), min(st.Size, size)); err != nil {
		return err
	}
	return f.lines(ctx, min(st.Size, size))
}

// find finds out where reading continues: at the beginning, if the file is another than the one
// on record, or has become shorter.
func (f *follower) find(ctx context.Context, device, inode, size int64) error {
	at, err := f.r.File(ctx, device, inode)
	if err != nil {
		return err
	}
	if at.Offset > size || at.Thread != f.thread.ID || at.Head != "" && at.Head != f.head(lengthOf(at.Head)) {
		at = File{}
	}
	at.Device, at.Inode, at.Path, at.Agent, at.Thread = device, inode, f.path, f.thread.Agent, f.thread.ID
	f.at = at
	state, skip := strings.CutPrefix(at.State, skipping)
	f.reader, f.skip = f.source.Open(f.thread.ID, state), skip
	return nil
}

// head returns a digest of the first bytes of the file, with their number.
func (f *follower) head(n int64) string {
	data := make([]byte, min(n, headBytes))
	got, err := f.f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) || got < len(data) {
		return "unreadable"
	}
	sum := sha256.Sum256(data)
	return strconv.Itoa(len(data)) + ":" + hex.EncodeToString(sum[:16])
}

func lengthOf(head string) int64 {
	digits, _, _ := strings.Cut(head, ":")
	n, _ := strconv.ParseInt(digits, 10, 64) // else nothing matches
	return n
}

// lines reads whole lines, and records them in batches.
func (f *follower) lines(ctx context.Context, size int64) error {
	from, buf := f.at.Offset, make([]byte, 0, 64<<10)
	end := from // of what has been handed to the reader
	for from < size {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := f.f.ReadAt(buf[len(buf):min(cap(buf), len(buf)+int(size-from))], from)
		buf, from = buf[:len(buf)+n], from+int64(n)
		if n == 0 && err != nil {
			break // it has become shorter meanwhile
		}
		rest := buf
		for {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			f.line(rest[:i])
			rest, end = rest[i+1:], end+int64(i)+1
			if len(f.entries) >= batchEntries || end-f.at.Offset >= batchBytes {
				if err := f.take(ctx, end); err != nil {
					return err
				}
			}
		}
		if len(rest) > maxLine || f.skip { // the rest of the line is no more use
			f.skip, end, rest = true, end+int64(len(rest)), nil
		}
		buf = append(buf[:0], rest...)
	}
	if end == f.at.Offset {
		return nil
	}
	return f.take(ctx, end)
}

func (f *follower) line(data []byte) {
	if f.skip {
		f.skip = false
		return
	}
	turns, stated := f.reader.Line(data)
	if len(turns)+len(stated) > 0 {
		f.entries = append(f.entries, Entry{Turns: turns, Stated: stated})
	}
}

// take records what was read, and how far.
func (f *follower) take(ctx context.Context, end int64) error {
	f.at.Offset, f.at.State = end, f.reader.State()
	if f.skip {
		f.at.State = skipping + f.at.State
	}
	f.at.Head = f.head(min(end, headBytes))
	f.m.o.Step("read")
	err := f.r.Take(ctx, Batch{File: f.at, First: f.thread.First, Entries: f.entries}, f.m.terms.Prices, f.m.terms.Limits, time.Now())
	if err != nil {
		return err
	}
	f.m.o.Step("recorded")
	f.entries = nil
	return nil
}
