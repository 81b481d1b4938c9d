package codex

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/bus/envelope"
)

// A dialog of Codex's is recognised by its structure, whatever its text: a list of
// numbered choices, one with the cursor, where otherwise the composer is, at the bottom
// of the screen. All text of a conversation is above the composer, whose line is then
// the last that starts with the cursor.
var (
	cursorLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*[›❯>]\s`) })
	choiceLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*[›❯>]?\s*(\d{1,2})\. +\S`) })
)

const (
	maxDialogScreen = 256 << 10 // bytes examined, from the end
	maxDialogLines  = 24        // between a dialog's title and its choices
	maxDialogText   = 200       // in bytes
)

// dialogNames are words that identify a dialog; any other is named by its first line.
var dialogNames = []struct{ words, name string }{
	{"Try new model", "new model"},
	{"Would you like to", "approval"},
	{"Trust this folder?", "workspace trust"},
	{"Hooks need review", "hooks"},
	{"Sign in with", "login"},
	{"Update available", "update"},
	{"Select Model", "model"},
	{"Select Reasoning", "model"},
}

const unknownDialog = "unknown dialog"

// Dialog returns the dialog on Codex's screen. It never has Keys: only a person can
// answer it.
func (r *Runtime) Dialog(screen string, l agent.Launch) (agent.Dialog, bool) {
	return recognise(screen, l.Agent)
}

// Overlaid reports true: the agent continues behind a dialog, and is not affected by
// it.
func (r *Runtime) Overlaid() {}

// recognise finds the dialog on a screen, the text of the agent's pane.
func recognise(screen string, id agent.ID) (agent.Dialog, bool) {
	if over := len(screen) - maxDialogScreen; over > 0 {
		screen = screen[over:]
	}
	lines := strings.Split(strings.ReplaceAll(screen, "\u00a0", " "), "\n")
	at := -1
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \r")
		if cursorLine().MatchString(line) {
			at = i
		}
	}
	if at < 0 || choice(lines[at]) == 0 {
		return agent.Dialog{}, false
	}
	first, last := choices(lines, at)
	if first == last || composed(lines[last+1:], id) { // a long list shows only a part of itself
		return agent.Dialog{}, false
	}
	return named(lines, first, last), true
}

// choice returns the number of the choice in a line, 0 if there is none.
func choice(line string) int {
	m := choiceLine().FindStringSubmatch(line)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// choices finds the first and the last line of the list around the cursor's line: the
// numbers are consecutive, and a choice may take several lines.
func choices(lines []string, at int) (first, last int) {
	const apart = 4 // lines of one choice
	first, last = at, at
	for i, seen := at-1, at; i >= 0 && seen-i <= apart; i-- {
		if n := choice(lines[i]); n != 0 && n == choice(lines[first])-1 {
			first, seen = i, i
		}
	}
	for i, seen := at+1, at; i < len(lines) && i-seen <= apart; i++ {
		if n := choice(lines[i]); n != 0 && n == choice(lines[last])+1 {
			last, seen = i, i
		}
	}
	return first, last
}

// composed reports whether the lines below are the composer's foot: then the list is a
// draft. The foot names the thread, which has the agent's name.
func composed(below []string, id agent.ID) bool {
	for _, line := range below {
		if strings.HasSuffix(line, "for shortcuts") || strings.Contains(line+" ", "· "+string(id)+" ") {
			return true
		}
	}
	return false
}

// named returns the name of the dialog above the choices.
func named(lines []string, first, last int) agent.Dialog {
	// Its text starts after two empty lines, or at the top.
	top := first
	for i, empty := first-1, 0; i >= 0 && empty < 2 && first-i <= maxDialogLines; i-- {
		if strings.TrimSpace(lines[i]) == "" {
			empty++
			continue
		}
		top, empty = i, 0
	}
	title := cutWords(strings.TrimSpace(lines[top]))
	all := strings.Join(lines[top:last+1], "\n")
	for _, d := range dialogNames {
		if strings.Contains(all, d.words) {
			return agent.Dialog{Name: d.name, Text: title}
		}
	}
	return agent.Dialog{Name: unknownDialog, Text: title}
}

func cutWords(s string) string {
	if len(s) > maxDialogText {
		s = envelope.Cut(s, maxDialogText-len("…")) + "…"
	}
	return envelope.SafeText(s)
}
