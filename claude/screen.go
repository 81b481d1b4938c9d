package claude

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A pane is judged by two things that text inside Claude's screen cannot forge, as Claude
// indents whatever a model, a file or a command has written, or puts a gutter in front of
// it:
//
// - a rule that begins in the first column is drawn by Claude alone. There is one above a
// dialog, and above and below the composer;
// - the composer disappears while a dialog waits. While it is at the bottom of the screen,
// nothing above it is a dialog, whatever it says.
//
// One dialog shows its question in the first column: the model's own question to its user,
// which ends in a distinct footer. A program that writes to the terminal past Claude can
// show anything; [Answer] says what could happen then.

// maxScreen limits what is examined, from the end of the text, in bytes: more than a pane
// of 250 columns and 200 rows has.
const maxScreen = 256 << 10

// A frame is the part of a screen below one of Claude's rules, without empty lines.
type frame struct {
	lines []string
	width int // of the rule above it, in columns; 0 if none is visible
}

// words returns the frame's first n lines that hold more than line drawing.
func (f frame) words(n int) []string {
	var list []string
	for _, line := range f.lines {
		if line = strings.TrimSpace(line); strings.Trim(line, "─╌▔ ") == "" {
			continue
		}
		if list = append(list, line); len(list) == n {
			break
		}
	}
	return list
}

// title returns the frame's first line of words.
func (f frame) title() string { return strings.Join(f.words(1), "") }

// A look is a parsed screen.
type look struct {
	lines    []string // without empty ones
	rules    []int    // those that are rules
	composer bool
}

func readScreen(screen string) look {
	var l look
	for line := range strings.Lines(screenEnd(screen)) {
		line = strings.ReplaceAll(line, "\u00a0", " ")
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line != "" {
			l.lines = append(l.lines, line)
		}
	}
	l.find()
	if n := len(l.lines) - 1; n >= 0 && !l.composer && isRule(l.lines[n]) {
		// A named session also shows its name on a rule at the very bottom.
		l.lines = l.lines[:n]
		l.find()
	}
	return l
}

// screenEnd returns the end of the text, from the beginning of a line.
func screenEnd(s string) string {
	if len(s) <= maxScreen {
		return s
	}
	s = s[len(s)-maxScreen:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		return rest
	}
	return s
}

func (l *look) find() {
	l.rules, l.composer = nil, false
	for i, line := range l.lines {
		if isRule(line) {
			l.rules = append(l.rules, i)
		}
	}
	if n := len(l.rules); n >= 2 {
		top, bottom := l.rules[n-2], l.rules[n-1]
		below := l.lines[bottom+1:]
		l.composer = bottom > top+1 && isPrompt(l.lines[top+1]) && selector(below) < 0 && !offersEnter(below)
	}
}

// below reports whether the lines below the composer hold these words: a model can't write
// there.
func (l look) below(words string) bool {
	return strings.Contains(strings.Join(l.lines[l.rules[len(l.rules)-1]+1:], "\n"), words)
}

// isRule reports whether a line is one of Claude's rules: from the first column to the
// last, possibly with a word in it.
func isRule(line string) bool {
	for _, c := range []string{"─", "▔"} {
		if strings.HasPrefix(line, c+c+c) && strings.HasSuffix(line, c) {
			return true
		}
	}
	return false
}

// isPrompt reports whether a line begins the composer.
func isPrompt(line string) bool {
	return line == "❯" || strings.HasPrefix(line, "❯ ") || line == "!" || strings.HasPrefix(line, "! ")
}

// isFooter reports whether the lines end as a dialog does, with the keys that answer it.
func isFooter(lines []string) bool {
	end := squash(strings.Join(lines[max(len(lines)-3, 0):], ""))
	for _, words := range []string{"Enterto", "Esctocancel", "Esctoclose", "Esctoreject", "Esctoexit", "tonavigate", "toselect"} {
		if strings.Contains(end, words) {
			return true
		}
	}
	return false
}

// offersEnter reports whether the lines say what Enter does. A composer's never do, though
// they may say what Esc cancels.
func offersEnter(lines []string) bool {
	return strings.Contains(squash(strings.Join(lines, "")), "Enterto")
}

// selector returns the line with a menu's arrow, or -1. The last counts.
func selector(lines []string) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(strings.TrimLeft(lines[i], " "), "❯ ") {
			return i
		}
	}
	return -1
}

// frames returns what is below each of the last few rules, to the end of the screen, the
// lowest rule's first: a dialog may contain a rule.
func (l look) frames() []frame {
	var list []frame
	for i := len(l.rules) - 1; i >= max(len(l.rules)-4, 0); i-- {
		at := l.rules[i]
		list = append(list, frame{lines: l.lines[at+1:], width: utf8.RuneCountInString(l.lines[at])})
	}
	return append(list, frame{lines: l.lines})
}

// squash returns text without its white space: then it does not matter where a line was
// wrapped, between words or within one.
func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// unwrap joins a text that Claude has wrapped to the frame's width. A full line was broken
// within a word.
func (f frame) unwrap(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		b.WriteString(strings.TrimSpace(line))
		if i < len(lines)-1 && utf8.RuneCountInString(line) < f.width-2 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
