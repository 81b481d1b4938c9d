package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/claude"
	"netsky/internal/testworld"
)

const screens = "../testdata/screens/claude"

func mustScreen(tb testing.TB, name string) string {
	tb.Helper()
	data := testworld.Got(os.ReadFile(filepath.Join(screens, name)))(tb)
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
	"key":            {Name: "custom API key", Text: "Detected a custom API key in your environment sk-ant-...abcdefghij0123456789"},
	"mcp":            {Name: "project MCP servers", Text: "2 new MCP servers found in this project"},
	"mcpone":         {Name: "project MCP servers", Text: "New MCP server found in this project: proj"},
	"autocheck":      {Name: "auto mode", Text: "Auto mode can't check actions in this session"},
	"login":          {Name: "login", Text: "Select login method"},
	"notloggedin":    {Name: "login", Text: "not logged in"},
	"offline":        {Name: "onboarding", Text: "Welcome to Claude Code v2.1.329"},
	"imports":        {Name: "external imports", Text: "Allow external CLAUDE.md file imports? /srv/dev/out/ext.md"},
	"settings":       {Name: "settings error", Text: "Settings Error"},
	"resume":         {Name: "resume", Text: "Resume session"},
	"held":           {Name: "held message", Text: "Held message from another session"},
	"plan":           {Name: "plan", Text: "Exit plan mode?"},
	"bash":           {Name: "permission", Text: "Bash command: touch /srv/dev/w/newfile"},
	"bashauto":       {Name: "permission", Text: "Bash command: touch zz"},
	"write":          {Name: "permission", Text: "Do you want to create hello.txt?"},
	"edit":           {Name: "permission", Text: "Do you want to make this edit to edit.txt?"},
	"read":           {Name: "permission", Text: "Read file: Read(/etc/hostname)"},
	"mcptool":        {Name: "permission", Text: "Tool use: agent — Reply Tool: (MCP)"},
	"webfetch":       {Name: "permission", Text: "Do you want to allow Claude to fetch this content?"},
	"tall":           {Name: "permission", Text: "Do you want to create long.txt?"},
	"hostilecommand": {Name: "permission", Text: "Do you want to proceed?"},
	"ask":            {Name: "question", Text: "Which colour do you want?"},
	"questions":      {Name: "question", Text: "Which colour do you want?"},
	"trustlow":       {Name: "workspace trust", Text: "its pane is too small to show it in full"},
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
	t.Parallel()
	files := testworld.Got(os.ReadDir(screens))(t)
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
	t.Parallel()
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
	t.Parallel()
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

// What a model says, however it looks, stands above a composer; and what it puts
// into a dialog is followed by that dialog's own menu.
func TestHostile(t *testing.T) {
	t.Parallel()
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
	files := testworld.Got(os.ReadDir(screens))(f)
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
	t.Parallel()
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
