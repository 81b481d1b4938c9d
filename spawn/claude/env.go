package claude

import (
	"path/filepath"
	"slices"
	"strings"
)

// getenv is a variable's value in an environment; the last one counts.
func getenv(env []string, name string) string {
	for _, e := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}

// configDir is where Claude Code keeps its conversations and its settings.
func configDir(env []string) string {
	return ConfigDir(func(name string) string { return getenv(env, name) })
}

// globalConfig is Claude Code's own file of what it knows of a person.
func globalConfig(env []string) string {
	if dir := getenv(env, "CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Join(dir, ".claude.json")
	}
	return filepath.Join(getenv(env, "HOME"), ".claude.json")
}

// truthy is how Claude Code reads its switches.
func truthy(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// cleaned is an environment without what another Claude Code says of itself to
// its children. What its user has set stays.
func cleaned(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		for _, p := range []string{
			"CLAUDE_CODE_SESSION_", "CLAUDE_CODE_CHILD_", "CLAUDE_CODE_MESSAGING_", "CLAUDE_CODE_LAUNCHED_BY_",
		} {
			if strings.HasPrefix(name, p) {
				return true
			}
		}
		switch name {
		case "CLAUDECODE", "CLAUDE_PID", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "CLAUDE_CODE_ENTRYPOINT", "AI_AGENT":
			return true
		}
		return false
	})
}
