package execx

import (
	"slices"
	"strings"
)

// Value returns the last value of a name in a list of "NAME=value", which is the one
// that a program sees.
func Value(env []string, name string) string {
	for _, e := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}

// Without returns an environment less the named variables. A name that ends in "*"
// stands for all with that prefix.
func Without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		have, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(names, func(n string) bool {
			prefix, all := strings.CutSuffix(n, "*")
			return have == n || all && strings.HasPrefix(have, prefix)
		})
	})
}

// sessions are the variables that Claude Code 2.1.329 and Codex 0.169 set for the
// programs that they start themselves.
var sessions = []string{
	"CLAUDECODE*", "CLAUDE_CODE_SESSION_*", "CLAUDE_CODE_CHILD_*", "CLAUDE_CODE_MESSAGING_*", "CLAUDE_CODE_RESUME_*",
	"CLAUDE_CODE_LAUNCHED_BY_*", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_SSE_PORT",
	"CLAUDE_CODE_TMUX_SESSION", "CLAUDE_PID", "CLAUDE_EFFORT", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "AI_AGENT",
	"CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION", "CODEX_CI",
}

// places are the variables that name the terminal, tmux, netsky agent or git repository in
// which a program runs.
var places = []string{
	"TMUX*", "STY", "WINDOW", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLUMNS", "LINES", "OLDPWD", "SHLVL", "_",
	"AGENT_N", "NETSKY_START", "NETSKY_PROMPT_FILE", "CODEX_CHANNEL_DIR",
	// Those by which git names a repository and its files to what it runs, as hooks and
	// aliases (git rev-parse --local-env-vars), but for its configuration.
	"GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE",
	"GIT_QUARANTINE_PATH", "GIT_INTERNAL_SUPER_PREFIX", "GIT_REFLOG_ACTION", "GIT_EXEC_PATH",
}

// Clean returns an environment without the variables that another Claude Code or Codex
// sets for its children. What a person has set to configure either stays, credentials
// included (CLAUDE_CODE_OAUTH_TOKEN, CLAUDE_CODE_USE_BEDROCK, OPENAI_API_KEY), for
// agents of every runtime: an agent that starts others passes its environment on, and
// without their login those would not start.
func Clean(env []string) []string { return Without(env, sessions...) }

// Inherited returns what may be passed on to a process that outlives its caller: Clean,
// without the variables that name the caller's terminal, tmux, agent or git repository.
func Inherited(env []string) []string { return Without(Clean(env), places...) }

// Quote quotes a text as one word for a shell.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
