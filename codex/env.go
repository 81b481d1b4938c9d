package codex

import (
	"netsky/agent"
	"netsky/home"
	"netsky/internal/execx"
)

func getenv(env []string, name string) string { return execx.Value(env, name) }

// childEnv returns the environment of the agent's Codex: the current one, without what
// belongs to other agents and to the terminal, and with the agent's name, which the
// model's commands inherit.
func childEnv(env []string, id agent.ID, home home.Dir) []string {
	env = execx.Without(execx.Clean(env), "AGENT_N", "NETSKY_HOME", "NETSKY_PROMPT_FILE", envModel, "STY", "TMUX*")
	return append(env, "AGENT_N="+id.N(), "NETSKY_HOME="+home.Root())
}
