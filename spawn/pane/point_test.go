package pane_test

import (
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/spawn/pane"
)

func TestSameLine(t *testing.T) {
	const hint = "│ > Type your message or @path/to/file   │"
	for line, want := range map[string]bool{
		hint:                              true,
		"│ > Type your message or @pa│":   true,
		"│ > fix the bug               │": false,
		"│ > Typ │":                       false,
		"│ > Type your message or @path/to/file x │": false,
	} {
		testworld.Equal(t, pane.SameLine(line, hint), want, "%q", line)
	}
	if pane.SameLine("> fix", "> ") || !pane.SameLine(">", "> ") {
		t.Error("a bare prompt")
	}
}

func TestAsks(t *testing.T) {
	for _, c := range []struct {
		rows string
		want bool
	}{
		{"Overwrite? [y/N] ", true},
		{"Go on (yes/no)?", true},
		{"│ ● 1. Yes │\n│   2. No  │\n╰──╯", true},
		{"  1) allow\n> 2) deny", true},
		{"Enter your API key: ", true},
		{"Password:", true},
		{"Press Enter to continue", true},
		{"(Use Enter to select)", true},
		{"> ", false},
		{"you: ", false},
		{"> 1. do this\n\nDone.\n> ", false},
		{"1. first\n2. second\n> ", false},
		{"the code is in main.go\n> ", false},
	} {
		testworld.Equal(t, pane.Asks(strings.Split(c.rows, "\n")...), c.want, "%q asks", c.rows)
	}
}
