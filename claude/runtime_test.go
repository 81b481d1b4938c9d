package claude_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/home"
	"netsky/internal/testworld"
)

// TestArgv holds the command lines of each kind of agent, by release. H is the
// home, B the directory of the program, S the conversation.
func TestArgv(t *testing.T) {
	t.Parallel()
	files := func(id string) string {
		return "--mcp-config H/channels/agent/" + id + "/mcp-config.json --strict-mcp-config --settings H/channels/agent/" + id + "/settings.json "
	}
	prompt := func(id string) string { return "--append-system-prompt-file H/state/prompts/" + id + ".md " }
	for _, tt := range []struct {
		name    string
		agent   agent.ID
		version string
		options claude.Options
		want    string
	}{
		{"a clone", "agent3", "2.1.329", claude.Options{Mode: "bypassPermissions"},
			files("agent3") + prompt("agent3") + "--system-prompt-snapshot off --session-id S --permission-mode bypassPermissions --name agent3"},
		{"root", agent.Root, "2.1.329", claude.Options{Mode: "acceptEdits", IMessage: true},
			files("agent0") + prompt("agent0") + "--system-prompt-snapshot off --session-id S --permission-mode acceptEdits --name agent0"},
		{"infinity", agent.Infinity, "2.1.329", claude.Options{Mode: "plan"},
			files("agentinfinity") + prompt("agentinfinity") + "--system-prompt-snapshot off --session-id S --permission-mode plan --name agentinfinity"},
		{"no mode", "agent1", "2.1.329", claude.Options{},
			files("agent1") + prompt("agent1") + "--system-prompt-snapshot off --session-id S --permission-mode manual --name agent1"},
		{"all options", "agent1", "2.1.329", claude.Options{Mode: "auto", Model: "opus", Effort: "high", Delivery: "channel"},
			files("agent1") + prompt("agent1") + "--system-prompt-snapshot off --session-id S --permission-mode auto --model opus --effort high --name agent1 --dangerously-load-development-channels server:agent"},
		{"delivery is ours", "agent1", "2.1.329", claude.Options{Delivery: "auto"},
			files("agent1") + prompt("agent1") + "--system-prompt-snapshot off --session-id S --permission-mode manual --name agent1"},
		{"before the snapshot", "agent1", "2.1.256", claude.Options{},
			files("agent1") + prompt("agent1") + "--session-id S --permission-mode manual --name agent1"},
		{"before manual", "agent1", "2.1.199", claude.Options{Mode: "manual"},
			files("agent1") + prompt("agent1") + "--session-id S --permission-mode default --name agent1"},
		{"before names", "agent1", "2.1.75", claude.Options{Mode: "dontAsk"},
			files("agent1") + prompt("agent1") + "--session-id S --permission-mode dontAsk"},
		{"first with a prompt's file", "agent1", "2.0.33", claude.Options{},
			files("agent1") + prompt("agent1") + "--session-id S --permission-mode default"},
		{"without a prompt's file", "agent1", "2.0.32", claude.Options{},
			files("agent1") + "--append-system-prompt You are agent1.\n --session-id S --permission-mode default"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := mustRig(t)
			g.mustFake(tt.version, loggedIn)
			g.options = tt.options
			l := g.mustPrepare(tt.agent)
			testworld.Equal(t, l.Argv[0], filepath.Join(g.bin, "claude"), "the program")
			got := strings.Join(l.Argv[1:], " ")
			got = strings.NewReplacer(g.home.Root(), "H", word(l.Argv, "--session-id"), "S").Replace(got)
			testworld.Equal(t, got, tt.want, "Argv")
			testworld.Equal(t, l.Resume, "", "Resume")
		})
	}
}

func TestPrepareFiles(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	g.mustFake("2.1.329", loggedIn)
	g.mustPrepare("agent3")
	for _, name := range []string{"mcp-config.json", "settings.json"} {
		info, err := os.Lstat(g.home.Path(home.Mailbox("agent3"), name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	testworld.Equal(t, g.runs(), "--version\n", "Prepare ran claude with")
}

// TestPrepareOptions refuses what would end Claude Code, or make it another.
func TestPrepareOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options claude.Options
		want    string
	}{
		{"mode", claude.Options{Mode: "yolo"}, `permission mode "yolo"`},
		{"mode that is an option", claude.Options{Mode: "--print"}, "permission mode"},
		{"effort", claude.Options{Effort: "most"}, `effort "most"`},
		{"model", claude.Options{Model: "--print"}, `model "--print"`},
		{"settings", claude.Options{Settings: "x.json"}, `settings "x.json": not an absolute path`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := mustRig(t)
			g.mustFake("2.1.329", loggedIn)
			g.options = tt.options
			l := g.launch("agent1")
			mustMention(t, "Prepare", g.runtime.Prepare(g.ctx, &l), tt.want)
			mustMention(t, "Check", g.runtime.Check(g.ctx, l), tt.want)
		})
	}
}

