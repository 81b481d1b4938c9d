// Package appserver speaks to Codex's servers: it finds the program, starts its
// app-server, and brings texts into the threads that the server keeps.
//
// A [Server] is a connection to `codex app-server`, which is either a child process or
// one that listens on a socket ([Listener]), where Codex's own TUI is another client. A
// [Thread] is one conversation on it. Submit gives it a text under an id, Subscribe
// reports what happens to the text in a few kinds of [Event], whatever Codex calls
// them.
//
// # What it promises
//
// A thread has one turn at a time, and a text counts as accepted only when Codex has
// shown it in the thread under our id: Find finds it there after any crash. Every
// request from Codex is answered, with a no if nobody can say yes. A turn that runs too
// long is interrupted. Lines of up to 64 MiB are read, anything that is not JSON is
// skipped, and a server that ends is reported and never waited for.
//
// Codex up to 0.153.4 is driven through `codex mcp-server` ([Legacy]), which forgets
// its threads when it ends.
//
// # What it does not know
//
// Mailboxes, records, and which agent a thread belongs to, except for the names of the
// files in run/ that an agent's server uses.
//
// # What a crash leaves
//
// A child server ends with its parent: its input ends, and on Linux the kernel kills
// it. A listening one is named in run/cx-N.json, and the next Listen of that agent ends
// it first. Codex's own file of the thread then shows the turn as interrupted.
package appserver
