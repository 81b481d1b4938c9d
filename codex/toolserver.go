package codex

import (
	"netsky/agent"
	"netsky/home"
	"netsky/internal/execx"
)

// ToolServer returns the configuration of the thread that gives the model netsky's
// tools, and with phone those for the owner's phone. They need no approval: the agent may do
// the same with the verbs, and each tool refuses what the agent must not do. Codex starts the
// servers with an empty environment.
func ToolServer(binary string, h home.Dir, id agent.ID, environ []string, phone bool) map[string]any {
	env := map[string]any{"AGENT_N": id.N(), "NETSKY_HOME": h.Root()}
	for _, name := range []string{"NETSKY_START", "NETSKY_TMUX_SOCKET", "HOME", "PATH"} {
		if v := execx.Value(environ, name); v != "" {
			env[name] = v
		}
	}
	server := func(name string) map[string]any {
		return map[string]any{
			"command": binary, "args": []any{"io", "serve", "-s", name, "--tools-only"}, "env": env,
			"default_tools_approval_mode": "approve",
		}
	}
	servers := map[string]any{"mcp_servers.agent": server("agent")} // beside the person's own
	if phone && !id.IsClone() {
		servers["mcp_servers.imessage"] = server("imessage")
	}
	return servers
}
