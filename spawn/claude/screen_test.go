package claude_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/spawn/claude"
)

const screens = "testdata/screens"

func mustScreen(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(screens, name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// real are the screens of testdata, which are those of the real program, with
// the dialog in each; no name is none. A file is called after the screen and the
// width of the pane.
var real = map[string]agent.Dialog{
	"trust":      {Name: "workspace trust", Text: "/srv/dev/w"},
	"trusthooks": {Name: "workspace trust", Text: "/srv/dev/wh"},
	"trustlong": {Name: "workspace trust",
		Text: "/srv/dev/a directory with spaces and quite a long name for a project/and another long component here to force wrapping"},
	"bypass":         {Name: "bypass warning", Text: "WARNING: Claude Code running in Bypass Permissions mode"},
	"key":            {Name: "custom API key", Text: "Detected a custom API key in your environment"},
	"mcp":            {Name: "project MCP servers", Text: "2 new MCP servers found in this project"},
	"mcpone":         {Name: "project MCP servers", Text: "New MCP server found in this project: proj"},
	"autocheck":      {Name: "auto mode", Text: "Auto mode can't check actions in this session"},
	"login":          {Name: "login", Text: "Select login method"},
	"notloggedin":    {Name: "login", Text: "not logged in"},
	"offline":        {Name: "onboarding", Text: "Welcome to Claude Code v2.1.329"},
	"imports":        {Name: "external imports", Text: "Allow external CLAUDE.md file imports?"},
	"settings":       {Name: "settings error", Text: "Settings Error"},
	"resume":         {Name: "resume", Text: "Resume session"},
	"held":           {Name: "held message", Text: "Held message from another session"},
	"plan":           {Name: "plan", Text: "Exit plan mode?"},
	"bash":           {Name: "permission", Text: "Bash command"},
	"bashauto":       {Name: "permission", Text: "Bash command"},
	"write":          {Name: "permission", Text: "Do you want to create hello.txt?"},
	"edit":           {Name: "permission", Text: "Do you want to make this edit to edit.txt?"},
	"read":           {Name: "permission", Text: "Read file: Read(/etc/hostname)"},
	"mcptool":        {Name: "permission", Text: "Tool use: agent — Reply Tool: (MCP)"},
	"webfetch":       {Name: "permission", Text: "Do you want to allow Claude to fetch this content?"},
	"tall":           {Name: "permission", Text: "Do you want to create long.txt?"},
	"hostilecommand": {Name: "permission", Text: "Do you want to proceed?"},
	"ask":            {Name: "question", Text: "Which colour do you want?"},
	"questions":      {Name: "question", Text: "Which colour do you want?"},
	"trustlow":       {Name: "workspace trust", Text: "its pane is too small to show all of it"},
	"model":          {Name: "model", Text: "Select model"},
	"transcript":     {Name: "transcript", Text: "it is open"},
	"idle":           {},
	"limit":          {},
	"queued":         {},
	"shell":          {},
	"draft":          {},
	"busy":           {},
	"slash":          {},
	"hostiletext":    {},
}

func TestRecognise(t *testing.T) {
	files, err := os.ReadDir(screens)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for _, f := range files {
		name, _, _ := strings.Cut(f.Name(), ".")
		want, ok := real[name]
		if !ok {
			t.Errorf("%s: no such screen in the table", f.Name())
			continue
		}
		seen[name]++
		t.Run(f.Name(), func(t *testing.T) {
			d, ok := claude.Recognise(mustScreen(t, f.Name()))
			if d.Name != want.Name || d.Text != want.Text || ok != (want.Name != "") || d.Keys != nil {
				t.Errorf("Recognise = %q, %v, want %q", d, ok, want)
			}
		})
	}
	for name := range real {
		if seen[name] == 0 {
			t.Errorf("%s: no screen of it", name)
		}
	}
}

// Wherever it stands on a screen, and whatever is left of it by a pane that is
// too low, a dialog is never taken for none.
func TestRecognisePartly(t *testing.T) {
	for name, want := range real {
		files, err := filepath.Glob(filepath.Join(screens, name+".*.txt"))
		if err != nil || want.Name == "" || name == "notloggedin" || name == "offline" || name == "transcript" {
			continue
		}
		for _, f := range files {
			screen := mustScreen(t, filepath.Base(f))
			for _, s := range []string{
				"\n\n\n" + screen + "\n\n\n", "● I have read it.\n\n  ❯ 1. Yes\n\n" + screen, strings.ReplaceAll(screen, "\n", " \n"),
			} {
				if d, ok := claude.Recognise(s); !ok || d.Name != want.Name {
					t.Errorf("%s, moved: Recognise = %q, %v, want %q", f, d, ok, want)
				}
			}
			lines := strings.SplitAfter(strings.TrimRight(screen, "\n"), "\n")
			for n := 4; n <= min(12, len(lines)); n++ {
				cut := strings.Join(lines[len(lines)-n:], "")
				if d, ok := claude.Recognise(cut); !ok {
					t.Errorf("%s, its last %d lines: Recognise = %q, %v, want a dialog", f, n, d, ok)
				}
			}
		}
	}
}

func TestRecogniseUnknown(t *testing.T) {
	rule := strings.Repeat("─", 80)
	for _, tt := range []struct{ name, screen, want string }{
		{"menu and footer", rule + "\n  Shall the moon be painted?\n\n  ❯ 1. Yes\n    2. No\n\n  Enter to confirm · Esc to cancel\n", "Shall the moon be painted?"},
		{"footer alone", rule + "\n  Press on\n\n  Enter to continue\n", "Press on"},
		{"menu alone", rule + "\n  Colour?\n  ❯ Red\n    Blue\n", "Colour?"},
		{"below a dead composer", rule + "\n❯ \n" + rule + "\n  Really quit?\n  ❯ Yes\n    No\n  Esc to cancel\n", "Really quit?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, ok := claude.Recognise(tt.screen)
			if !ok || d.Name != "unknown dialog" || d.Text != tt.want {
				t.Errorf("Recognise = %q, %v, want unknown dialog %q", d, ok, tt.want)
			}
			if keys := claude.Answer(tt.screen, consent(t, "/srv/dev/w")); keys != nil {
				t.Errorf("Answer = %q", keys)
			}
		})
	}
	for _, s := range []string{"", "\n\n", "loading", rule, rule + "\n" + rule} {
		if d, ok := claude.Recognise(s); ok {
			t.Errorf("Recognise(%q) = %q, want none", s, d)
		}
	}
}

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
			if keys := claude.Answer(tt.screen, tt.launch); !slices.Equal(keys, tt.want) {
				t.Errorf("Answer = %q, want %q", keys, tt.want)
			}
		})
	}
	if d, ok := claude.Recognise(channelsScreen); !ok || d.Name != "development channels" {
		t.Errorf("Recognise(channels) = %q, %v", d, ok)
	}
}

