// Package words formats what people read: durations, paths, lists of names, the beginning of a text.
package words

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ago formats a duration in one unit: "3s", "12m", "5h", "9d".
func Ago(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Span formats a duration in hours and minutes: "2h5m", "31m", "4s".
func Span(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	text := strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Size writes a number of bytes, to the unit that matters.
func Size(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// Tilde shortens a path below the user's home to ~/….
func Tilde(home, path string) string {
	if rest, ok := strings.CutPrefix(path, home); ok && home != "" && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return path
}

// OrDash returns the text, or a dash if it is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// FirstLine returns the text before the first newline.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// Blank reports whether a text is empty or all white space.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }

// SomeOf joins the first names of n.
func SomeOf(first []string, n int) string {
	text := strings.Join(first, ", ")
	if n > len(first) {
		text += ", …"
	}
	return text
}

// Names joins names as in a sentence: "a, b and c", and of many the first three.
func Names(names []string) string {
	const most = 4
	switch n := len(names); {
	case n > most:
		return fmt.Sprintf("%s and %d others", strings.Join(names[:most-1], ", "), n-most+1)
	case n > 1:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Brief returns the text's first line, cut to n characters.
func Brief(text string, n int) string {
	text = strings.TrimRight(text, "\n")
	s := []rune(FirstLine(text))
	if len(s) > n || len(string(s)) < len(text) {
		return string(s[:min(len(s), n)]) + "…"
	}
	return string(s)
}

// Note returns a remark to append to other words, set off by two spaces.
func Note(s string) string {
	if s == "" {
		return ""
	}
	return "  " + s
}

// First returns the lines, or the first of a list that is too long to print.
func First(lines []string) []string {
	const most = 20
	if len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most]), fmt.Sprintf("%d more", len(lines)-most))
}
