package screen

import (
	"strconv"
	"strings"
)

// A Style is how characters look. The zero Style is the pane's own.
type Style struct {
	FG, BG Color
	Attr   Attr
	Link   string // where a link leads, as the program wrote it
}

// A Color is the pane's own (0), one of the palette's 256, or 24 bits of its own.
type Color uint32

const (
	indexed Color = 1 << 24
	exact   Color = 2 << 24
	kinds         = indexed | exact
)

// Indexed returns the colour's number in the palette, if it is one of those.
func (c Color) Indexed() (n int, ok bool) { return int(c & 0xff), c&kinds == indexed }

// RGB returns the colour's 24 bits, if it has any of its own.
func (c Color) RGB() (rgb uint32, ok bool) { return uint32(c & 0xffffff), c&kinds == exact }

// Attr is a set of attributes.
type Attr uint16

const (
	Bold Attr = 1 << iota
	Faint
	Italic
	Underline
	DoubleUnderline
	Reverse
	Hidden
	Strike
	Overline
)

// sequence returns the length of the escape sequence that s begins with. A broken one
// ends where it breaks; a string without its end extends to the end of s.
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

// obey changes the pen by a sequence; anything but SGR and links is dropped.
func (w *writer) obey(seq string) {
	if sgr, ok := strings.CutPrefix(seq, "\x1b["); ok {
		if sgr, ok := strings.CutSuffix(sgr, "m"); ok {
			w.pen.style.sgr(sgr)
		}
		return
	}
	if osc, ok := strings.CutPrefix(seq, "\x1b]8;"); ok {
		osc = strings.TrimSuffix(strings.TrimSuffix(osc, "\x1b\\"), "\a")
		_, target, _ := strings.Cut(osc, ";")
		if len(target) > maxLink {
			target = ""
		}
		w.pen.style.Link = strings.Clone(target) // not the whole capture with it
	}
}

// sgr parses "1;38;5;196" and the like.
func (st *Style) sgr(s string) {
	if strings.Trim(s, "0123456789;:") != "" {
		return // a sequence with another meaning
	}
	for f := strings.Split(s, ";"); len(f) > 0; {
		one := f[0]
		f = f[1:]
		if strings.Contains(one, ":") {
			st.colons(strings.Split(one, ":"))
			continue
		}
		switch n := number(one); n {
		case 38, 48, 58:
			c, took := extended(f)
			st.paint(n, c)
			f = f[took:]
		default:
			st.simple(n)
		}
	}
}

// number parses a parameter; an empty one is 0, an invalid one -1.
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

// extended parses the parameters after 38 or 48, and returns how many there were. A
// broken one extends to the end.
func extended(f []string) (c Color, took int) {
	switch {
	case len(f) >= 2 && f[0] == "5":
		return fromPalette(f[1]), 2
	case len(f) >= 4 && f[0] == "2":
		return mixed(f[1:4]), 4
	}
	return 0, len(f)
}

func fromPalette(s string) Color {
	if n := number(s); n >= 0 && n <= 255 {
		return indexed | Color(n)
	}
	return 0
}

func mixed(f []string) Color {
	var v [3]int
	for i := range v {
		if v[i] = number(f[i]); v[i] < 0 || v[i] > 255 {
			return 0
		}
	}
	return exact | Color(v[0])<<16 | Color(v[1])<<8 | Color(v[2])
}

// colons parses one parameter with its own parts: 4:3, 38:5:196, 38:2::1:2:3.
func (st *Style) colons(f []string) {
	switch n := number(f[0]); {
	case n == 4:
		st.Attr &^= Underline | DoubleUnderline
		switch number(f[1]) {
		case 0:
		case 2:
			st.Attr |= DoubleUnderline
		default:
			st.Attr |= Underline
		}
	case n == 38 || n == 48:
		switch {
		case f[1] == "5" && len(f) == 3:
			st.paint(n, fromPalette(f[2]))
		case f[1] == "2" && len(f) >= 6:
			st.paint(n, mixed(f[3:6]))
		case f[1] == "2" && len(f) == 5:
			st.paint(n, mixed(f[2:5]))
		}
	}
}

func (st *Style) paint(n int, c Color) {
	switch n {
	case 38:
		st.FG = c
	case 48:
		st.BG = c
	}
}

// simple obeys a parameter that stands for itself.
func (st *Style) simple(n int) {
	switch {
	case n == 0:
		*st = Style{Link: st.Link}
	case n == 1:
		st.Attr |= Bold
	case n == 2:
		st.Attr |= Faint
	case n == 3:
		st.Attr |= Italic
	case n == 4:
		st.Attr = st.Attr&^DoubleUnderline | Underline
	case n == 7:
		st.Attr |= Reverse
	case n == 8:
		st.Attr |= Hidden
	case n == 9:
		st.Attr |= Strike
	case n == 21:
		st.Attr = st.Attr&^Underline | DoubleUnderline
	case n == 22:
		st.Attr &^= Bold | Faint
	case n == 23:
		st.Attr &^= Italic
	case n == 24:
		st.Attr &^= Underline | DoubleUnderline
	case n == 27:
		st.Attr &^= Reverse
	case n == 28:
		st.Attr &^= Hidden
	case n == 29:
		st.Attr &^= Strike
	case n >= 30 && n <= 37:
		st.FG = indexed | Color(n-30)
	case n == 39:
		st.FG = 0
	case n >= 40 && n <= 47:
		st.BG = indexed | Color(n-40)
	case n == 49:
		st.BG = 0
	case n == 53:
		st.Attr |= Overline
	case n == 55:
		st.Attr &^= Overline
	case n >= 90 && n <= 97:
		st.FG = indexed | Color(n-90+8)
	case n >= 100 && n <= 107:
		st.BG = indexed | Color(n-100+8)
	}
}
