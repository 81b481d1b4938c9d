package live

import (
	"encoding/json"
	"html/template"
	"strings"
	"unicode/utf8"
)

// A Row is one line of a terminal.
type Row []Run

// A Run is text in one style. Class lists its CSS classes, the last of which may say
// how its cells are drawn: "c" is one character in one cell, "w" one in two; in "cs"
// and "ws" each code point is a character. FG and BG are its exact colours, "#ff8800",
// if the palette's nearest, which Class names, differs.
type Run struct {
	Text  string `json:"text"`
	Class string `json:"class,omitempty"`
	FG    string `json:"fg,omitempty"`
	BG    string `json:"bg,omitempty"`
	Link  string `json:"link,omitempty"` // http or https
}

// JSON encodes the row as [json.Marshal] would, at a fraction of its cost: most of what
// changes is rows.
func (r Row) JSON() []byte {
	n := 2
	for _, run := range r {
		n += len(`{"text":"","class":""},`) + len(run.Text) + len(run.Class)
	}
	b := append(make([]byte, 0, n), '[')
	for i, run := range r {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"text":`...), run.Text)
		for _, f := range [...]struct{ name, value string }{
			{`,"class":`, run.Class}, {`,"fg":`, run.FG}, {`,"bg":`, run.BG}, {`,"link":`, run.Link},
		} {
			if f.value != "" {
				b = appendString(append(b, f.name...), f.value)
			}
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendString appends a string as JSON.
func appendString(b []byte, s string) []byte {
	if !isPlain(s) {
		data, _ := json.Marshal(s) // never fails for a string
		return append(b, data...)
	}
	return append(append(append(b, '"'), s...), '"')
}

// isPlain reports whether the string needs no escaping in JSON.
func isPlain(s string) bool {
	ascii := true
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return ascii || utf8.ValidString(s) && !strings.Contains(s, "\u2028") && !strings.Contains(s, "\u2029")
}

// HTML returns the row for a page that works without a script. The exact colours are in
// data-fg and data-bg: the policy forbids inline styles, so a script sets them, and
// without one the nearest palette colour is shown.
func (r Row) HTML() template.HTML {
	var b strings.Builder
	for _, run := range r {
		run.html(&b)
	}
	return template.HTML(b.String())
}

func (r Run) html(b *strings.Builder) {
	if r == (Run{Text: r.Text}) {
		b.WriteString(template.HTMLEscapeString(r.Text))
		return
	}
	tag := "span"
	if r.Link != "" {
		tag = "a"
	}
	b.WriteString("<" + tag)
	for _, a := range [...]struct{ name, value string }{
		{"class", r.Class}, {"data-fg", r.FG}, {"data-bg", r.BG}, {"href", r.Link},
	} {
		if a.value != "" {
			b.WriteString(" " + a.name + `="` + template.HTMLEscapeString(a.value) + `"`)
		}
	}
	if r.Link != "" {
		b.WriteString(` target="_blank" rel="noopener noreferrer nofollow"`)
	}
	b.WriteString(">")
	if strings.HasSuffix(r.Class, "cs") || strings.HasSuffix(r.Class, "ws") {
		for _, c := range r.Text { // each in its own box; none of them is ASCII
			b.WriteString("<span")
			if class := drawnClass(c); class != "" {
				b.WriteString(` class="` + class + `"`)
			}
			b.WriteString(">" + string(c) + "</span>")
		}
	} else {
		b.WriteString(template.HTMLEscapeString(r.Text))
	}
	b.WriteString("</" + tag + ">")
}
