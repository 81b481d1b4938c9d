package claude

import (
	"path/filepath"
	"strings"

	"netsky/internal/execx"
)

// configDir returns the directory where Claude Code keeps conversations and settings.
func configDir(env []string) string {
	return ConfigDir(func(name string) string { return execx.Value(env, name) })
}

// globalConfig returns Claude Code's own file about a person.
func globalConfig(env []string) string {
	if dir := execx.Value(env, "CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Join(dir, ".claude.json")
	}
	return filepath.Join(execx.Value(env, "HOME"), ".claude.json")
}

// truthy parses a switch as Claude Code does.
func truthy(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}
