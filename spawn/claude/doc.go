// Package claude is all that netsky knows of Claude Code: how it is started,
// what its hooks, its files and its screen say, and how a running one is
// reached.
//
// It promises that an agent is started one way, whatever its role: its system
// prompt by a file, its MCP servers and settings by files of its own, its
// permission mode named, its conversation the one on record. What a person has
// configured is merged under ours and never written to: nothing here edits
// ~/.claude or ~/.claude.json. What would make Claude Code stop and ask in its
// pane is found before it is started, as far as it can be known.
//
// It knows neither tmux nor the bus. What it starts is run by others, in a
// terminal; what arrives is handed to it as text.
//
// A crash leaves whole files or none. A start that died before its first message
// leaves a conversation on record of which Claude Code has no file: the next
// start begins another.
package claude
