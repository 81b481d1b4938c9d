package claude

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A cell is a character of a screen, as far as its looks tell what it is.
type cell struct {
	char    rune
	faint   bool // a suggestion, and not what somebody has typed
	reverse bool // where the cursor is drawn
}

// styledLines takes a screen apart that was captured with its escape sequences.
func styledLines(screen string) [][]cell {
	var lines [][]cell
	var row []cell
	var now cell
	for len(screen) > 0 {
		r, n := utf8.DecodeRuneInString(screen)
		switch r {
		case '\x1b':
			n = now.escape(screen)
		case '\n':
			lines, row = append(lines, row), nil
		default:
			now.char = r
			row = append(row, now)
		}
		screen = screen[n:]
	}
	return append(lines, row)
}

// escape obeys the escape sequence at the beginning of s and is its length.
func (c *cell) escape(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				if s[i] == 'm' {
					c.graphics(s[2:i])
				}
				return i + 1
			}
		}
		return len(s)
	case ']': // a link, say: up to BEL or ESC \
		for i := 2; i < len(s); i++ {
			if s[i] == '\a' {
				return i + 1
			}
			if s[i] == '\x1b' {
				return min(i+2, len(s))
			}
		}
		return len(s)
	}
	return 2
}

// graphics sets what a "select graphic rendition" sequence says.
func (c *cell) graphics(params string) {
	list := strings.FieldsFunc(params, func(r rune) bool { return r == ';' })
	if len(list) == 0 {
		list = []string{"0"}
	}
	for i := 0; i < len(list); i++ {
		n, _ := strconv.Atoi(list[i])
		switch n {
		case 0:
			c.faint, c.reverse = false, false
		case 2:
			c.faint = true
		case 22:
			c.faint = false
		case 7:
			c.reverse = true
		case 27:
			c.reverse = false
		case 38, 48, 58: // a colour, whose numbers are no attributes
			if i+1 < len(list) && list[i+1] == "5" {
				i += 2
			} else {
				i += 4
			}
		}
	}
}

// plainText is a screen without its escape sequences.
func plainText(lines [][]cell) string {
	var b strings.Builder
	for i, row := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, c := range row {
			b.WriteRune(c.char)
		}
	}
	return b.String()
}

// A composer is Claude's input box.
type composer struct {
	text  string // what somebody has typed; lines are kept as they are shown
	empty bool   // nothing is typed, not even a blank
	shown string // all of the box as it looks, for comparing
}

// findComposer finds the input box: the lines between the last two rules of the
// screen, of which the first begins with the prompt. A shell's "!" is none.
func findComposer(lines [][]cell) (composer, bool) {
	var rules []int
	last := -1
	for i, row := range lines {
		text := strings.TrimRight(plainText([][]cell{row}), " \u00a0")
		if text != "" {
			last = i
		}
		if isRule(text) {
			rules = append(rules, i)
		}
	}
	if n := len(rules); n > 2 && rules[n-1] == last { // a named session's
		rules = rules[:n-1]
	}
	if len(rules) < 2 {
		return composer{}, false
	}
	top, bottom := rules[len(rules)-2], rules[len(rules)-1]
	box := lines[top+1 : bottom]
	if len(box) == 0 || len(box[0]) == 0 || box[0][0].char != '❯' {
		return composer{}, false
	}
	return readComposer(box), true
}

func readComposer(box [][]cell) composer {
	c := composer{shown: plainText(box)}
	var texts []string
	for _, row := range box {
		row = row[min(2, len(row)):] // the prompt, or what stands below it
		var b strings.Builder
		if !isSuggestion(row) {
			for _, cell := range row {
				if !cell.faint {
					b.WriteRune(cell.char)
				}
			}
		}
		texts = append(texts, strings.TrimRight(b.String(), " \u00a0"))
	}
	c.text = strings.Join(texts, "\n")
	first := box[0][min(2, len(box[0])):]
	c.empty = c.text == "" && cursorAt(first) <= 0
	return c
}

// isSuggestion reports whether a row is what Claude suggests into an empty box:
// faint, but for the character that the cursor stands on, the first.
func isSuggestion(row []cell) bool {
	if len(row) < 2 || !row[0].reverse && !row[0].faint {
		return false
	}
	for _, c := range row[1:] {
		if !c.faint && c.char != ' ' && c.char != '\u00a0' {
			return false
		}
	}
	return row[1].faint
}

// cursorAt is where in a row the cursor is drawn, or -1.
func cursorAt(row []cell) int {
	for i, c := range row {
		if c.reverse {
			return i
		}
	}
	return -1
}
