package prompts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"netsky/internal/advice"
)

var (
	// ErrPlaceholder reports a "{{" without a known placeholder.
	ErrPlaceholder = advice.With(errors.New("is not a known placeholder"),
		"`netsky prompt AGENT --layers` shows what the text is made of")

	// ErrText reports a layer that is not text: a program's argument cannot contain a
	// NUL, and JSON no invalid UTF-8.
	ErrText = errors.New("is not text")
)

const (
	opening = "{{"
	closing = "}}"
	literal = `"{{"` // in braces, it produces two braces
)

// Literal returns a layer's text that is rendered as the given one, whatever braces are in it.
func Literal(text string) string {
	return strings.ReplaceAll(text, opening, opening+" "+literal+" "+closing)
}

// substitute replaces the placeholders in one pass from left to right, so that no value
// is examined again.
func substitute(l Layer, values map[string]string) (string, error) {
	text := strings.ReplaceAll(strings.TrimPrefix(l.Text, "\ufeff"), "\r\n", "\n")
	if at := badByte(text); at >= 0 {
		return "", fmt.Errorf("%s, line %d: byte %#02x %w", l.Name, lineAt(text, at), text[at], ErrText)
	}
	at := len(text) - len(strings.TrimLeft(text, "\n"))
	text = strings.TrimRight(text, " \t\n")
	if at >= len(text) {
		return "", nil
	}
	var out strings.Builder
	for {
		i := strings.Index(text[at:], opening)
		if i < 0 {
			break
		}
		out.WriteString(text[at : at+i])
		at += i
		value, length, ok := placeholder(text[at:], values)
		if !ok {
			return "", refuse(l, text, at, values)
		}
		out.WriteString(value)
		at += length
	}
	out.WriteString(text[at:])
	return out.String(), nil
}

// placeholder parses the one that text begins with, and returns its value and its
// length.
func placeholder(text string, values map[string]string) (value string, length int, ok bool) {
	inside := strings.TrimLeft(text[len(opening):], " \t")
	if rest, found := strings.CutPrefix(inside, literal); found {
		value, ok, inside = opening, true, rest
	} else {
		end := strings.IndexFunc(inside, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
		if end < 0 {
			return "", 0, false
		}
		value, ok = values[inside[:end]]
		inside = inside[end:]
	}
	rest, closed := strings.CutPrefix(strings.TrimLeft(inside, " \t"), closing)
	return value, len(text) - len(rest), ok && closed
}

// refuse returns the error for the "{{" at a position in a layer's text.
func refuse(l Layer, text string, at int, values map[string]string) error {
	return fmt.Errorf("%s, line %d: %q %w; known are %s and %s for the braces themselves",
		l.Name, lineAt(text, at), preview(text[at:]), ErrPlaceholder, known(values),
		opening+" "+literal+" "+closing)
}

func known(values map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(values)), ", ")
}

func lineAt(text string, at int) int { return 1 + strings.Count(text[:at], "\n") }

// preview returns the beginning of a text: to its first closing braces, the end of its
// line or 40 characters, whichever comes first.
func preview(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if before, _, ok := strings.Cut(line, closing); ok {
		line = before + closing
	}
	if r := []rune(line); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return line
}

// badByte returns the position of the first NUL or byte that is not UTF-8, or -1.
func badByte(text string) int {
	for i, r := range text {
		if r == 0 {
			return i
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

// plain returns a value for the middle of a line. One that would break the line, or is
// not text, is quoted as in a Go program.
func plain(value string) string {
	odd := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	if !utf8.ValidString(value) || strings.ContainsFunc(value, odd) {
		return strconv.Quote(value)
	}
	return value
}
