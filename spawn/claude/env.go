package claude

import (
	"path/filepath"
	"strings"

	"netsky/agent/program"
)

// configDir is where Claude Code keeps its conversations and its settings.
func configDir(env []string) string {
	return ConfigDir(func(name string) string { return program.Value(env, name) })
}

// globalConfig is Claude Code's own file of what it knows of a person.
func globalConfig(env []string) string {
	if dir := program.Value(env, "CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Join(dir, ".claude.json")
	}
	return filepath.Join(program.Value(env, "HOME"), ".claude.json")
}

// truthy is how Claude Code reads its switches.
func truthy(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}
