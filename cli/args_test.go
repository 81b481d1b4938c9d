package cli

import (
	"strings"
	"testing"
)

func TestFlagsFirst(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"netsky", "netsky"},
		{"netsky up 2 --json", "netsky up --json 2"},
		{"netsky up 2 --type demo", "netsky up --type demo 2"},
		{"netsky up 2 --type=demo --json", "netsky up --type=demo --json 2"},
		{"netsky up --type demo 2", "netsky up --type demo 2"},
		{"netsky agent 3 --fresh", "netsky agent --fresh 3"},
		{"netsky channel send agent1 hi --kind brief", "netsky channel send --kind brief agent1 hi"},
		{"netsky channel send agent1 -- --kind", "netsky channel send -- agent1 --kind"},
		{"netsky ask agent0 -x=1,2 a", "netsky ask -x=1,2 agent0 a"},
		{"netsky ask agent0 -5", "netsky ask -- agent0 -5"},
		{"netsky ask agent0 - --json", "netsky ask --json -- agent0 -"},
		{"netsky demo --quick", "netsky demo --quick"},
		{"netsky demo serve agent1", "netsky demo serve agent1"},
		{"netsky nosuch up --json", "netsky --json nosuch up"},
	} {
		got := strings.Join(flagsFirst((&app{}).cli(), strings.Fields(tt.in)), " ")
		if got != tt.want {
			t.Errorf("flagsFirst(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
	text := "-v is what, and -- too?"
	got := flagsFirst((&app{}).cli(), []string{"netsky", "ask", "agent0", text, "--json"})
	if want := []string{"netsky", "ask", "--json", "--", "agent0", text}; strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("a text with a dash: %q, want %q", got, want)
	}
}
