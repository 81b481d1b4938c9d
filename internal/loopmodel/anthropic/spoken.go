package anthropic

import "strings"

// wraps are what Claude Code puts around a text that it passes on: a message of
// another session, and what came while a tool ran.
var wraps = []struct{ open, end string }{
	{"Another Claude session sent a message:\n", "\n\nThis came from another Claude session"},
	{"Another Claude session sent a message while you were working:\n", "\n\nThis came from another Claude session"},
	{"The user sent a new message while you were working:\n", "\n\nThis is how Claude Code surfaces messages"},
}

// spoken returns what of a user's text the user or a peer said; nothing if Claude Code
// wrote it.
func spoken(text string) []string {
	text = unremind(text)
	for _, prefix := range []string{"<local-command-", "<command-name>", "This session is being continued from a previous conversation"} {
		if strings.HasPrefix(text, prefix) {
			return nil
		}
	}
	for _, w := range wraps {
		if strings.HasPrefix(text, w.open) {
			return surfaced(text)
		}
	}
	if text == "" {
		return nil
	}
	return []string{text}
}

// unremind returns a text without the reminders in front of it.
func unremind(text string) string {
	text = strings.TrimSpace(text)
	for {
		rest, ok := strings.CutPrefix(text, "<system-reminder>")
		if !ok {
			return text
		}
		_, rest, _ = strings.Cut(rest, "</system-reminder>")
		text = strings.TrimSpace(rest)
	}
}

// output returns what a tool returned, without the reminders behind it.
func output(text string) string {
	for {
		at := strings.LastIndex(text, "<system-reminder>")
		if at < 0 || !strings.HasSuffix(strings.TrimSpace(text), "</system-reminder>") {
			return text
		}
		text = strings.TrimSpace(text[:at])
	}
}

// surfaced returns the texts that are passed on in another, in order.
func surfaced(text string) []string {
	var list []string
	for {
		at, from, end := len(text), 0, ""
		for _, w := range wraps {
			if i := strings.Index(text, w.open); i >= 0 && i < at && (i == 0 || text[i-1] == '\n') {
				at, from, end = i, i+len(w.open), w.end
			}
		}
		if end == "" {
			return list
		}
		said, rest, _ := strings.Cut(text[from:], end)
		list, text = append(list, strings.TrimSpace(said)), rest
	}
}
