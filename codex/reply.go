package codex

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	replyOpen  = "<netsky-reply>"
	replyClose = "</netsky-reply>"
)

// ExtractReply is the part of a model's answer that goes to the sender: what
// stands in its first <netsky-reply> block, else all of it, trimmed.
func ExtractReply(answer string) string {
	if _, rest, ok := strings.Cut(answer, replyOpen); ok {
		if body, _, ok := strings.Cut(rest, replyClose); ok {
			return strings.TrimSpace(body)
		}
	}
	return strings.TrimSpace(answer)
}

// SafeText makes a model's words fit for an envelope: valid UTF-8 without NUL,
// and no "<" that begins a channel wrapper.
func SafeText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		if s = s[i+1:]; wrapper(s) {
			b.WriteString("&lt;")
		} else {
			b.WriteByte('<')
		}
	}
}

// wrapper says whether what follows a "<" makes it a channel tag, in any case
// and with white space between.
func wrapper(s string) bool {
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	s = strings.TrimLeftFunc(strings.TrimPrefix(s, "/"), unicode.IsSpace)
	const word = "channel"
	return len(s) >= len(word) && strings.EqualFold(s[:len(word)], word)
}

// cut shortens a text to at most n bytes, at the end of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
