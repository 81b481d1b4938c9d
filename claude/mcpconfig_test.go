package claude_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/internal/testworld"
)

func (g *rig) servers(id agent.ID) map[string]any {
	g.Helper()
	servers, ok := g.read(id, "mcp-config.json")["mcpServers"].(map[string]any)
	if !ok {
		g.Fatal("no mcpServers")
	}
	return servers
}

// TestServers gives every agent the bus, and iMessage to agent0 and
// agentinfinity alone, where it is enabled.
func TestServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		agent    agent.ID
		n        string
		imessage bool
		want     string
	}{
		{"agent3", "3", false, "agent"},
		{"agent3", "3", true, "agent"},
		{agent.Root, "0", false, "agent"},
		{agent.Root, "0", true, "agent imessage"},
		{agent.Infinity, "infinity", false, "agent"},
		{agent.Infinity, "infinity", true, "agent imessage"},
	} {
		g := mustRig(t)
		g.mustFake("2.1.329", loggedIn)
		g.options.IMessage = tt.imessage
		l := g.mustPrepare(tt.agent)
		servers := g.servers(tt.agent)
		testworld.Equal(t, strings.Join(slices.Sorted(maps.Keys(servers)), " "), tt.want, "%s has", tt.agent)
		for name, s := range servers {
			s := s.(map[string]any)
			env := s["env"].(map[string]any)
			if s["command"] != "/opt/net sky/netsky" || !slices.Equal(s["args"].([]any), []any{"io", "serve", "-s", name}) {
				t.Errorf("%s: %v", name, s)
			}
			if env["AGENT_N"] != tt.n || env["NETSKY_HOME"] != g.home.Root() || env["NETSKY_START"] != l.Start || env["NETSKY_PROMPT_FILE"] != l.PromptFile {
				t.Errorf("%s: env %v", name, env)
			}
		}
	}
}

// TestLetThrough finds the person's servers where Claude Code keeps them.
func TestLetThrough(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	g.mustFake("2.1.329", loggedIn)
	sub := filepath.Join(g.work, "sub", "dir")
	testworld.Must(t, os.MkdirAll(sub, 0o700))
	testworld.Must(t, os.Mkdir(filepath.Join(g.work, ".git"), 0o700))
	worktree := filepath.Join(g.home.Root(), "workspaces", "wt")
	g.mustWrite(filepath.Join(worktree, ".git"), "gitdir: "+g.work+"/.git/worktrees/wt\n")
	g.mustWrite(filepath.Join(g.config, ".claude.json"), `{
		"mcpServers": {"everywhere": {"command": "e", "env": {"KEY": "${KEY}"}, "odd": 1e400}, "both": {"command": "mine"}, "narrower": {"command": "wide"}, "agent": {"command": "evil"}},
		"projects": {
			"`+g.work+`": {"mcpServers": {"local": {"type": "http", "url": "https://x"}, "narrower": {"command": "narrow"}}},
			"`+sub+`": {"mcpServers": {"subdirectory": {"command": "s"}}}
		}
	}`)
	g.mustWrite(filepath.Join(g.work, ".mcp.json"), `{"mcpServers": {"project": {"command": "p"}, "both": {"command": "repository"}, "near": {"command": "far"}}}`)
	g.mustWrite(filepath.Join(sub, ".mcp.json"), `{"mcpServers": {"near": {"command": "near"}}}`)

	g.options.MCP = []string{"everywhere", "both", "local", "project", "near", "narrower"}
	in := func(dir string) agent.Launch {
		l := g.launch("agent3")
		l.Dir = dir
		return l
	}
	l := in(sub)
	testworld.Must(t, g.runtime.Prepare(g.ctx, &l))
	servers := g.servers("agent3")
	for name, want := range map[string]string{"everywhere": "e", "both": "mine", "project": "p", "near": "near", "narrower": "narrow", "agent": "/opt/net sky/netsky"} {
		testworld.Equal[any](t, servers[name].(map[string]any)["command"], want, "%s", name)
	}
	if servers["local"].(map[string]any)["url"] != "https://x" || len(servers) != 7 {
		t.Errorf("servers = %v", servers)
	}
	data, _ := g.home.ReadFile("channels/agent/agent3/mcp-config.json", 1<<20)
	testworld.Contains(t, string(data), `"${KEY}"`, "an entry was not copied as it is: %s", data)

	g.options.MCP = []string{"local"}
	for dir, want := range map[string]string{
		sub:      "agent both everywhere narrower near project",
		worktree: "agent both everywhere narrower",
		g.bin:    "agent both everywhere narrower",
	} {
		testworld.Equal(t, strings.Join(g.runtime.LeftOut(in(dir)), " "), want, "LeftOut in %s", dir)
	}
	testworld.Equal(t, g.runtime.Check(g.ctx, in(worktree)), nil, "Check in a worktree")
	mustMention(t, "Check elsewhere", g.runtime.Check(g.ctx, in(g.bin)), `mcp server "local": not in`)
}

// TestServersDamaged names the file that nobody can read a server from.
func TestServersDamaged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, text, want string }{
		"syntax":   {"work/.mcp.json", `{"mcpServers"}`, ".mcp.json:1:14: "},
		"servers":  {"work/.mcp.json", `{"mcpServers": []}`, ".mcp.json: mcpServers: not an object"},
		"global":   {"config/.claude.json", `{"mcpServers": 1}`, ".claude.json: mcpServers: not an object"},
		"projects": {"config/.claude.json", `{"projects": 1}`, ".claude.json: projects: not an object"},
	} {
		g := mustRig(t)
		g.mustFake("2.1.329", loggedIn)
		g.options = claude.Options{MCP: []string{"x"}}
		g.mustWrite(filepath.Join(filepath.Dir(g.work), tt.file), tt.text)
		mustMention(t, name, g.runtime.Check(g.ctx, g.launch("agent3")), tt.want)
		l := g.launch("agent3")
		mustMention(t, name, g.runtime.Prepare(g.ctx, &l), tt.want)
		if got := g.runtime.LeftOut(l); got != nil {
			t.Errorf("%s: LeftOut = %q", name, got)
		}
	}
}
