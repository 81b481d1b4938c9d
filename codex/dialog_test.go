package codex_test

import (
	"strings"
	"testing"

	"netsky/agent"
	"netsky/codex"
	"netsky/internal/testworld"
)

// Screens of Codex 0.169.0, as tmux shows them, and texts that only look like one.
func TestRecognise(t *testing.T) {
	screens := testworld.Files(t, "screens/codex")
	const foot = "\n\n› Ask Codex to do anything\n\n  GPT-5.5 default · ~/w · agent1\n  ← for agents · ? for shortcuts\n"
	for _, tt := range []struct {
		name, screen, want string
	}{
		{"announcement", screens["announcement.txt"], "new model: Meet GPT-6 Sol"},
		{"another cursor", "Meet X\n\n  1. Try it\n› 2. Not now\n\n  enter confirm\n", "unknown dialog: Meet X"},
		{"trust", screens["trust.txt"], "workspace trust: Folder access"},
		{"login", screens["login.txt"], "login: Welcome to Codex"},
		{"approval", screens["approval.txt"], "approval: Would you like to run the following command?"},
		{"choices of several lines", "Pick\n\n  1. one\n     that goes on\n     and on\n› 2. two\n     goes on\n  3. three\n", "unknown dialog: Pick"},
		{"composer", screens["idle.txt"], ""},
		{"a list in the conversation", "› 1. build it\n  2. test it\n\n• I will:\n  1. build\n  2. test" + foot, ""},
		{"a quoted list", "• it says:\n  > 1. build\n  > 2. test" + foot, ""},
		{"a draft", "• done\n\n› 1. build it\n  2. test it\n\n  GPT-5.5 default · ~/w · agent1\n", ""},
		{"busy", screens["busy.txt"], ""},
		{"one choice", "Meet X\n\n› 1. Try it\n", ""},
		{"not counted", "Meet X\n\n› 1. Try it\n  3. Not now\n", ""},
		{"part of a list", screens["model.txt"], "model: Select Model and Effort"},
		{"empty", "", ""},
		{"long", strings.Repeat("x\n", 1<<20) + "\n\nMeet X\n\n› 1. a\n  2. b\n", "unknown dialog: Meet X"},
		{"a long title", strings.Repeat("<y", 1000) + "\n\n› 1. a\n  2. b\n", "long"},
	} {
		d, ok := new(codex.Runtime).Dialog(tt.screen, agent.Launch{Agent: "agent1"})
		got := ""
		if ok {
			got = d.Name + ": " + d.Text
		}
		if tt.want == "long" && ok && len(d.Text) < 1200 {
			continue
		}
		testworld.Equal(t, got, tt.want, "%s", tt.name)
		if d.Keys != nil {
			t.Errorf("%s: keys %q: netsky answers no dialog of Codex's", tt.name, d.Keys)
		}
	}
	var r codex.Runtime
	if d, ok := r.Dialog("Meet X\n\n› 1. a\n  2. b\n", agent.Launch{Agent: "agent1"}); !ok || d.Keys != nil {
		t.Errorf("Dialog: %+v, %v", d, ok)
	}
}
