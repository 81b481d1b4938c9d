package codex

import (
	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/program"
)

// ToolServer returns the configuration of the thread that gives the model netsky's
// tools. They need no approval: the agent may do the same with the verbs, and each tool
// refuses what the agent must not do. Codex starts the server with an empty
// environment.
func ToolServer(binary string, h home.Dir, id agent.ID, environ []string) map[string]any {
	env := map[string]any{"AGENT_N": id.N(), "NETSKY_HOME": h.Root()}
	for _, name := range []string{"NETSKY_START", "NETSKY_TMUX_SOCKET", "HOME", "PATH"} {
		if v := program.Value(environ, name); v != "" {
			env[name] = v
		}
	}
	return map[string]any{"mcp_servers.agent": map[string]any{ // beside the person's own
		"command": binary, "args": []any{"io", "serve", "-s", "agent", "--tools-only"}, "env": env,
		"default_tools_approval_mode": "approve",
	}}
}
