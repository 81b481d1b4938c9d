package dashboard

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// A color is none, one of the palette's 256, or 24 bits of its own.
type color uint32

const (
	palette color = 1 << 24
	exact   color = 2 << 24
	kinds         = palette | exact
)

type attr uint16

const (
	bold attr = 1 << iota
	dim
	italic
	underline
	doubled // underline
	reverse
	hidden
	strike
	overline
)

// The classes of a run. A colour's is f or g (ground) and its number in the
// palette; fx and gx are the pane's own two, changed for each other.
var attrClasses = []struct {
	attr  attr
	class string
}{
	{bold, "b"}, {dim, "d"}, {italic, "i"}, {underline, "u"}, {doubled, "uu"},
	{hidden, "h"}, {strike, "s"}, {overline, "o"},
}

// run is text in the pen's style.
func (p pen) run(text string) Run {
	r := Run{Text: text, Link: p.link}
	if p == (pen{link: p.link, lines: p.lines}) {
		return r
	}
	fg, bg := p.fg, p.bg
	var room [64]byte
	class := room[:0]
	for _, a := range attrClasses {
		if p.attr&a.attr != 0 {
			class = append(append(class, ' '), a.class...)
		}
	}
	if p.attr&reverse != 0 {
		fg, bg = bg, fg
		if fg == 0 {
			class = append(class, " fx"...)
		}
		if bg == 0 {
			class = append(class, " gx"...)
		}
	}
	class = bg.class(fg.class(class, 'f'), 'g')
	if len(class) > 0 {
		r.Class = string(class[1:])
	}
	r.FG, r.BG = fg.hex(), bg.hex()
	return r
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

// class adds that of the palette's colour that is nearest.
func (c color) class(b []byte, prefix byte) []byte {
	n := 0
	switch c & kinds {
	case palette:
		n = int(c & 0xff)
	case exact:
		n = nearest(c)
	default:
		return b
	}
	return strconv.AppendInt(append(b, ' ', prefix), int64(n), 10)
}

// hex is the colour where the class is only near it.
func (c color) hex() string {
	if c&kinds != exact || paletteColor(nearest(c)) == c {
		return ""
	}
	return fmt.Sprintf("#%06x", uint32(c&0xffffff))
}

func rgb(r, g, b int) color { return exact | color(r)<<16 | color(g)<<8 | color(b) }

func (c color) split() (r, g, b int) { return int(c >> 16 & 0xff), int(c >> 8 & 0xff), int(c & 0xff) }

// steps are the levels of the palette's 6×6×6 cube.
var steps = [...]int{0, 95, 135, 175, 215, 255}

// paletteColor is one of the fixed colours, 16 to 255. The first 16 are the
// page's own.
func paletteColor(n int) color {
	if n >= 232 {
		v := 8 + 10*(n-232)
		return rgb(v, v, v)
	}
	n -= 16
	return rgb(steps[n/36], steps[n/6%6], steps[n%6])
}

// nearest is the number in the palette of a colour in the cube or among the
// greys.
func nearest(c color) int {
	r, g, b := c.split()
	cube := 16 + 36*step(r) + 6*step(g) + step(b)
	grey := 232 + min(max(((r+g+b)/3-3)/10, 0), 23)
	if far(c, paletteColor(grey)) < far(c, paletteColor(cube)) {
		return grey
	}
	return cube
}

func step(v int) int {
	switch {
	case v < 48:
		return 0
	case v < 115:
		return 1
	}
	return (v - 35) / 40
}

func far(a, b color) int {
	r, g, bl := a.split()
	x, y, z := b.split()
	return (r-x)*(r-x) + (g-y)*(g-y) + (bl-z)*(bl-z)
}

// sequence is the length of the escape sequence that s begins with. One that
// is broken ends where it breaks; a string without its end takes all.
func sequence(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		i := 2
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
			i++
		}
		return i
	case ']', 'P', 'X', '^', '_':
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] == '\a' && s[1] == ']':
				return i + 1
			case s[i] == '\x1b' && i+1 < len(s) && s[i+1] == '\\':
				return i + 2
			case s[i] == '\x1b', s[i] == 0x18, s[i] == 0x1a: // given up
				return i
			}
		}
		return len(s)
	}
	i := 1
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		i++
	}
	return i
}

