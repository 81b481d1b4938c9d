package codex

import (
	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/program"
)

// ToolServer is the thread's configuration that gives the model netsky's tools.
// They ask nobody: what they do, the agent may do by the verbs as well, and each
// refuses what is not the agent's to do. Codex starts the server with an empty
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
