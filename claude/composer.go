package claude

import (
	"strings"

	"netsky/tmux/screen"
)

// A cell is a character of a screen with the attributes that matter here.
type cell struct {
	char    rune
	faint   bool // a suggestion, not typed text
	reverse bool // where the cursor is drawn
}

// styledLines splits a screen that was captured with its escape sequences.
func styledLines(text string) [][]cell {
	lines := screen.Lines(text)
	rows := make([][]cell, len(lines))
	for i, line := range lines {
		for _, s := range line {
			for _, r := range s.Text {
				rows[i] = append(rows[i], cell{r, s.Style.Attr&screen.Faint != 0, s.Style.Attr&screen.Reverse != 0})
			}
		}
	}
	return rows
}

// plain returns a screen without its escape sequences.
func plain(text string) string {
	lines := screen.Lines(text)
	rows := make([]string, len(lines))
	for i, line := range lines {
		rows[i] = screen.Text(line)
	}
	return strings.Join(rows, "\n")
}

// rowText returns the text of a row.
func rowText(row []cell) string {
	var b strings.Builder
	for _, c := range row {
		b.WriteRune(c.char)
	}
	return b.String()
}

// A composer is Claude's input box.
type composer struct {
	text  string // what is typed; lines as shown
	empty bool   // nothing is typed, not even a blank
	shown string // the whole box as it looks, for comparing
}

// findComposer finds the input box: the lines between the last two rules of the screen, of
// which the first begins with the prompt. The "!" of shell mode does not count.
func findComposer(lines [][]cell) (composer, bool) {
	var rules []int
	last := -1
	for i, row := range lines {
		text := strings.TrimRight(rowText(row), " \u00a0")
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
	var c composer
	var texts []string
	for _, row := range box {
		c.shown += rowText(row) + "\n"
		row = row[min(2, len(row)):] // the prompt, or what is below it
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

// isSuggestion reports whether a row is what Claude suggests in an empty box: faint,
// except for the first character, which the cursor covers.
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

// cursorAt returns where in a row the cursor is drawn, or -1.
func cursorAt(row []cell) int {
	for i, c := range row {
		if c.reverse {
			return i
		}
	}
	return -1
}