// obey changes the pen by a sequence; what is neither SGR nor a link is dropped.
func (w *rowWriter) obey(seq string) {
	if sgr, ok := strings.CutPrefix(seq, "\x1b["); ok {
		if sgr, ok := strings.CutSuffix(sgr, "m"); ok {
			w.pen.sgr(sgr)
		}
		return
	}
	if osc, ok := strings.CutPrefix(seq, "\x1b]8;"); ok {
		osc = strings.TrimSuffix(strings.TrimSuffix(osc, "\x1b\\"), "\a")
		_, target, _ := strings.Cut(osc, ";")
		w.pen.link = safeLink(target)
	}
}

// safeLink is an address that a page may lead to, or "".
func safeLink(s string) string {
	if s == "" || len(s) > 2048 {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	return u.String()
}

// sgr reads "1;38;5;196" and the like.
func (p *pen) sgr(s string) {
	if strings.Trim(s, "0123456789;:") != "" {
		return // a sequence of another meaning
	}
	for f := strings.Split(s, ";"); len(f) > 0; {
		one := f[0]
		f = f[1:]
		if strings.Contains(one, ":") {
			p.colons(strings.Split(one, ":"))
			continue
		}
		switch n := number(one); n {
		case 38, 48, 58:
			c, took := extended(f)
			p.paint(n, c)
			f = f[took:]
		default:
			p.simple(n)
		}
	}
}

// number reads a parameter; an empty one is 0, a strange one -1.
func number(s string) int {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return -1
	}
	return int(n)
}

// extended reads what follows 38 or 48, and how many parameters that was. What
// is broken there takes all.
func extended(f []string) (c color, took int) {
	switch {
	case len(f) >= 2 && f[0] == "5":
		return indexed(f[1]), 2
	case len(f) >= 4 && f[0] == "2":
		return mixed(f[1:4]), 4
	}
	return 0, len(f)
}

func indexed(s string) color {
	if n := number(s); n >= 0 && n <= 255 {
		return palette | color(n)
	}
	return 0
}

func mixed(f []string) color {
	var v [3]int
	for i := range v {
		if v[i] = number(f[i]); v[i] < 0 || v[i] > 255 {
			return 0
		}
	}
	return rgb(v[0], v[1], v[2])
}

// colons reads one parameter with its own parts: 4:3, 38:5:196, 38:2::1:2:3.
func (p *pen) colons(f []string) {
	switch n := number(f[0]); {
	case n == 4:
		p.attr &^= underline | doubled
		switch number(f[1]) {
		case 0:
		case 2:
			p.attr |= doubled
		default:
			p.attr |= underline
		}
	case n == 38 || n == 48:
		switch {
		case f[1] == "5" && len(f) == 3:
			p.paint(n, indexed(f[2]))
		case f[1] == "2" && len(f) >= 6:
			p.paint(n, mixed(f[3:6]))
		case f[1] == "2" && len(f) == 5:
			p.paint(n, mixed(f[2:5]))
		}
	}
}

func (p *pen) paint(n int, c color) {
	switch n {
	case 38:
		p.fg = c
	case 48:
		p.bg = c
	}
}

// simple obeys a parameter that stands for itself.
func (p *pen) simple(n int) {
	switch {
	case n == 0:
		*p = pen{link: p.link, lines: p.lines}
	case n == 1:
		p.attr |= bold
	case n == 2:
		p.attr |= dim
	case n == 3:
		p.attr |= italic
	case n == 4:
		p.attr = p.attr&^doubled | underline
	case n == 7:
		p.attr |= reverse
	case n == 8:
		p.attr |= hidden
	case n == 9:
		p.attr |= strike
	case n == 21:
		p.attr = p.attr&^underline | doubled
	case n == 22:
		p.attr &^= bold | dim
	case n == 23:
		p.attr &^= italic
	case n == 24:
		p.attr &^= underline | doubled
	case n == 27:
		p.attr &^= reverse
	case n == 28:
		p.attr &^= hidden
	case n == 29:
		p.attr &^= strike
	case n >= 30 && n <= 37:
		p.fg = palette | color(n-30)
	case n == 39:
		p.fg = 0
	case n >= 40 && n <= 47:
		p.bg = palette | color(n-40)
	case n == 49:
		p.bg = 0
	case n == 53:
		p.attr |= overline
	case n == 55:
		p.attr &^= overline
	case n >= 90 && n <= 97:
		p.fg = palette | color(n-90+8)
	case n >= 100 && n <= 107:
		p.bg = palette | color(n-100+8)
	}
}
