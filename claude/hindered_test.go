package claude_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/internal/advice"
	"netsky/internal/testworld"
)

// TestCheckHindered refuses, with the file and the key, what would leave an agent without
// netsky's MCP server or hooks, as Claude Code 2.1.332 was seen to.
func TestCheckHindered(t *testing.T) {
	t.Parallel()
	const (
		own     = `["/opt/net sky/netsky", "io", "serve", "-s", "agent"]`
		user    = "config/settings.json"
		project = "work/.claude/settings.json"
		ruled   = "managed/managed-settings.json"
	)
	for _, tt := range []struct {
		name  string
		files map[string]string // below the rig's top
		env   string
		agent agent.ID
		words string // in the error, by spaces; "" is none
		do    string // in the advice
	}{
		{name: "denied by name", files: map[string]string{user: `{"deniedMcpServers": [{"serverName": "agent"}]}`}, words: user + " deniedMcpServers", do: "remove"},
		{name: "denied by command", files: map[string]string{project: `{"deniedMcpServers": [7, {"serverCommand": ` + own + `}]}`}, words: project + " deniedMcpServers"},
		{name: "denied by a part", files: map[string]string{"managed/managed-settings.d/10.json": `{"deniedMcpServers": [{"serverName": "agent"}]}`}, words: "settings.d/10.json deniedMcpServers"},
		{name: "others denied", files: map[string]string{user: `{"deniedMcpServers": [{"serverName": "x"}, {"serverCommand": ["/opt/net sky/netsky"]}]}`}},
		{name: "none allowed", files: map[string]string{user: `{"allowedMcpServers": []}`}, words: user + " allowedMcpServers", do: `{"serverName":"agent"}`},
		{name: "another allowed", files: map[string]string{project: `{"allowedMcpServers": [{"serverName": "x"}]}`}, words: project + " allowedMcpServers"},
		{name: "allowed by name", files: map[string]string{user: `{"allowedMcpServers": [{"serverName": "agent"}]}`}},
		{name: "allowed by another file", files: map[string]string{ruled: `{"allowedMcpServers": [{"serverName": "x"}]}`, user: `{"allowedMcpServers": [{"serverName": "agent"}]}`}},
		{name: "allowed by the administrator only", files: map[string]string{
			ruled: `{"allowedMcpServers": [{"serverName": "x"}], "allowManagedMcpServersOnly": true}`, user: `{"allowedMcpServers": [{"serverName": "agent"}]}`,
		}, words: ruled + " allowedMcpServers"},
		{name: "all allowed by the administrator", files: map[string]string{ruled: `{"allowManagedMcpServersOnly": true}`, user: `{"allowedMcpServers": []}`}},
		{name: "a name among commands", files: map[string]string{user: `{"allowedMcpServers": [{"serverName": "agent"}, {"serverCommand": ["x"]}]}`},
			words: user + " allowedMcpServers", do: `{"serverCommand":["/opt/net sky/netsky","io","serve","-s","agent"]}`},
		{name: "allowed by command", files: map[string]string{user: `{"allowedMcpServers": [{"serverCommand": ["${NOWHERE:-/opt/net sky}/netsky", "io", "serve", "-s", "agent"]}]}`}},
		{name: "the phone's server", agent: agent.Root, files: map[string]string{user: `{"deniedMcpServers": [{"serverName": "imessage"}]}`}, words: `"imessage"`},
		{name: "the phone's server, of a clone", files: map[string]string{user: `{"deniedMcpServers": [{"serverName": "imessage"}]}`}},
		{name: "the administrator's set", files: map[string]string{"managed/managed-mcp.json": `{"mcpServers": {}}`}, words: "managed/managed-mcp.json"},
		{name: "turned off", files: map[string]string{"config/.claude.json": `{"projects": {"WORK": {"disabledMcpServers": ["agent"]}}}`}, words: ".claude.json disabledMcpServers", do: "/mcp"},
		{name: "turned off elsewhere", files: map[string]string{"config/.claude.json": `{"projects": {"/": {"disabledMcpServers": ["agent"]}}}`}},
		{name: "a repository's servers", files: map[string]string{user: `{"disabledMcpjsonServers": ["agent"], "enabledMcpjsonServers": []}`}},
		{name: "bare", env: "CLAUDE_CODE_SIMPLE=1", words: "environment CLAUDE_CODE_SIMPLE", do: "unset CLAUDE_CODE_SIMPLE"},
		{name: "safe mode", env: "CLAUDE_CODE_SAFE_MODE=true", words: "environment CLAUDE_CODE_SAFE_MODE"},
		{name: "restricted", env: "CLAUDE_CODE_RESTRICTED=on", words: "environment CLAUDE_CODE_RESTRICTED"},
		{name: "not bare", env: "CLAUDE_CODE_SIMPLE=0"},
		{name: "bare by settings", files: map[string]string{user: `{"env": {"CLAUDE_CODE_SIMPLE": "1"}}`}, words: user + " env.CLAUDE_CODE_SIMPLE"},
		{name: "bare by a repository", files: map[string]string{project: `{"env": {"CLAUDE_CODE_SIMPLE": "1"}}`}},
		{name: "plugins' hooks only", files: map[string]string{ruled: `{"strictPluginOnlyCustomization": ["hooks"]}`}, words: ruled + " strictPluginOnlyCustomization"},
		{name: "plugins' servers only", files: map[string]string{ruled: `{"strictPluginOnlyCustomization": ["mcp"]}`}},
		{name: "the administrator's hooks only", files: map[string]string{"managed/managed-settings.d/1.json": `{"allowManagedHooksOnly": true}`}, words: "settings.d/1.json allowManagedHooksOnly"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := mustRig(t)
			g.mustFake("2.1.332", loggedIn)
			g.options.IMessage = true
			real := testworld.Got(filepath.EvalSymlinks(g.work))(t)
			for file, text := range tt.files {
				g.mustWrite(filepath.Join(filepath.Dir(g.work), file), strings.ReplaceAll(text, "WORK", real))
			}
			id := tt.agent
			if id == "" {
				id = "agent1"
			}
			l := g.launch(id)
			l.Env = append(l.Env, tt.env)
			err := g.runtime.Check(g.ctx, l)
			if tt.words == "" {
				testworld.Equal(t, err, nil, "Check")
				return
			}
			mustMention(t, "Check", err, strings.Fields(tt.words)...)
			if tt.do != "" && !strings.Contains(advice.Of(err), tt.do) {
				t.Errorf("advice = %q, want %q in it", advice.Of(err), tt.do)
			}
			if errors.Is(err, claude.ErrLogin) {
				t.Errorf("Check = %v", err)
			}
		})
	}
}
