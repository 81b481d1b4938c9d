// This file turns captures of a pane into the rows that a browser receives: as JSON,
// as HTML, and with the style sheet that both need.
//
// It promises that only text, the classes of its own style sheet, colours and http
// addresses get from a pane into a page, and that a line which two captures have in
// common is rendered once. It has no state but a [Renderer]'s.

package live

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"netsky/tmux/screen"
)

// MaxRows is the most rows of a capture that are rendered, so that no pane can make an
// endless page.
const MaxRows = 6000

// A Renderer turns the captures of one pane into rows. A line that was near the same
// place in the capture before is not parsed again.
type Renderer struct {
	last  []*Line
	spans []screen.Span // room for those of one line
}

// A Line is a row with its source and what was derived from it. It is immutable once
// made, so the same line of two captures is the same pointer.
type Line struct {
	Row  Row
	JSON []byte // of Row

	raw        string
	start, end screen.Pen
}

// Render returns the lines of a capture.
func (r *Renderer) Render(text string) []*Line {
	text = strings.TrimSuffix(text, "\n")
	lines := make([]*Line, 0, min(strings.Count(text, "\n")+1, MaxRows))
	var p screen.Pen
	scrolled := 0
	for raw := range strings.SplitSeq(text, "\n") {
		if len(lines) == MaxRows {
			break
		}
		var l *Line
		if l, scrolled = r.find(raw, p, len(lines), scrolled); l == nil {
			l = r.line(strings.Clone(raw), p) // do not retain the whole capture
		}
		lines = append(lines, l)
		p = l.end
	}
	r.last = lines
	return lines
}

// maxScroll is how many lines around its place a line is searched.
const maxScroll = 64

// find returns the line from the capture before, or nil, and by how many lines it has
// scrolled, which is where the next one is searched first.
func (r *Renderer) find(raw string, p screen.Pen, at, scrolled int) (*Line, int) {
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

func (r *Renderer) line(raw string, p screen.Pen) *Line {
	l := &Line{raw: raw, start: p}
	r.spans = p.Line(r.spans[:0], raw)
	l.end, l.Row = p, makeRow(r.spans)
	l.JSON = l.Row.JSON()
	return l
}

// makeRow makes a row from a line, without trailing blanks that show nothing.
func makeRow(spans []screen.Span) Row {
	row := make(Row, len(spans))
	for i, s := range spans {
		row[i] = run(s)
	}
	if n := len(row) - 1; n >= 0 && row[n] == (Run{Text: row[n].Text}) {
		row[n].Text = strings.TrimRight(row[n].Text, " ")
		if row[n].Text == "" {
			row = row[:n]
		}
	}
	return row
}

// The classes of a run. A colour's is f (foreground) or g (background) and its number
// in the palette; fx and gx are the pane's two default colours, swapped.
var attrClasses = []struct {
	attr  screen.Attr
	class string
}{
	{screen.Bold, "b"}, {screen.Faint, "d"}, {screen.Italic, "i"}, {screen.Underline, "u"}, {screen.DoubleUnderline, "uu"},
	{screen.Hidden, "h"}, {screen.Strike, "s"}, {screen.Overline, "o"},
}

// cellClasses are the classes of cells: ASCII needs none; other characters get boxes as
// wide as their cells, because a font may make them wider or narrower.
var cellClasses = map[screen.Cells]string{
	screen.One: " c", screen.Two: " w", screen.Ones: " cs", screen.Twos: " ws", screen.None: " z",
}

func run(s screen.Span) Run {
	r := Run{Text: s.Text}
	var room [64]byte
	class := room[:0]
	if s.Style != (screen.Style{}) {
		class = r.style(class, s.Style)
	}
	if s.Cells == screen.One {
		if c, _ := utf8.DecodeRuneInString(s.Text); drawnClass(c) != "" {
			class = append(append(class, ' '), drawnClass(c)...)
		}
	}
	if s.Cells != screen.ASCII {
		class = append(class, cellClasses[s.Cells]...)
	}
	if len(class) > 0 {
		r.Class = string(class[1:])
	}
	return r
}

// style sets the run's colours and its link, and adds the classes of its style.
func (r *Run) style(class []byte, s screen.Style) []byte {
	for _, a := range attrClasses {
		if s.Attr&a.attr != 0 {
			class = append(append(class, ' '), a.class...)
		}
	}
	fg, bg := s.FG, s.BG
	if s.Attr&screen.Reverse != 0 {
		fg, bg = bg, fg
		if fg == 0 {
			class = append(class, " fx"...)
		}
		if bg == 0 {
			class = append(class, " gx"...)
		}
	}
	class = colorClass(colorClass(class, 'f', fg), 'g', bg)
	r.FG, r.BG, r.Link = exact(fg), exact(bg), safeLink(s.Link)
	return class
}

// safeLink returns an address that a page may link to, or "".
func safeLink(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	return u.String()
}
