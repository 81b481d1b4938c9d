package codex

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"netsky/agent"
	"netsky/agent/home"
)

// getenv is the last value of a name in a list of "NAME=value".
func getenv(env []string, name string) (value string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// childEnv is the environment of the agent's Codex: what we have, without what
// belongs to other agents and to the terminal, and with the agent's name, which
// the commands of the model inherit.
func childEnv(env []string, id agent.ID, home home.Dir) []string {
	out := make([]string, 0, len(env)+2)
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case name == "AGENT_N", name == "NETSKY_HOME", name == "NETSKY_PROMPT_FILE", name == EnvModel, name == "STY":
		case name == "CODEX_THREAD_ID", name == "CODEX_SESSION_ID", name == "CODEX_TOOL_CALL_ID", name == "CODEX_CI":
		case strings.HasPrefix(name, "TMUX"), strings.HasPrefix(name, "CLAUDECODE"), strings.HasPrefix(name, "CLAUDE_CODE_"):
		default:
			out = append(out, e)
		}
	}
	return append(out, "AGENT_N="+id.N(), "NETSKY_HOME="+home.Root())
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
