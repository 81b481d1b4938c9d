package console

import (
	"fmt"
	"io"
	"sync"

	"netsky/bus/envelope"
)

// A Board is a list of lines. On a terminal a line that is set again changes in
// place; elsewhere only final lines are written.
type Board struct {
	out  io.Writer
	live bool

	mu    sync.Mutex // guards what follows
	rows  map[string]int
	lines []string
	drawn int
}

// NewBoard returns an empty list; live means that out is a terminal.
func NewBoard(out io.Writer, live bool) *Board {
	return &Board{out: out, live: live, rows: make(map[string]int)}
}

// Set writes the text to the name's row. A final text may have several lines.
func (b *Board) Set(name, text string, final bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text = envelope.Plain(text)
	if !b.live {
		if final {
			fmt.Fprintln(b.out, text)
		}
		return
	}
	i, ok := b.rows[name]
	if !ok {
		i = len(b.lines)
		b.rows[name] = i
		b.lines = append(b.lines, "")
	}
	b.lines[i] = text
	if b.drawn > 0 {
		fmt.Fprintf(b.out, "\x1b[%dA\r\x1b[J", b.drawn)
	}
	b.drawn = 0
	for _, l := range b.lines {
		n := 1
		for _, c := range l {
			if c == '\n' {
				n++
			}
		}
		fmt.Fprintln(b.out, clip(l, b.out, n))
		b.drawn += n
	}
}

// clip cuts a line to the terminal's width, so that it takes one row.
func clip(s string, out io.Writer, rows int) string {
	w, ok := Width(out)
	if !ok || rows > 1 {
		return s
	}
	if r := []rune(s); len(r) >= w {
		return string(r[:w-1])
	}
	return s
}
