package console

import "unicode"

// wide are the characters that take two columns on a terminal: those of Chinese, Japanese and Korean, and
// pictures.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff01, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1}, {Lo: 0x1f900, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

// Columns returns how many columns a text takes on a terminal.
func Columns(s string) (n int) {
	for _, r := range s {
		n += columns(r)
	}
	return n
}

func columns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.Is(wide, r):
		return 2
	case unicode.In(r, unicode.Mn, unicode.Me): // on top of the one before
		return 0
	}
	return 1
}

// Cut returns the text in at most width columns; 0 means no limit.
func Cut(s string, width int) string {
	if width <= 0 || Columns(s) <= width {
		return s
	}
	room := width - 1 // beside the ellipsis
	for i, r := range s {
		if room -= columns(r); room < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
