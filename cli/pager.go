package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/term"
)

// errClosed says that the reader has seen enough.
var errClosed = errors.New("closed")

// A pager stops before a full screen scrolls away: a popup has no scrollback.
// The nil pager never does.
type pager struct {
	a     *app
	lines int // of the screen
	used  int
}

func newPager(a *app) *pager {
	p := &pager{a: a, lines: 24}
	if _, h := screenSize(a.out); h > 2 {
		p.lines = h
	}
	return p
}

// room makes sure that so many lines fit, or begins a new screen. It reports
// false if the reader wants no more.
func (p *pager) room(lines int) bool {
	if p == nil {
		return true
	}
	if p.used > 0 && p.used+lines >= p.lines {
		if !p.wait("(Enter shows more, Esc or q closes)") {
			return false
		}
		p.used = 0
	}
	p.used += lines
	return true
}

// wait waits for a key, and reports whether it asks for more.
func (p *pager) wait(text string) bool {
	if p == nil {
		return true
	}
	fmt.Fprint(p.a.out, text)
	key := p.key()
	fmt.Fprintln(p.a.out)
	return key != "" && !slices.Contains([]string{"q", "Q", "\x1b", "\x03", "\x04"}, key)
}

// key is one key as a terminal sends it, "" at the end of the input. Where there
// is no terminal, a byte is one.
func (p *pager) key() string {
	if f, ok := p.a.in.(*os.File); ok {
		if before, err := term.MakeRaw(int(f.Fd())); err == nil {
			defer term.Restore(int(f.Fd()), before)
		}
	}
	buf := make([]byte, 32) // an arrow comes as several bytes at once
	n, err := p.a.in.Read(buf)
	if n == 0 || err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return string(buf[:n])
}
