package envelope

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SafeText makes any text fit for an envelope: valid UTF-8 without NUL, and
// with "&lt;" for each "<" that begins a channel's tag.
func SafeText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
	var b strings.Builder
	for {
		at, _, found := findWrapper(s)
		if !found {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:at])
		b.WriteString("&lt;")
		s = s[at+1:]
	}
}

// findWrapper looks for the beginning of a channel tag, <channel or </channel,
// in any case and with white space after the signs: what a model could take
// for the element that Render makes of an envelope. It ends at end.
func findWrapper(s string) (at, end int, found bool) {
	const word = "channel"
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '<')
		if i < 0 {
			return 0, 0, false
		}
		at = from + i
		from = at + 1
		rest := strings.TrimLeftFunc(s[from:], unicode.IsSpace)
		rest = strings.TrimLeftFunc(strings.TrimPrefix(rest, "/"), unicode.IsSpace)
		if len(rest) >= len(word) && strings.EqualFold(rest[:len(word)], word) {
			return at, len(s) - len(rest) + len(word), true
		}
	}
}

// Cut returns the beginning of a text: at most limit bytes, and whole characters.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Shorten returns the beginning of a text, about limit bytes, and a line with the number
// of bytes omitted.
func Shorten(s string, limit int) string {
	head := Cut(s, limit)
	if len(head) == len(s) {
		return s
	}
	return fmt.Sprintf("%s\n[%d bytes more]", head, len(s)-len(head))
}

// Line returns a text as one line of at most limit bytes, with an ellipsis if it is cut.
func Line(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if head := Cut(s, limit); len(head) < len(s) {
		return head + "…"
	}
	return s
}

// Clip quotes foreign text for an error, at most 40 bytes of it.
func Clip(s string) string {
	const limit = 40
	if head := Cut(s, limit); len(head) < len(s) {
		s = head + "…"
	}
	return fmt.Sprintf("%+q", s)
}
