package demo

import (
	"bytes"
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A keyboard is what a person types at the pane. C receives it in pieces, a line at a
// time as a terminal delivers it; add puts a piece into the buffer, from which lines
// and single keys are taken. It belongs to the goroutine of Run, except for the reader.
type keyboard struct {
	C        <-chan []byte // nil when nobody can type
	buf      []byte
	terminal int // descriptor; -1 if it has none
}

// maxLine is the longest line; a longer one is cut there. It also limits what is kept
// while the demo is busy.
const maxLine = 16 << 10

// readKeys starts to read. The goroutine ends with ctx or the reader's end, but never
// in the middle of a Read: that cannot be interrupted.
func readKeys(ctx context.Context, in io.Reader) *keyboard {
	k := &keyboard{terminal: -1}
	if in == nil {
		return k
	}
	if f, ok := in.(*os.File); ok && isTerminal(int(f.Fd())) {
		k.terminal = int(f.Fd())
	}
	c := make(chan []byte) // unbuffered: what is not read stays in the terminal
	k.C = c
	go func() {
		defer close(c)
		for {
			piece := make([]byte, 4096)
			n, err := in.Read(piece)
			if n > 0 {
				select {
				case c <- piece[:n]:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return k
}

// add keeps a piece for line and key. With open false nobody can type any more.
func (k *keyboard) add(piece []byte, open bool) {
	if !open {
		k.C = nil
		if len(k.buf) > 0 {
			k.buf = append(k.buf, '\n')
		}
		return
	}
	k.buf = append(k.buf, piece...)
}

// line takes the next whole line.
func (k *keyboard) line() (string, bool) {
	end := bytes.IndexAny(k.buf, "\r\n")
	skip := 1
	if end < 0 || end > maxLine {
		if len(k.buf) <= maxLine {
			return "", false
		}
		end, skip = maxLine, 0
	}
	line := string(bytes.ToValidUTF8(k.buf[:end], []byte("\ufffd")))
	k.buf = k.buf[end+skip:]
	return line, true
}

// key takes the next byte.
func (k *keyboard) key() (byte, bool) {
	if len(k.buf) == 0 {
		return 0, false
	}
	key := k.buf[0]
	k.buf = k.buf[1:]
	return key, true
}

// single makes the terminal deliver each key at once, without Enter; Ctrl-C still
// works. The function that it returns restores the terminal.
func (k *keyboard) single() (restore func()) {
	if k.terminal < 0 {
		return func() {}
	}
	saved, err := unix.IoctlGetTermios(k.terminal, getTermios)
	if err != nil {
		return func() {}
	}
	t := *saved
	t.Lflag &^= unix.ICANON | unix.ECHO
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	unix.IoctlSetTermios(k.terminal, setTermios, &t)
	return func() { unix.IoctlSetTermios(k.terminal, setTermios, saved) }
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, getTermios)
	return err == nil
}
