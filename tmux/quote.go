package tmux

import (
	"fmt"
	"strings"
)

// Quote makes one word of a tmux command line of arg, for a line given to
// [Server.Start] or [Client.Do]. The result is a single line whatever arg holds.
// The one thing no tmux argument can hold is a NUL: Quote leaves it as it is, and
// Start and Do refuse the line.
func Quote(arg string) string {
	if bare(arg) {
		return arg
	}
	var b strings.Builder
	b.Grow(len(arg) + 8)
	b.WriteByte('"')
	for i := range len(arg) {
		switch c := arg[i]; c {
		case '"', '\\', '$', '~':
			// A tilde is special to tmux also at the start of a quoted word.
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			// A line feed in quotes would swallow the blanks after it.
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case 0xff:
			// tmux reads the byte as a signed char and takes it for the end.
			b.WriteString(`\377`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// bare reports whether tmux reads arg as one word without quotes. A word that
// begins with % or holds = could be a condition or an assignment; those are
// quoted, which is never wrong.
func bare(arg string) bool {
	for i := range len(arg) {
		c := arg[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '_', c == '/', c == '.', c == ':', c == ',', c == '@':
		default:
			return false
		}
	}
	return arg != ""
}

// literal escapes s for an argument in which tmux expands formats. A run of #
// before [ is a style to tmux and is copied as it stands.
func literal(s string) string {
	if !strings.Contains(s, "#") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n := len(s[i:]) - len(strings.TrimLeft(s[i:], "#"))
		switch {
		case n == 0:
			b.WriteByte(s[i])
			i++
			continue
		case i+n < len(s) && s[i+n] == '[':
			b.WriteString(s[i : i+n])
		default:
			b.WriteString(strings.Repeat("#", 2*n))
		}
		i += n
	}
	return b.String()
}

// oneLine refuses what would be more than one line to tmux, or less.
func oneLine(line string) error {
	if strings.ContainsAny(line, "\n\x00") {
		return fmt.Errorf("tmux: %s: a line feed or NUL in a command line", firstWord(line))
	}
	return nil
}

func firstWord(line string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return word
}

// exact returns target if it can mean one pane only: %3, @2, $1 or =name, where
// a window or session stands for its active pane. Anything else tmux would
// match by prefix and pattern.
func exact(target string) (string, error) {
	if len(target) > 1 {
		rest := target[1:]
		switch target[0] {
		case '%', '@':
			if digits(rest) {
				return target, nil
			}
		case '$':
			if digits(rest) {
				return target + ":", nil
			}
		case '=':
			if name := strings.TrimSuffix(rest, ":"); nameOK(name) {
				return "=" + name + ":", nil
			}
		}
	}
	return "", fmt.Errorf("tmux: target %q: want %%pane, @window, $session or =name", target)
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// nameOK reports whether s names a session to tmux as it stands.
func nameOK(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-' && i > 0:
		default:
			return false
		}
	}
	return s != ""
}
