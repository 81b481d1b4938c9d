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
	cell int
}

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
			n = min(n, maxColumns-w.cell)
			w.ascii(s[:n])
			s = s[n:]
		case c < utf8.RuneSelf:
			w.control(c)
			s = s[1:]
		default:
			n := 1
			for n < len(s) && s[n] >= utf8.RuneSelf {
				n++
			}
			w.wide(s[:n])
			s = s[n:]
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
	w.begin()
	if w.pen.lines {
		for i := range len(s) {
			w.text.WriteRune(drawn(s[i]))
		}
	} else {
		w.text.WriteString(s)
	}
	w.cell += len(s)
}

// control obeys the three controls that a capture may hold.
func (w *rowWriter) control(c byte) {
	switch c {
	case '\t':
		n := min(8-w.cell%8, maxColumns-w.cell)
		w.begin()
		w.text.WriteString(strings.Repeat(" ", n))
		w.cell += n
	case 0x0e: // SO
		w.pen.lines = true
	case 0x0f: // SI
		w.pen.lines = false
	}
}

// wide writes what is not ASCII, by what a person sees as one character. One
// that takes two cells is a run of its own, which the page makes as wide.
func (w *rowWriter) wide(s string) {
	g := displaywidth.StringGraphemes(s)
	for g.Next() && w.cell < maxColumns {
		text, width := visible(g.Value()), g.Width()
		if text == "" {
			continue
		}
		w.begin()
		if width < 2 {
			w.text.WriteString(text)
			w.cell += width
			continue
		}
		w.flush()
		w.of = w.pen
		w.text.WriteString(text)
		w.flush()
		w.row[len(w.row)-1].Class = join(w.row[len(w.row)-1].Class, classWide)
		w.cell += width
	}
}

// visible is the character without what could turn a line around or hide in it.
func visible(s string) string {
	if len(s) > maxCluster {
		s = s[:maxCluster]
	}
	var b strings.Builder
	shown := false
	for i, r := range s {
		switch {
		case r == utf8.RuneError, unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			if r == utf8.RuneError && i > 0 && len(s) == maxCluster {
				continue // cut in the middle
			}
			r = utf8.RuneError
		case unicode.IsControl(r):
			continue
		}
		// A joiner, a selector or a mark shows in what it belongs to.
		shown = shown || unicode.IsGraphic(r)
		b.WriteRune(r)
	}
	if !shown {
		return ""
	}
	return b.String()
}

// begin makes the run at hand one of the pen's style.
func (w *rowWriter) begin() {
	if w.of != w.pen {
		w.flush()
		w.of = w.pen
	}
}

func (w *rowWriter) flush() {
	if w.text.Len() > 0 {
		w.row = append(w.row, w.of.run(w.text.String()))
		w.text.Reset()
	}
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