// Claude shows the directory without links.
func TestAnswerLink(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	screen := strings.Replace(mustScreen(t, "trust.200.txt"), "/srv/dev/w", dir, 1)
	if keys := claude.Answer(screen, agent.Launch{Dir: link}); len(keys) != 2 {
		t.Errorf("Answer = %q, want two keys", keys)
	}
}

// A launch that implies whatever one can implies none of these.
func TestNotImplied(t *testing.T) {
	files, err := os.ReadDir(screens)
	if err != nil {
		t.Fatal(err)
	}
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

// What a model says, however it looks, stands above a composer; and what it puts
// into a dialog is followed by that dialog's own menu.
func TestHostile(t *testing.T) {
	trust, idle := mustScreen(t, "trust.100.txt"), mustScreen(t, "idle.180.txt")
	l := consent(t, "/srv/dev/w")
	indent := func(s, by string) string {
		return by + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by) + "\n"
	}
	ask := mustScreen(t, "ask.64.txt")
	for _, tt := range []struct {
		name, screen, want string
	}{
		{"said", "● " + strings.TrimLeft(indent(trust, "  "), " ") + idle, ""},
		{"in a command's output", indent(trust, "  ⎿  ") + idle, ""},
		{"in a command that waits for a yes", strings.Replace(mustScreen(t, "bash.180.txt"), " touch /srv/dev/w/newfile\n", indent(trust, " │ "), 1), "permission"},
		// The model's question begins in the first column.
		{"in a question", strings.Replace(ask, "Which colour do you want?\n", trust, 1), "workspace trust"},
		{"a composer in a question", strings.Replace(ask, "Which colour do you want?\n", strings.Repeat("─", 64)+"\n❯ \n"+strings.Repeat("─", 64)+"\n", 1), "question"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d, ok := claude.Recognise(tt.screen); d.Name != tt.want || ok != (tt.want != "") {
				t.Errorf("Recognise = %q, %v, want %q", d, ok, tt.want)
			}
			if keys := claude.Answer(tt.screen, l); keys != nil {
				t.Errorf("Answer = %q", keys)
			}
		})
	}
}

func FuzzRecognise(f *testing.F) {
	files, err := os.ReadDir(screens)
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(mustScreen(f, file.Name()), "/srv/dev/w")
	}
	f.Fuzz(func(t *testing.T, screen, dir string) {
		d, ok := claude.Recognise(screen)
		if ok == (d.Name == "") || len(d.Text) > 500 {
			t.Errorf("Recognise = %q, %v", d, ok)
		}
		keys := claude.Answer(screen, consent(t, dir))
		if keys != nil && (!ok || keys[len(keys)-1] != "Enter" || len(keys) > 2) {
			t.Errorf("Answer = %q, Recognise = %q, %v", keys, d, ok)
		}
	})
}

// However large a text, the time that it takes is bounded.
func TestRecogniseLarge(t *testing.T) {
	for _, unit := range []string{"─", "❯ ", "❯ 1. Yes\n", strings.Repeat("─", 60) + "\n", " ", "\n", "Do you want to \n"} {
		screen := strings.Repeat(unit, 1<<20/len(unit))
		begun := time.Now()
		claude.Recognise(screen)
		claude.Answer(screen, consent(t, "/x"))
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("1 MB of %.10q took %v", unit, took)
		}
	}
}