func TestPromptTooLong(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	g.mustFake("2.0.32", loggedIn)
	l := g.launch("agent1")
	for size, want := range map[int]string{128<<10 - 1: "", 128 << 10: "prompt of agent1: 131072 bytes"} {
		testworld.Must(t, g.home.WriteFile(home.PromptFile("agent1"), []byte(strings.Repeat("x", size)), false))
		err := g.runtime.Prepare(g.ctx, &l)
		if want == "" {
			testworld.Equal(t, err, nil, "Prepare with %d bytes", size)
			continue
		}
		mustMention(t, "Prepare", err, want)
	}
}

// TestEnvironment keeps all that the user has set.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	g.mustFake("2.1.329", loggedIn)
	mine := []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=9", "ENABLE_TOOL_SEARCH=true", "NETSKY_START=x"}
	theirs := []string{"CLAUDE_PROJECT_DIR=/p", "CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=s", "CLAUDE_CODE_MESSAGING_SOCKET=/s", "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS=s"}
	before := slices.Clone(g.env)
	g.env = slices.Concat(g.env, mine, theirs)
	l := g.mustPrepare("agent1")
	if want := append(before, mine...); !slices.Equal(l.Env, want) {
		t.Errorf("Env = %q\nwant %q", l.Env, want)
	}
}

// TestPrepareMany prepares several agents at a time, as up does.
func TestPrepareMany(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	g.mustFake("2.1.329", loggedIn)
	var wg sync.WaitGroup
	sessions := make([]string, 20)
	for i := range sessions {
		l := g.launch(agent.Clone(i + 1))
		wg.Go(func() {
			if err := g.runtime.Check(g.ctx, l); err != nil {
				t.Error(err)
			}
			if err := g.runtime.Prepare(g.ctx, &l); err != nil {
				t.Error(err)
			}
			sessions[i] = word(l.Argv, "--session-id")
		})
	}
	wg.Wait()
	slices.Sort(sessions)
	testworld.Equal(t, len(slices.Compact(sessions)), 20, "two agents share a conversation: %q", sessions)
	if got := strings.Count(g.runs(), "\n"); got != 2 {
		t.Errorf("claude was asked %d times: %q", got, g.runs())
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	other := filepath.Join(g.work, "claude")
	if err := os.Mkdir(other, 0o700); err != nil { // a directory of that name is no program
		t.Fatal(err)
	}
	g.mustWrite(filepath.Join(g.config, "claude"), "no program")
	g.mustFake("2.1.329", loggedIn)
	got, err := claude.Find("bin:" + g.work + ":" + g.config + ":/nowhere:" + g.bin)
	if want := filepath.Join(g.bin, "claude"); got != want || err != nil {
		t.Errorf("Find = %q, %v, want %q", got, err, want)
	}
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"2.1.329 (Claude Code)\n", "2.1.329"},
		{"1.0.62", "1.0.62"},
		{"2.1.400-beta.1 (Claude Code)", "2.1.400"},
		{"", ""}, {"(Claude Code)", ""}, {"2.1", ""}, {"-2.1.3", ""}, {strings.Repeat("x", 200), ""},
	} {
		v, err := claude.ParseVersion(tt.text)
		if tt.want == "" && err == nil || tt.want != "" && (err != nil || v.String() != tt.want) {
			t.Errorf("ParseVersion(%q) = %v, %v, want %q", tt.text, v, err, tt.want)
		}
	}
	list := []claude.Version{{1, 0, 128}, {2, 0, 9}, {2, 0, 10}, {2, 1, 0}, {10, 0, 0}}
	for i, v := range list {
		for j, w := range list {
			testworld.Equal(t, v.Before(w), i < j, "%v.Before(%v)", v, w)
		}
	}
}

// TestPrepareUntested: the launch says which release it is, unless that is the tested one.
func TestPrepareUntested(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{claude.Tested.String(): "", "99.1.2": "Claude Code 99.1.2, which is newer than the ", "2.1.300": "Claude Code 2.1.300, which is older than the "} {
		g := mustRig(t)
		g.mustFake(version, loggedIn)
		got := g.mustPrepare("agent1").Untested
		if want != "" {
			want += claude.Tested.String() + " that netsky was tested with"
		}
		testworld.Equal(t, got, want, "%s", version)
	}
}
