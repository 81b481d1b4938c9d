package dashboard

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// What a screen is cut to, so that no pane can make a page without an end.
const (
	maxRows    = maxHistory + 1000
	maxColumns = 1000     // cells
	maxLine    = 64 << 10 // bytes of a line, with its sequences
	maxCluster = 64       // bytes of a character with all its marks
)

// A renderer turns the captures of one pane into rows. A line that was near there
// in the capture before is not parsed again.
type renderer struct {
	last []*line
}

// A line is a row with what it was made of and what follows from it. It is not
// changed once it is made, so the same line of two captures is the same pointer.
type line struct {
	raw        string
	start, end pen // tmux carries the style on from one line to the next
	row        Row
	json       []byte // of row
}

func newRenderer() *renderer { return &renderer{} }

func (r *renderer) render(text string) []*line {
	text = strings.TrimSuffix(text, "\n")
	lines := make([]*line, 0, min(strings.Count(text, "\n")+1, maxRows))
	var p pen
	scrolled := 0
	for raw := range strings.SplitSeq(text, "\n") {
		if len(lines) == maxRows {
			break
		}
		var l *line
		if l, scrolled = r.find(raw, p, len(lines), scrolled); l == nil {
			l = newLine(strings.Clone(raw), p) // not the whole capture with it
		}
		lines = append(lines, l)
		p = l.end
	}
	r.last = lines
	return lines
}

// maxScroll is how many lines around its place a line is looked for.
const maxScroll = 64

// find is the line as it was in the capture before, or nil, and by how many lines
// it has scrolled, which is where the next is looked for first.
func (r *renderer) find(raw string, p pen, at, scrolled int) (*line, int) {
	was := func(i int) bool {
		return i >= 0 && i < len(r.last) && r.last[i].raw == raw && r.last[i].start == p
	}
	if was(at + scrolled) {
		return r.last[at+scrolled], scrolled
	}
	for d := range maxScroll {
		if was(at + d) {
			return r.last[at+d], d
		}
		if was(at - d) {
			return r.last[at-d], -d
		}
	}
	return nil, scrolled
}

func newLine(raw string, p pen) *line {
	w := rowWriter{pen: p}
	w.write(raw[:min(len(raw), maxLine)])
	row := w.done()
	return &line{raw: raw, start: p, end: w.pen, row: row, json: row.json()}
}

// A pen is the style that the next character will have.
type pen struct {
	fg, bg color
	attr   attr
	link   string
	lines  bool // letters are the line drawing set (SO)
}

// A rowWriter writes one row.
type rowWriter struct {
	pen  pen
	row  Row
	text strings.Builder // what the run at hand has so far
	of   pen             // its style
	kind kind            // its cells
	cell int
}

// A kind is how the cells of a run are: ASCII that follows on itself, or
// characters each of which the page puts in a box as wide as its cells, because a
// font may have it wider or narrower.
type kind string

const (
	flowing kind = ""
	narrow  kind = "c"  // one character, in one cell
	wide    kind = "w"  // one character, in two
	narrows kind = "cs" // several code points, each in one cell
	wides   kind = "ws" // each in two
	mark    kind = "z"  // in none: it stands for what must not be hidden
)

func (w *rowWriter) write(s string) {
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
	// The style goes on in the next line, also from behind the last cell.
	for i := strings.IndexByte(s, '\x1b'); i >= 0; i = strings.IndexByte(s, '\x1b') {
		n := sequence(s[i:])
		w.obey(s[i : i+n])
		s = s[i+n:]
	}
}

// ascii writes printable ASCII.
func (w *rowWriter) ascii(s string) {
	if !w.pen.lines {
		w.begin(flowing)
		w.text.WriteString(s)
		w.cell += len(s)
		return
	}
	for i := range len(s) {
		if r := drawn(s[i]); r < utf8.RuneSelf {
			w.begin(flowing)
			w.text.WriteRune(r)
		} else {
			w.begin(narrows)
			w.text.WriteRune(r)
		}
		w.cell++
	}
}

// control obeys the three controls that a capture may hold.
func (w *rowWriter) control(c byte) {
	switch c {
	case '\t':
		n := min(8-w.cell%8, maxColumns-w.cell)
		w.begin(flowing)
		w.text.WriteString(strings.Repeat(" ", n))
		w.cell += n
	case 0x0e: // SO
		w.pen.lines = true
	case 0x0f: // SI
		w.pen.lines = false
	}
}

// character writes the character that s begins with and tells its length. Cells
// are as tmux 3.3a makes them: by code points, of which one without a width
// belongs to the cell before it, as does what follows a joiner. A selector makes
// nothing wider, and a skin tone has cells of its own.
func (w *rowWriter) character(s string) int {
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

// cellsOf is how many cells tmux gives a code point: as many as the C library says.
func cellsOf(r rune) int {
	switch {
	case r >= 0x1f1e6 && r <= 0x1f1ff, r == '\u00ad', unicode.Is(unicode.Co, r): // halves of flags, soft hyphen, private use
		return 1
	case r >= 0x80 && r < 0xa0, r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff: // the latter make syllables
		return 0
	}
	return displaywidth.Rune(r)
}

// hostile is what could turn a line around.
func hostile(r rune) bool {
	return r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// visible is the character without what shows nothing, and with an end.
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
func (w *rowWriter) box(text string, width int) {
	one, many := narrow, narrows
	switch width {
	case 0:
		one, many = mark, mark
	case 2:
		one, many = wide, wides
	}
	if text == "" {
		text = strings.Repeat(" ", width)
	}
	switch {
	case len(text) == width: // ASCII, of which nothing else is visible
		w.begin(flowing)
		w.text.WriteString(text)
	case width > 0 && utf8.RuneCountInString(text) == 1:
		w.begin(many)
		w.text.WriteString(text)
	default:
		w.flush()
		w.of, w.kind = w.pen, one
		w.text.WriteString(text)
		w.flush()
	}
	w.cell += width
}

// begin makes the run at hand one of the pen's style and of that kind.
func (w *rowWriter) begin(k kind) {
	if w.of != w.pen || w.kind != k {
		w.flush()
		w.of, w.kind = w.pen, k
	}
}

func (w *rowWriter) flush() {
	if w.text.Len() == 0 {
		return
	}
	run := w.of.run(w.text.String())
	if k := w.kind; k != flowing {
		if k == narrows && utf8.RuneCountInString(run.Text) == 1 {
			k = narrow
		} else if k == wides && utf8.RuneCountInString(run.Text) == 1 {
			k = wide
		}
		if r, _ := utf8.DecodeRuneInString(run.Text); k == narrow {
			run.Class = join(run.Class, drawnClass(r))
		}
		run.Class = join(run.Class, string(k))
	}
	w.row = append(w.row, run)
	w.text.Reset()
}

// done is the row, without blanks at its end that show nothing.
func (w *rowWriter) done() Row {
	w.flush()
	if n := len(w.row) - 1; n >= 0 && w.row[n] == (Run{Text: w.row[n].Text}) {
		w.row[n].Text = strings.TrimRight(w.row[n].Text, " ")
		if w.row[n].Text == "" {
			w.row = w.row[:n]
		}
	}
	if w.row == nil {
		w.row = Row{}
	}
	return w.row
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
