package claude_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/internal/testworld"
)

// consent is a launch that implies all that a launch can.
func consent(tb testing.TB, dir string) agent.Launch {
	tb.Helper()
	return agent.Launch{Dir: dir, Argv: []string{
		"/bin/claude", "--permission-mode", "bypassPermissions", "--dangerously-load-development-channels", "server:agent", "--strict-mcp-config",
	}}
}

// channelsScreen is made of the words in the program and of the bypass warning's
// form. The real one has not been seen.
var channelsScreen = strings.Repeat("─", 70) + `
  WARNING: Loading development channels

  --dangerously-load-development-channels is for local channel
  development only. Do not use this option to run channels you have
  downloaded off the internet.

  Please use --channels to run a list of approved channels.

  Channels: server:agent

  ❯ Exit
    I am using this for local development

  Enter to confirm · Esc to cancel
`

func TestAnswer(t *testing.T) {
	t.Parallel()
	trust, bypass := mustScreen(t, "trust.100.txt"), mustScreen(t, "bypass.60.txt")
	at := func(dir string, argv ...string) agent.Launch {
		return agent.Launch{Dir: dir, Argv: append([]string{"/bin/claude"}, argv...)}
	}
	yesSelected := strings.NewReplacer("❯ No, exit", "  No, exit", "  Yes, I trust", "❯ Yes, I trust").Replace(trust)
	for _, tt := range []struct {
		name, screen string
		launch       agent.Launch
		want         []string
	}{
		{"trust", trust, at("/srv/dev/w"), []string{"Down", "Enter"}},
		{"trust, narrow", mustScreen(t, "trust.60.txt"), at("/srv/dev/w"), []string{"Down", "Enter"}},
		{"trust, wide", mustScreen(t, "trust.200.txt"), at("/srv/dev/w"), []string{"Down", "Enter"}},
		{"trust, arrow moved", yesSelected, at("/srv/dev/w"), []string{"Enter"}},
		{"trust, other order", strings.NewReplacer("❯ No, exit", "  Yes, I trust this folder", "  Yes, I trust this folder", "❯ No, exit").Replace(trust),
			at("/srv/dev/w"), []string{"Up", "Enter"}},
		{"trust, long path", mustScreen(t, "trustlong.64.txt"), at(real["trustlong"].Text), []string{"Down", "Enter"}},
		{"trust, long path, wide", mustScreen(t, "trustlong.180.txt"), at(real["trustlong"].Text), []string{"Down", "Enter"}},
		{"trust of another directory", trust, at("/srv/dev"), nil},
		{"trust of one below", trust, at("/srv/dev/w/x"), nil},
		{"trust of one with a space", trust, at("/srv/dev/ w"), nil},
		{"trust of none", trust, at(""), nil},
		{"trust that warns of hooks", mustScreen(t, "trusthooks.180.txt"), at("/srv/dev/wh"), nil},
		{"trust in other words", strings.Replace(trust, "edit, and execute", "edit, share, and execute", 1), at("/srv/dev/w"), nil},
		{"trust with a third option", strings.Replace(trust, "   Yes, I trust", "   Yes, all of them\n   Yes, I trust", 1), at("/srv/dev/w"), nil},
		{"trust without an arrow", strings.Replace(trust, "❯", " ", 1), at("/srv/dev/w"), nil},
		{"trust with two arrows", strings.Replace(trust, "  Yes,", "❯ Yes,", 1), at("/srv/dev/w"), nil},
		{"trust with more below", trust + "  Press 3 to buy\n", at("/srv/dev/w"), nil},
		{"trust cut off above", trust[strings.Index(trust, " Accessing"):], at("/srv/dev/w"), nil},
		{"trust in a transcript", trust + mustScreen(t, "idle.64.txt"), at("/srv/dev/w"), nil},
		{"bypass", bypass, at("/x", "--permission-mode", "bypassPermissions"), []string{"Down", "Enter"}},
		{"bypass, one word", mustScreen(t, "bypass.200.txt"), at("/x", "--permission-mode=bypassPermissions"), []string{"Down", "Enter"}},
		{"bypass, old flag", bypass, at("/x", "--dangerously-skip-permissions"), []string{"Down", "Enter"}},
		{"bypass not asked for", bypass, at("/x", "--permission-mode", "auto"), nil},
		{"bypass taken back", bypass, at("/x", "--permission-mode", "bypassPermissions", "--permission-mode", "plan"), nil},
		{"channels", channelsScreen, consent(t, "/x"), []string{"Down", "Enter"}},
		{"other channels", strings.Replace(channelsScreen, "server:agent", "server:agent, plugin:x@y", 1), consent(t, "/x"), nil},
		{"channels not asked for", channelsScreen, at("/x", "--channels", "server:agent"), nil},
		{"auto mode", mustScreen(t, "autocheck.70.txt"), at("/x", "--permission-mode", "auto"), []string{"Enter"}},
		{"auto mode not asked for", mustScreen(t, "autocheck.70.txt"), at("/x", "--permission-mode", "manual"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testworld.EqualList(t, claude.Answer(tt.screen, tt.launch), tt.want, "Answer")
		})
	}
	if d, ok := claude.Recognise(channelsScreen); !ok || d.Name != "development channels" {
		t.Errorf("Recognise(channels) = %q, %v", d, ok)
	}
}

