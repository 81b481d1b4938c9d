package codex

import (
	"encoding/json"
	"os"
	"path/filepath"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/program"
)

func getenv(env []string, name string) string { return program.Value(env, name) }

// childEnv is the environment of the agent's Codex: what we have, without what
// belongs to other agents and to the terminal, and with the agent's name, which
// the commands of the model inherit.
func childEnv(env []string, id agent.ID, home home.Dir) []string {
	env = program.Without(program.Clean(env), "AGENT_N", "NETSKY_HOME", "NETSKY_PROMPT_FILE", EnvModel, "STY", "TMUX*")
	return append(env, "AGENT_N="+id.N(), "NETSKY_HOME="+home.Root())
}

// Trust is configuration for a server whose threads may write in dir. Codex
// itself trusts such a repository and writes that into the person's config.toml;
// told beforehand, and for its own life only, it writes nothing.
func Trust(dir, sandbox string) []string {
	if sandbox != "danger-full-access" && sandbox != "workspace-write" {
		return nil
	}
	root := dir
	for d := dir; ; {
		if _, err := os.Stat(filepath.Join(d, ".git")); err == nil {
			root = d
			break
		}
		up := filepath.Dir(d)
		if up == d {
			break
		}
		d = up
	}
	key, err := json.Marshal(root) // which TOML reads as the same string
	if err != nil {
		return nil
	}
	return []string{"projects={" + string(key) + `={trust_level="trusted"}}`}
}
