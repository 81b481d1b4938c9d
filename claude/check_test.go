package claude_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"netsky/claude"
	"netsky/internal/testworld"
)

const notLoggedIn = `echo '{"loggedIn": false}'; exit 1`

func TestCheckLogin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		env      []string
		auth     string
		settings string // of [claude]
		want     error
		asks     bool // Claude Code itself
	}{
		{"as it says", nil, loggedIn, "", nil, true},
		{"as it denies", nil, notLoggedIn, "", claude.ErrLogin, true},
		{"key", []string{"ANTHROPIC_API_KEY=k"}, notLoggedIn, "", nil, false},
		{"empty key", []string{"ANTHROPIC_API_KEY="}, notLoggedIn, "", claude.ErrLogin, true},
		{"token", []string{"ANTHROPIC_AUTH_TOKEN=k"}, notLoggedIn, "", nil, false},
		{"long-lived token", []string{"CLAUDE_CODE_OAUTH_TOKEN=k"}, notLoggedIn, "", nil, false},
		{"own base", []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:1"}, notLoggedIn, "", nil, false},
		{"their base", []string{"ANTHROPIC_BASE_URL=https://api.anthropic.com"}, notLoggedIn, "", claude.ErrLogin, true},
		{"no base", []string{"ANTHROPIC_BASE_URL=zzz"}, notLoggedIn, "", claude.ErrLogin, true},
		{"bedrock", []string{"CLAUDE_CODE_USE_BEDROCK=1"}, notLoggedIn, "", nil, false},
		{"another switch", []string{"CLAUDE_CODE_USE_POWERSHELL_TOOL=1"}, notLoggedIn, "", claude.ErrLogin, true},
		{"no vertex", []string{"CLAUDE_CODE_USE_VERTEX=0"}, notLoggedIn, "", claude.ErrLogin, true},
		{"helper", nil, notLoggedIn, `{"apiKeyHelper": "echo k"}`, nil, false},
		{"key in settings", nil, notLoggedIn, `{"env": {"ANTHROPIC_API_KEY": "k"}}`, nil, false},
		{"nothing in settings", nil, notLoggedIn, `{"env": {"X": 1}, "apiKeyHelper": 7}`, claude.ErrLogin, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := mustRig(t)
			g.mustFake("2.1.329", tt.auth)
			g.env = append(g.env, tt.env...)
			if tt.settings != "" {
				g.options.Settings = filepath.Join(g.work, "s.json")
				g.mustWrite(g.options.Settings, tt.settings)
			}
			if err := g.runtime.Check(g.ctx, g.launch("agent1")); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("Check = %v, want %v", err, tt.want)
			}
			if got := strings.Contains(g.runs(), "auth status"); got != tt.asks {
				t.Errorf("runs = %q, want asked %v", g.runs(), tt.asks)
			}
		})
	}
}

// TestCheckNeverUsed asks no Claude Code that nobody has ever used for its login: it
// would make files of its own for the answer.
func TestCheckNeverUsed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		env  []string
		file string // in the person's home
		asks bool
	}{
		{"never", nil, "", runtime.GOOS == "darwin"}, // whose keychain may know
		{"with its file", nil, ".claude.json", true},
		{"with its directory", nil, ".claude/x", true},
		{"with the work's settings", nil, "work/.claude/settings.json", true},
		{"with a profile", nil, ".config/anthropic/x", true},
		{"with something in the environment", []string{"CLAUDE_CODE_X=1"}, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := mustRig(t)
			g.mustFake("2.1.329", notLoggedIn)
			root := filepath.Dir(g.work)
			g.env = append([]string{"PATH=" + g.bin + ":/usr/bin:/bin", "HOME=" + root}, tt.env...)
			if tt.file != "" {
				file := filepath.Join(root, tt.file)
				testworld.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
				g.mustWrite(file, "{}")
			}
			testworld.ErrorIs(t, g.runtime.Check(g.ctx, g.launch("agent1")), claude.ErrLogin, "Check")
			if got := strings.Contains(g.runs(), "auth status"); got != tt.asks {
				t.Errorf("runs = %q, want asked %v", g.runs(), tt.asks)
			}
		})
	}
}

