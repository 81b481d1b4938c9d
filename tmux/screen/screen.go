// Package screen parses tmux's captures of a pane: its characters by the cells that
// they take, and the style of each. It is the only parser of terminal escape sequences
// in netsky.
//
// It promises that nothing a terminal would obey, and no character that could reverse a
// line, is left in the text of a [Span]; that any input is read in linear time; and
// that a line's spans are bounded however long the line is. It knows styles and links,
// the sequences that a capture contains; all others are dropped. A link's address is as
// the program wrote it: check it before following or showing it.
package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// What a line is cut to, so that no pane can make an endless screen.
const (
	maxColumns = 1000     // cells
	maxLine    = 64 << 10 // bytes of a line, with its sequences
	maxCluster = 64       // bytes of a character with all its marks
	maxLink    = 2048     // bytes of a link; a longer one is none
)

// A Span is text in one style whose characters take their cells in one way.
type Span struct {
	Text  string
	Style Style
	Cells Cells
}

// Cells is how the characters of a span take their cells.
type Cells uint8

const (
	ASCII Cells = iota // each byte is a character in one cell
	One                // one character, perhaps of several code points, in one cell
	Two                // one character in two cells
	Ones               // each code point is a character in one cell
	Twos               // each code point is a character in two cells
	None               // a sign that takes no cell: it stands for what must not be hidden
)

// Lines returns a whole screen, by its lines.
func Lines(text string) [][]Span {
	var lines [][]Span
	var p Pen
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, p.Line(nil, line))
	}
	return lines
}

// Text returns the text of a line's spans.
func Text(line []Span) string {
	if len(line) == 1 {
		return line[0].Text
	}
	var b strings.Builder
	for _, s := range line {
		b.WriteString(s.Text)
	}
	return b.String()
}

// A Pen is the style in which the next character is drawn. tmux carries it from one
// line to the next. Equal pens draw the same.
type Pen struct {
	style Style
	lines bool // letters are the line drawing set (SO)
}

// Line draws one captured line and appends its spans to a list, which may be reused.
// The pen is left as the next line needs it.
func (p *Pen) Line(spans []Span, line string) []Span {
	w := writer{pen: *p, spans: spans}
	w.write(line[:min(len(line), maxLine)])
	w.flush()
	*p = w.pen
	return w.spans
}

// A writer writes one line.
type writer struct {
	pen   Pen
	spans []Span
	text  strings.Builder // the current span so far
	of    Pen             // its style
	cells Cells           // its cells
	cell  int
}

func (w *writer) write(s string) {
	for len(s) > 0 && w.cell < maxColumns {
		switch c := s[0]; {
		case c == '\x1b':
			n := sequence(s)
			w.obey(s[:n])
			s = s[n:]
		case c >= ' ' && c < 0x7f:
			n := 1
			for n < len(s) && s[n] >= ' ' && s[n] < 0x7f {
				n++
			}
			if n < len(s) && s[n] >= utf8.RuneSelf && joinsCell(s[n:]) {
				n-- // the last is a cell together with what follows
			}
			if n = min(n, maxColumns-w.cell); n == 0 {
				s = s[w.character(s):]
				continue
			}
			w.ascii(s[:n])
			s = s[n:]
		case c < utf8.RuneSelf:
			w.control(c)
			s = s[1:]
		default:
			s = s[w.character(s):]
		}
	}
	// The style continues in the next line, also from after the last cell.
	for i := strings.IndexByte(s, '\x1b'); i >= 0; i = strings.IndexByte(s, '\x1b') {
		n := sequence(s[i:])
		w.obey(s[i : i+n])
		s = s[i+n:]
	}
}

// ascii writes printable ASCII.
func (w *writer) ascii(s string) {
	if !w.pen.lines {
		w.begin(ASCII)
		w.text.WriteString(s)
		w.cell += len(s)
		return
	}
	for i := range len(s) {
		if r := drawn(s[i]); r < utf8.RuneSelf {
			w.begin(ASCII)
			w.text.WriteRune(r)
		} else {
			w.begin(Ones)
			w.text.WriteRune(r)
		}
		w.cell++
	}
}