// Claude shows the directory without links.
func TestAnswerLink(t *testing.T) {
	t.Parallel()
	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	link := filepath.Join(t.TempDir(), "link")
	testworld.Must(t, os.Symlink(dir, link))
	screen := strings.Replace(mustScreen(t, "trust.200.txt"), "/srv/dev/w", dir, 1)
	if keys := claude.Answer(screen, agent.Launch{Dir: link}); len(keys) != 2 {
		t.Errorf("Answer = %q, want two keys", keys)
	}
}

// A launch that implies whatever one can implies none of these.
func TestNotImplied(t *testing.T) {
	t.Parallel()
	files := testworld.Got(os.ReadDir(screens))(t)
	for _, f := range files {
		switch name, _, _ := strings.Cut(f.Name(), "."); name {
		case "trust", "trustlong", "bypass", "autocheck":
			continue
		}
		l := consent(t, "/srv/dev/wh")
		if keys := claude.Answer(mustScreen(t, f.Name()), l); keys != nil {
			t.Errorf("%s: Answer = %q", f.Name(), keys)
		}
	}
}

// What the owner can answer from elsewhere is known by all its words, and what it
// is about is part of it.
func TestDecide(t *testing.T) {
	t.Parallel()
	r := &claude.Runtime{}
	key := mustScreen(t, "key.100.txt")
	for _, tt := range []struct {
		name, screen string
		yes, no      []string
		text         string
	}{
		{"key", key, []string{"Up", "Enter"}, []string{"Enter"}, "Detected a custom API key in your environment sk-ant-...abcdefghij0123456789"},
		{"key, narrow", mustScreen(t, "key.60.txt"), []string{"Up", "Enter"}, []string{"Enter"}, "Detected a custom API key in your environment sk-ant-...abcdefghij0123456789"},
		{"key, arrow moved", strings.NewReplacer("❯ No", "  No", "  Yes", "❯ Yes").Replace(key), []string{"Enter"}, []string{"Down", "Enter"}, "Detected a custom API key in your environment sk-ant-...abcdefghij0123456789"},
		{"imports", mustScreen(t, "imports.64.txt"), []string{"Down", "Enter"}, []string{"Enter"}, "Allow external CLAUDE.md file imports? /srv/dev/out/ext.md"},
		{"key with a third option", strings.Replace(key, "    Yes\n", "    Yes, and all to come\n    Yes\n", 1), nil, nil, ""},
		{"key in other words", strings.Replace(key, "use this API key", "share this API key", 1), nil, nil, ""},
		{"key without an arrow", strings.Replace(key, "❯", " ", 1), nil, nil, ""},
		{"key in a transcript", key + mustScreen(t, "idle.64.txt"), nil, nil, ""},
		{"trust", mustScreen(t, "trust.100.txt"), nil, nil, ""},
		{"bypass", mustScreen(t, "bypass.100.txt"), nil, nil, ""},
		{"login", mustScreen(t, "login.70.txt"), nil, nil, ""},
		{"permission", mustScreen(t, "bash.64.txt"), nil, nil, ""},
	} {
		for allow, want := range map[bool][]string{true: tt.yes, false: tt.no} {
			d, ok := r.Decide(tt.screen, allow)
			if ok != (tt.text != "") || d.Text != tt.text || !slices.Equal(d.Keys, want) || ok && !r.Decidable(d.Name) {
				t.Errorf("%s: Decide(%v) = %q, %v, want %q with %q", tt.name, allow, d, ok, want, tt.text)
			}
		}
	}
}
