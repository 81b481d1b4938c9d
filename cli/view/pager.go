package view

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/term"
)

// ErrClosed is returned when the reader wants no more.
var ErrClosed = errors.New("closed")

// A Pager waits for a key before a full screen scrolls away, as a popup has no
// scrollback. A nil Pager never waits.
type Pager struct {
	in    io.Reader
	out   io.Writer
	lines int // of the screen
	used  int
}

// NewPager returns a pager for the terminal behind out.
func NewPager(in io.Reader, out io.Writer) *Pager {
	p := &Pager{in: in, out: out, lines: 24}
	if _, h := Size(out); h > 2 {
		p.lines = h
	}
	return p
}

// Room makes sure that the lines fit, if need be on a new screen. It returns false if
// the reader wants no more.
func (p *Pager) Room(lines int) bool {
	if p == nil {
		return true
	}
	if p.used > 0 && p.used+lines >= p.lines {
		if !p.Wait("(Enter shows more, Esc or q closes)") {
			return false
		}
		p.used = 0
	}
	p.used += lines
	return true
}

// Wait waits for a key, and reports whether it asks for more.
func (p *Pager) Wait(text string) bool {
	if p == nil {
		return true
	}
	fmt.Fprint(p.out, text)
	key := p.key()
	fmt.Fprintln(p.out)
	return key != "" && !slices.Contains([]string{"q", "Q", "\x1b", "\x03", "\x04"}, key)
}

// key reads one key as a terminal sends it; "" is the end of the input.
func (p *Pager) key() string {
	if f, ok := p.in.(*os.File); ok {
		if before, err := term.MakeRaw(int(f.Fd())); err == nil {
			defer term.Restore(int(f.Fd()), before)
		}
	}
	buf := make([]byte, 32) // an arrow comes as several bytes at once
	n, err := p.in.Read(buf)
	if n == 0 || err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return string(buf[:n])
}
