package program

import (
	"slices"
	"strings"
)

// Value is the last value of a name in a list of "NAME=value", which is the one that
// a program sees.
func Value(env []string, name string) string {
	for _, e := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}

// Without is an environment less the named variables. A name that ends in "*" stands
// for all that begin so.
func Without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		have, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(names, func(n string) bool {
			prefix, all := strings.CutSuffix(n, "*")
			return have == n || all && strings.HasPrefix(have, prefix)
		})
	})
}

// sessions is what Claude Code 2.1.329 and Codex 0.169 set for the programs that
// they start themselves.
var sessions = []string{
	"CLAUDECODE*", "CLAUDE_CODE_SESSION_*", "CLAUDE_CODE_CHILD_*", "CLAUDE_CODE_MESSAGING_*", "CLAUDE_CODE_RESUME_*",
	"CLAUDE_CODE_LAUNCHED_BY_*", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_SSE_PORT",
	"CLAUDE_CODE_TMUX_SESSION", "CLAUDE_PID", "CLAUDE_EFFORT", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "AI_AGENT",
	"CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION", "CODEX_CI",
}

// places is what says in which terminal, tmux or netsky agent a program runs.
var places = []string{
	"TMUX*", "STY", "WINDOW", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLUMNS", "LINES", "OLDPWD", "SHLVL", "_",
	"AGENT_N", "NETSKY_START", "NETSKY_PROMPT_FILE", "CODEX_CHANNEL_DIR",
}

// Clean is an environment without what another Claude Code or Codex says of itself to
// its children. What a person has set to configure either stays, credentials
// included (CLAUDE_CODE_OAUTH_TOKEN, CLAUDE_CODE_USE_BEDROCK, OPENAI_API_KEY), for
// agents of every runtime: an agent that starts others hands its environment on, and
// without their login those would not start.
func Clean(env []string) []string { return Without(env, sessions...) }

// Inherited is what of an environment may be passed on to a process that is to
// outlive its caller: Clean, and without what says which terminal, tmux or agent the
// caller runs in.
func Inherited(env []string) []string { return Without(Clean(env), places...) }