// control obeys the three controls that a capture may contain.
func (w *writer) control(c byte) {
	switch c {
	case '\t':
		n := min(8-w.cell%8, maxColumns-w.cell)
		w.begin(ASCII)
		w.text.WriteString(strings.Repeat(" ", n))
		w.cell += n
	case 0x0e: // SO
		w.pen.lines = true
	case 0x0f: // SI
		w.pen.lines = false
	}
}

// character writes the character that s begins with and returns its length. Cells are
// as tmux 3.3a makes them: by code points. One without a width belongs to the cell
// before it, as does what follows a joiner. A selector makes nothing wider, and a skin
// tone has its own cells.
func (w *writer) character(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	switch width := cellsOf(r); {
	case hostile(r):
		w.box(string(utf8.RuneError), min(width, 1))
		return n
	case width == 0:
		return n // there is no cell that it belongs to
	default:
		end := n
		for joined := false; end < len(s) && s[end] >= utf8.RuneSelf; {
			next, m := utf8.DecodeRuneInString(s[end:])
			if hostile(next) || cellsOf(next) > 0 && !joined {
				break
			}
			joined = next == joiner
			end += m
		}
		w.box(visible(s[:end]), width)
		return end
	}
}

const joiner = '\u200d'

// joinsCell reports whether the code point that s begins with belongs to the cell
// before it.
func joinsCell(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return cellsOf(r) == 0 && !hostile(r)
}

// cellsOf returns how many cells tmux gives a code point: as many as the C library
// says.
func cellsOf(r rune) int {
	switch {
	case r >= 0x1f1e6 && r <= 0x1f1ff, r == '\u00ad', unicode.Is(unicode.Co, r): // halves of flags, soft hyphen, private use
		return 1
	case r >= 0x80 && r < 0xa0, r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff: // the latter make syllables
		return 0
	}
	return displaywidth.Rune(r)
}

// hostile is what could reverse a line.
func hostile(r rune) bool {
	return r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// visible returns the character without invisible parts, and limited in length.
func visible(s string) string {
	if len(s) <= utf8.UTFMax && utf8.RuneCountInString(s) == 1 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if b.Len()+utf8.RuneLen(r) > maxCluster {
			break
		}
		if r == joiner || !unicode.Is(unicode.Cf, r) && !unicode.IsControl(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// box writes one character that is so many cells wide.
func (w *writer) box(text string, width int) {
	one, many := One, Ones
	switch width {
	case 0:
		one, many = None, None
	case 2:
		one, many = Two, Twos
	}
	if text == "" {
		text = strings.Repeat(" ", width)
	}
	switch {
	case len(text) == width: // ASCII, of which nothing else is visible
		w.begin(ASCII)
		w.text.WriteString(text)
	case width > 0 && utf8.RuneCountInString(text) == 1:
		w.begin(many)
		w.text.WriteString(text)
	default:
		w.flush()
		w.of, w.cells = w.pen, one
		w.text.WriteString(text)
		w.flush()
	}
	w.cell += width
}

// begin makes the current span one of the pen's style and of those cells.
func (w *writer) begin(c Cells) {
	if w.of != w.pen || w.cells != c {
		w.flush()
		w.of, w.cells = w.pen, c
	}
}

func (w *writer) flush() {
	if w.text.Len() == 0 {
		return
	}
	s := Span{Text: w.text.String(), Style: w.of.style, Cells: w.cells}
	if (s.Cells == Ones || s.Cells == Twos) && utf8.RuneCountInString(s.Text) == 1 {
		s.Cells -= Ones - One
	}
	w.spans = append(w.spans, s)
	w.text.Reset()
}

// drawn is the DEC line drawing set, which tmux puts between SO and SI.
func drawn(c byte) rune {
	const set = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"
	if c < '`' || c > '~' {
		return rune(c)
	}
	for _, r := range set {
		if c == '`' {
			return r
		}
		c--
	}
	return rune(c)
}
