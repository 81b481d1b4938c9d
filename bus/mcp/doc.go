// Package mcp is the MCP server that connects a model to the bus: the tools with which
// it writes, answers and records work. A courier, passed in as Mail, delivers the
// mailbox's mail.
//
// A program such as Claude Code starts the server as a child and talks to it over stdin
// and stdout, one JSON object per line. The server belongs to one agent: the sender is
// never an argument of a tool. It uses a revision of the protocol in which a server may
// push, so that it can deliver mail as a channel notification (Server.Notify).
//
// # What it promises
//
// A tool that says sent has sent, and one that fails says what happened and what to do.
// Nothing that a client or a model writes ends the server: a line that is not a message
// is skipped, and a tool that panics fails alone. It ends when stdin does, and stops
// its work within two seconds. Without the records the mail tools still work.
//
// # What it does not know
//
// It knows no program by name except in the wording of one notification, no pane and no
// database: Mail, Members, Records, Tasks, Checks and Phone are passed in. What a tool shows of other agents
// is marked as theirs, and contains nothing that could be taken for a message.
//
// # What a crash leaves
//
// Mail that was sent, complete or not at all. The first answer to a message has an ID
// that depends only on the two, so that repeating it after a crash has no further
// effect.
package mcp
