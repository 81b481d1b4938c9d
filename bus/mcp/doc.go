// Package mcp is the MCP server through which a model meets the bus: the tools
// with which it writes, answers and keeps account of work. Its mailbox's mail is
// brought by a courier, which is handed in as Mail.
//
// A program such as Claude Code starts the server as a child of its own and
// speaks with it over stdin and stdout, one JSON object a line. The server
// belongs to one agent and speaks for no other: the sender is never an argument
// of a tool. It stays on a revision of the protocol in which a server may push,
// so that it can hand over mail as a channel notification (Server.Notify).
//
// # What it promises
//
// A tool that says sent has sent, and one that fails says what became of it and
// what to do. Nothing that a client or a model writes ends the server: a line
// that is no message is passed over, and a tool that breaks breaks alone.
// It ends when stdin does, and takes what runs with it within two seconds.
// Without the records the tools of the mail go on.
//
// # What it does not know
//
// It knows no program by name but in the words of one notification, no pane and
// no database: Mail, Members and Records are handed in. What a tool shows of
// other agents is marked as theirs, and holds nothing that could be taken for a
// message.
//
// # What a crash leaves
//
// Mail that was sent, whole, or not at all. The first answer to a message has an
// ID that depends on nothing but the two, so that one given again after a crash
// has no second effect.
package mcp
