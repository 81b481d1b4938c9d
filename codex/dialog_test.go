package codex_test

import (
	"strings"
	"testing"

	"netsky/agent"
	"netsky/codex"
)

// Screens of Codex 0.169.0, as tmux shows them, and texts that only look like one.
func TestRecognise(t *testing.T) {
	const foot = "\n\n› Ask Codex to do anything\n\n  GPT-5.5 default · ~/w · agent1\n  ← for agents · ? for shortcuts\n"
	for _, tt := range []struct {
		name, screen, want string
	}{
		{"announcement", `Meet GPT-6 Sol

  Our latest Sol is more intelligent and more efficient so your usage limits go further. This model is a great daily
  driver for complex tasks, especially coding.

› 1. Try new model
  2. Use existing model

  enter/esc confirm · ^c quit
`, "new model: Meet GPT-6 Sol"},
		{"another cursor", "Meet X\n\n  1. Try it\n› 2. Not now\n\n  enter confirm\n", "unknown dialog: Meet X"},
		{"trust", `• a text of the conversation before


  Folder access
  Trust this folder? It will be able to read files in it.

› 1. Trust and continue
  2. Back to Agent Command Center
`, "workspace trust: Folder access"},
		{"login", "Welcome to Codex\n\nChoose how you want to use Codex.\n\n> 1. Sign in with ChatGPT\n  2. Use an API key\n", "login: Welcome to Codex"},
		{"approval", `• Running touch x


  Would you like to run the following command?

  $ touch x

› 1. Yes, proceed (y)
  2. Yes, and don't ask again for commands that start with touch
     (p)
  3. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel
`, "approval: Would you like to run the following command?"},
		{"choices of several lines", "Pick\n\n  1. one\n     that goes on\n     and on\n› 2. two\n     goes on\n  3. three\n", "unknown dialog: Pick"},
		{"composer", "• done" + foot, ""},
		{"a list in the conversation", "› 1. build it\n  2. test it\n\n• I will:\n  1. build\n  2. test" + foot, ""},
		{"a quoted list", "• it says:\n  > 1. build\n  > 2. test" + foot, ""},
		{"a draft", "• done\n\n› 1. build it\n  2. test it\n\n  GPT-5.5 default · ~/w · agent1\n", ""},
		{"busy", "• Working (1s • esc to interrupt)" + foot, ""},
		{"one choice", "Meet X\n\n› 1. Try it\n", ""},
		{"not counted", "Meet X\n\n› 1. Try it\n  3. Not now\n", ""},
		{"part of a list", "  permissions: YOLO mode\n\n\n  Select Model and Effort\n\n↑\n  2. GPT-6-Astra        Frontier\n" +
			"› 3. GPT-5.5 (current)  Legacy coding model.\n\n  enter select · esc back\n", "model: Select Model and Effort"},
		{"empty", "", ""},
		{"long", strings.Repeat("x\n", 1<<20) + "\n\nMeet X\n\n› 1. a\n  2. b\n", "unknown dialog: Meet X"},
		{"a long title", strings.Repeat("<y", 1000) + "\n\n› 1. a\n  2. b\n", "long"},
	} {
		d, ok := codex.Recognise(tt.screen, "agent1")
		got := ""
		if ok {
			got = d.Name + ": " + d.Text
		}
		if tt.want == "long" && ok && len(d.Text) < 1200 {
			continue
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if d.Keys != nil {
			t.Errorf("%s: keys %q: netsky answers no dialog of Codex's", tt.name, d.Keys)
		}
	}
	var r codex.Runtime
	if d, ok := r.Dialog("Meet X\n\n› 1. a\n  2. b\n", agent.Launch{Agent: "agent1"}); !ok || d.Keys != nil {
		t.Errorf("Dialog: %+v, %v", d, ok)
	}
}
