// Package claude holds everything that netsky knows about Claude Code: how it is started,
// what its hooks, files and screen mean, and how to reach a running one.
//
// Every agent is started the same way, whatever its role: with its system prompt from a
// file, its MCP servers and settings from files of its own, an explicit permission mode,
// and the conversation on record. A person's configuration is merged under netsky's and
// never written to: nothing here edits ~/.claude or ~/.claude.json. Whatever would make
// Claude Code stop and ask in its pane is detected before the start, as far as possible.
//
// It knows neither tmux nor the bus. Others run what it starts, in a terminal; messages
// reach it as text.
//
// A crash leaves whole files or none. A start that died before its first message leaves a
// conversation on record for which Claude Code has no file: the next start begins another.
package claude
