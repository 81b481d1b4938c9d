package agent

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isBreak reports whether a terminal, a browser or a phone may begin another line there.
func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// Flat returns a text as one line of at most limit bytes in which line breaks are visible;
// one that is cut ends with an ellipsis.
func Flat(s string, limit int) (line string, cut bool) {
	s = strings.Trim(s, "\r\n\t ")
	if len(s) > 4*limit { // the rest would not be seen
		s, cut = s[:4*limit], true
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case isBreak(r):
			b.WriteString(" ⏎ ")
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	s = b.String()
	if len(s) > limit {
		cut = true
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	if cut {
		s += "…"
	}
	return s, cut
}
