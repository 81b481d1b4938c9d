package envelope

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Render returns the envelope as text for a model. Nothing in the text can end the element
// or begin another: & < > " ' are escaped, and what a terminal or a reader would obey
// (controls but newline and tab, bidi marks) becomes U+FFFD. A message that waited over an
// hour says so, in whole hours; one with attachments names them, as paths beneath the
// recipient's mailbox.
func Render(e Envelope, now time.Time) string {
	var b strings.Builder
	b.Grow(len(e.Text) + 160)
	b.WriteString(`<channel source="agent" chat_id="`)
	renderText(&b, string(e.From))
	b.WriteString(`" from="`)
	renderText(&b, string(e.From))
	b.WriteString(`" ts="`)
	b.WriteString(Stamp(e.Time))
	b.WriteString(`" id="`)
	renderText(&b, e.ID)
	if waited := now.Sub(e.Time); waited >= time.Hour {
		b.WriteString(`" waited="`)
		b.WriteString(strconv.Itoa(int(waited/time.Hour)) + "h")
	}
	if len(e.Attachments) > 0 { // here they can't be forged by the text
		b.WriteString(`" attachments="`)
		renderText(&b, strings.Join(e.Attachments, " "))
	}
	b.WriteString("\">\n")
	renderText(&b, e.Text)
	b.WriteString("\n</channel>")
	return b.String()
}

func renderText(b *strings.Builder, s string) {
	done := 0 // s[:done] has been written
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && rendered[c] == "" {
			i++
			continue
		}
		b.WriteString(s[done:i])
		if c < utf8.RuneSelf {
			b.WriteString(rendered[c])
			i++
		} else {
			r, n := utf8.DecodeRuneInString(s[i:]) // a broken byte is U+FFFD
			if unicode.IsControl(r) || isBidi(r) || r == 0xfffe || r == 0xffff {
				r = utf8.RuneError
			}
			b.WriteRune(r)
			i += n
		}
		done = i
	}
	b.WriteString(s[done:])
}

// rendered is how the characters of ASCII are written that don't stand for
// themselves.
var rendered = func() (list [utf8.RuneSelf]string) {
	for c := range list {
		if (c < ' ' || c == 0x7f) && c != '\n' && c != '\t' {
			list[c] = "\ufffd"
		}
	}
	list['&'], list['<'], list['>'], list['"'], list['\''] = "&amp;", "&lt;", "&gt;", "&quot;", "&#39;"
	return list
}()

// Plain returns s for a terminal: controls other than newline and tab, bidi marks,
// invisible characters and broken bytes become escapes like \x1b or \u202e. A selector of
// the emoji form of the preceding character is kept, and so is a joiner between two
// pictures.
func Plain(s string) string {
	clean := true
	for i, r := range s {
		if hidden(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	before, drawn := rune(0), false // drawn: a picture is before it, in whatever form
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		after := rune(0) // an escape takes no emoji form
		switch {
		case r == utf8.RuneError && n == 1:
			writeEscape(&b, 'x', rune(s[i]), 2)
		case r == emojiForm && before >= 0xa9, !hidden(r):
			b.WriteString(s[i : i+n])
			after = r
		case r == joiner && drawn && picture(firstRune(s[i+n:])):
			b.WriteString(s[i : i+n])
		case r <= 0xff:
			writeEscape(&b, 'x', r, 2)
		case r <= 0xffff:
			writeEscape(&b, 'u', r, 4)
		default:
			writeEscape(&b, 'U', r, 8)
		}
		drawn = picture(after) || drawn && after == emojiForm
		if before = after; r == emojiForm {
			before = 0
		}
		i += n
	}
	return b.String()
}

const joiner = '\u200d'

// picture reports whether an emoji can be made of r by joining it to another.
func picture(r rune) bool {
	return r >= 0x2190 && r <= 0x2bff || r >= 0x1f000 && r <= 0x1faff
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func writeEscape(b *strings.Builder, letter byte, r rune, digits int) {
	b.WriteByte('\\')
	b.WriteByte(letter)
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		b.WriteByte(hexDigits[r>>shift&15])
	}
}

const emojiForm = '\ufe0f'

func isBidi(r rune) bool {
	switch {
	case r == 0x61c, r == 0x200e, r == 0x200f:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// hidden reports whether a terminal would obey the character or show nothing
// for it. Newline and tab are not hidden.
func hidden(r rune) bool {
	if r < 0x7f {
		return r < ' ' && r != '\n' && r != '\t'
	}
	if r < 0xa0 || r == 0xad {
		return true
	}
	if r < 0x300 {
		return false
	}
	switch {
	case unicode.Is(unicode.Cf, r), r == 0x2028, r == 0x2029, // format, line and paragraph separators
		r == 0x34f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0, // fillers
		r >= 0x180b && r <= 0x180f, r >= 0xfe00 && r <= 0xfe0f, // variation selectors
		r >= 0xfff0 && r <= 0xfff8, r >= 0xe0000 && r <= 0xe0fff: // specials, tags
		return true
	}
	return false
}
