package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/term"
)

// ErrClosed says that the reader has seen enough.
var ErrClosed = errors.New("closed")

// A Pager stops before a full screen scrolls away: a popup has no scrollback.
// The nil pager never does.
type Pager struct {
	in    io.Reader
	out   io.Writer
	lines int // of the screen
	used  int
}

// NewPager fits its pages to the terminal behind out.
func NewPager(in io.Reader, out io.Writer) *Pager {
	p := &Pager{in: in, out: out, lines: 24}
	if _, h := Size(out); h > 2 {
		p.lines = h
	}
	return p
}

// Room makes sure that so many lines fit, or begins a new screen. It reports
// false if the reader wants no more.
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

// key is one key as a terminal sends it, "" at the end of the input. Where there
// is no terminal, a byte is one.
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
