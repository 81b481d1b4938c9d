package view

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"netsky/bus/envelope"
)

// A Board is a list of lines. On a terminal a line that is set again changes in place, as long as
// all of them fit on the screen; elsewhere, and from then on, only final lines are written.
type Board struct {
	out  io.Writer
	size func() (width, height int)

	mu    sync.Mutex // guards what follows
	rows  map[string]int
	lines []string
	final []bool
	drawn int // rows of the screen
}

// NewBoard returns an empty list. size returns the size of the terminal that out is; nil is none.
func NewBoard(out io.Writer, size func() (width, height int)) *Board {
	return &Board{out: out, size: size, rows: make(map[string]int)}
}

// Set writes the text to the name's row. A final text may have several lines.
func (b *Board) Set(name, text string, final bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text = envelope.Plain(text)
	if b.size == nil {
		if final {
			fmt.Fprintln(b.out, text)
		}
		return
	}
	i, ok := b.rows[name]
	if !ok {
		i = len(b.lines)
		b.rows[name] = i
		b.lines, b.final = append(b.lines, ""), append(b.final, false)
	}
	b.lines[i], b.final[i] = text, final
	b.erase()
	b.draw()
}

// Above has what is written meanwhile, to out or beside it, appear above the list.
func (b *Board) Above(write func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size != nil {
		b.erase()
		defer b.draw()
	}
	write()
}

func (b *Board) erase() {
	if b.drawn > 0 {
		fmt.Fprintf(b.out, "\x1b[%dA\r\x1b[J", b.drawn)
	}
	b.drawn = 0
}

// draw writes all lines, and those that are final for good if the screen has no room for all.
func (b *Board) draw() {
	width, height := b.size()
	rows := 0
	for _, text := range b.lines {
		for l := range strings.SplitSeq(text, "\n") {
			rows += max(1, (Columns(l)+width-1)/width)
		}
	}
	fits := rows < height
	for i, text := range b.lines {
		if fits || b.final[i] {
			fmt.Fprintln(b.out, text)
		}
	}
	if b.drawn = rows; !fits {
		b.size = nil
	}
}
