package mcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"netsky/bus"
)

// maxResult is how many bytes of text a tool's result has at most: Claude Code
// cuts off what is much larger.
const maxResult = 20 << 10

// shown is text for a tool's result: nothing in it is taken for a control, or
// for a message, and there is not too much of it.
func shown(s string) string {
	return clip(safeText(bus.Plain(s)), maxResult)
}

// clip shortens a text to about max bytes and says by how much.
func clip(s string, max int) string {
	head := cut(s, max)
	if len(head) == len(s) {
		return s
	}
	return fmt.Sprintf("%s\n[%d bytes more]", head, len(s)-len(head))
}

// line is a text in one line of about max bytes.
func line(s string, max int) string {
	s = strings.Join(strings.Fields(s), " ")
	if head := cut(s, max); len(head) < len(s) {
		return head + "…"
	}
	return s
}

// cut is the beginning of a text, at most max bytes and whole characters.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// safeText is the text without the "<" of a channel's wrapper, which no envelope
// may hold and which in a tool's result might be taken for a message.
func safeText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "<")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if beginsWrapper(after) {
			b.WriteString("&lt;")
		} else {
			b.WriteByte('<')
		}
		s = after
	}
}

// beginsWrapper reports whether what follows a "<" makes it a channel's tag, in
// any case and with white space between.
func beginsWrapper(s string) bool {
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	s = strings.TrimLeftFunc(strings.TrimPrefix(s, "/"), unicode.IsSpace)
	const word = "channel"
	return len(s) >= len(word) && strings.EqualFold(s[:len(word)], word)
}