// TestCheckOldLogin never lets an old release take "auth status" for a prompt.
func TestCheckOldLogin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, file, text string
		want             error
	}{
		{"none", "", "", claude.ErrLogin},
		{"credentials", ".credentials.json", "{}", nil},
		{"key", ".claude.json", `{"primaryApiKey": "k"}`, nil},
		{"account", ".claude.json", `{"oauthAccount": {}}`, nil},
		{"neither", ".claude.json", `{"projects": {}}`, claude.ErrLogin},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := mustRig(t)
			g.mustFake("2.1.39", "exit 9")
			if tt.file != "" {
				g.mustWrite(filepath.Join(g.config, tt.file), tt.text)
			}
			if err := g.runtime.Check(g.ctx, g.launch("agent1")); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("Check = %v, want %v", err, tt.want)
			}
			testworld.Equal(t, g.runs(), "--version\n", "runs")
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		version string
		auth    string
		options claude.Options
		edit    func(*rig)
		words   []string // of the error; none: there is none
		is      error
	}{
		{name: "well", version: "2.1.329"},
		{name: "oldest", version: "1.0.62", edit: func(g *rig) { g.env = append(g.env, "ANTHROPIC_API_KEY=k") }},
		{name: "old", version: "1.0.61", is: claude.ErrOld, words: []string{"1.0.61"}},
		{name: "not a version", version: "zzz", words: []string{`"zzz (Claude Code)`, "not a version"}},
		{name: "missing", is: claude.ErrMissing, edit: func(g *rig) { os.Remove(filepath.Join(g.bin, "claude")) }},
		{name: "does not run", edit: func(g *rig) { g.mustWrite(filepath.Join(g.bin, "claude"), "#!/nonexistent\n") }, words: []string{"claude --version"}},
		{name: "says nothing of a login", version: "2.1.329", auth: "echo '\x1b[31mwhat?'; exit 3", words: []string{"claude auth status", "exit status 3"}},
		{name: "answers something else", version: "2.1.329", auth: "echo '{}'", words: []string{"claude auth status", "{}"}},
		{name: "bypass as root", version: "2.1.329", options: claude.Options{Mode: "bypassPermissions"}, is: claude.ErrRoot},
		{name: "bypass as root, almost", version: "2.1.329", options: claude.Options{Mode: "bypassPermissions"}, is: claude.ErrRoot,
			edit: func(g *rig) { g.env = append(g.env, "IS_SANDBOX=yes") }},
		{name: "bypass in a sandbox", version: "2.1.329", options: claude.Options{Mode: "bypassPermissions"},
			edit: func(g *rig) { g.env = append(g.env, "IS_SANDBOX=1") }},
		{name: "other mode as root", version: "2.1.329", options: claude.Options{Mode: "acceptEdits"}},
		{name: "effort too early", version: "2.1.37", options: claude.Options{Effort: "low"}, words: []string{"effort low", "2.1.37", "2.1.38"}},
		{name: "channel too early", version: "2.1.79", options: claude.Options{Delivery: "channel"}, words: []string{"channel", "2.1.80"}},
		{name: "mode too early", version: "2.1.70", options: claude.Options{Mode: "auto"}, words: []string{"auto", "2.1.71"}},
		{name: "no such settings", version: "2.1.329", options: claude.Options{Settings: "/nowhere/s.json"}, words: []string{"settings: ", "/nowhere/s.json", "no such file"}},
		{name: "broken settings", version: "2.1.329", edit: func(g *rig) {
			g.options.Settings = filepath.Join(g.work, "s.json")
			g.mustWrite(g.options.Settings, "{\n  \"a\": tru,\n}")
		}, words: []string{"s.json:2:11: "}},
		{name: "settings cut short", version: "2.1.329", edit: func(g *rig) {
			g.options.Settings = filepath.Join(g.work, "s.json")
			g.mustWrite(g.options.Settings, "{\n  \"a\": 1")
		}, words: []string{"s.json:2:8: "}},
		{name: "settings of another kind", version: "2.1.329", edit: func(g *rig) {
			g.options.Settings = filepath.Join(g.work, "s.json")
			g.mustWrite(g.options.Settings, "[1]")
		}, words: []string{"s.json:1:1: not a JSON object"}},
		{name: "settings that are a directory", version: "2.1.329", edit: func(g *rig) { g.options.Settings = g.work }, words: []string{"not a regular file"}},
		{name: "hooks of another kind", version: "2.1.329", edit: func(g *rig) {
			g.options.Settings = filepath.Join(g.work, "s.json")
			g.mustWrite(g.options.Settings, `{"hooks": {"Stop": {}}}`)
		}, words: []string{"s.json: hooks.Stop: not a list"}},
		{name: "no hooks at all", version: "2.1.329", edit: func(g *rig) {
			g.options.Settings = filepath.Join(g.work, "s.json")
			g.mustWrite(g.options.Settings, `{"disableAllHooks": true}`)
		}, words: []string{"s.json: disableAllHooks"}},
		{name: "person's settings broken", version: "2.1.329", edit: func(g *rig) { g.mustWrite(filepath.Join(g.config, "settings.json"), "{ // no\n}") },
			words: []string{"config/settings.json:1:3: "}},
		{name: "person's settings empty", version: "2.1.329", edit: func(g *rig) { g.mustWrite(filepath.Join(g.config, "settings.json"), "\n") }},
		{name: "person's settings with a mark", version: "2.1.329", edit: func(g *rig) { g.mustWrite(filepath.Join(g.config, "settings.json"), "\ufeff{}") }},
		{name: "person without hooks", version: "2.1.329", edit: func(g *rig) { g.mustWrite(filepath.Join(g.config, "settings.json"), `{"disableAllHooks": true}`) },
			words: []string{"config/settings.json: disableAllHooks"}},
		{name: "project's settings broken", version: "2.1.329", edit: func(g *rig) { g.mustWrite(filepath.Join(g.work, ".claude/settings.local.json"), "x") },
			words: []string{"settings.local.json:1:1: "}},
		{name: "bypass ruled out", version: "2.1.329", options: claude.Options{Mode: "bypassPermissions"}, edit: func(g *rig) {
			g.env = append(g.env, "IS_SANDBOX=1")
			g.mustWrite(filepath.Join(g.work, ".claude/settings.json"), `{"permissions": {"disableBypassPermissionsMode": "disable"}}`)
		}, words: []string{".claude/settings.json: permissions.disableBypassPermissionsMode"}},
		{name: "bypass ruled out, not wanted", version: "2.1.329", edit: func(g *rig) {
			g.mustWrite(filepath.Join(g.work, ".claude/settings.json"), `{"permissions": {"disableBypassPermissionsMode": "disable"}}`)
		}},
		{name: "auto ruled out", version: "2.1.329", options: claude.Options{Mode: "auto"}, edit: func(g *rig) {
			g.mustWrite(filepath.Join(g.config, "settings.json"), `{"disableAutoMode": "disable"}`)
		}, words: []string{"settings.json: disableAutoMode"}},
		{name: "Claude's own file broken", version: "2.1.329", edit: func(g *rig) { g.mustWrite(filepath.Join(g.config, ".claude.json"), `{"a":`) },
			words: []string{".claude.json:1:5: "}},
		{name: "unknown server", version: "2.1.329", options: claude.Options{MCP: []string{"github"}}, words: []string{`"github"`, "config/.claude.json", "work/.mcp.json"}},
		{name: "server of our name", version: "2.1.329", options: claude.Options{MCP: []string{"agent"}}, words: []string{`"agent"`, "the name is reserved for netsky"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if errors.Is(tt.is, claude.ErrRoot) && os.Geteuid() != 0 {
				t.Skip("only root is refused")
			}
			g := mustRig(t)
			auth := loggedIn
			if tt.auth != "" {
				auth = tt.auth
			}
			g.mustFake(tt.version, auth)
			g.options = tt.options
			if tt.edit != nil {
				tt.edit(g)
			}
			err := g.runtime.Check(g.ctx, g.launch("agent1"))
			if tt.is == nil && len(tt.words) == 0 {
				testworld.Equal(t, err, nil, "Check")
				return
			}
			mustMention(t, "Check", err, tt.words...)
			if !errors.Is(err, tt.is) && tt.is != nil {
				t.Errorf("Check = %v, want %v", err, tt.is)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\x1b\x00") {
				t.Errorf("Check = %q, with control characters", err)
			}
			if g.home.Remove("state/claude/agent1.json"); strings.Contains(g.runs(), "-p") {
				t.Errorf("runs = %q", g.runs())
			}
		})
	}
}

// TestCheckKept asks once for many agents, and anew for another environment.
func TestCheckKept(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	g.mustFake("2.1.329", notLoggedIn)
	for range 3 {
		if err := g.runtime.Check(g.ctx, g.launch("agent1")); !errors.Is(err, claude.ErrLogin) {
			t.Fatalf("Check = %v", err)
		}
	}
	testworld.Equal(t, g.runs(), "--version\nauth status --json\n", "runs")
	g.env = append(g.env, "ANTHROPIC_API_KEY=k")
	testworld.Equal(t, g.runtime.Check(g.ctx, g.launch("agent1")), nil, "Check with a key")
}

// TestCheckHangs ends a question that is not answered.
func TestCheckHangs(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	g.mustFake("2.1.329", "exec sleep 1000")
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	go func() {
		testworld.Until(func() bool { return strings.Contains(g.runs(), "auth status") })
		cancel()
	}()
	err := g.runtime.Check(ctx, g.launch("agent1"))
	mustMention(t, "Check", err, "claude auth status")
	testworld.ErrorIs(t, err, context.Canceled, "Check")
}
