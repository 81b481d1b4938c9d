// Package codex is all that netsky knows of the Codex CLI: the program's
// servers, the threads they keep, and one message handed to one of them.
//
// A Server is a connection to `codex app-server`, a Thread one conversation on
// it. Submit gives it a text under an id, Subscribe tells what becomes of it in
// a few kinds of Event, whatever Codex calls them. A Session keeps one agent's
// thread: it starts the server, resumes the thread or begins one, and brings a
// message through a turn. Once is a Session for one message, with its mail.
//
// Serve is the program in the pane of a resident agent: a Session that stays,
// on an app-server that listens on a socket, the agent's mail, its state, and
// Codex's own TUI on the same thread. Runtime says how to start it.
//
// # What it promises
//
// A thread has one turn at a time, and a text is taken as accepted only when
// Codex has shown it in the thread under our id. Every request of Codex's is
// answered, with a no where nobody can say yes. A turn that runs too long is
// interrupted. Lines of up to 64 MiB are read, what is no JSON is passed over,
// and a server that ends is told as such and never waited for.
//
// A message that was under way when anything died is recognised by its id in
// the thread's own history: an answer that is there already is used, a turn
// that was broken off is gone on with, and only what never arrived is submitted
// again. When Codex has lost the thread, a fresh one is begun and both ids are
// told.
//
// # What it does not know
//
// It touches no mailbox: what it delivers it has from a bus.Receiver. It reads
// no configuration file, neither ours nor Codex's, and renders no prompt. Only
// Codex knows which models there are and who is logged in.
//
// Codex up to 0.153.4 is driven through `codex mcp-server`, which forgets its
// threads when it ends: there each call begins a thread of its own, and nothing
// is recognised after a crash.
//
// # What a crash leaves
//
// state/codex/<agent>.json names the thread and the last message handed to it;
// it is replaced atomically before each submit. When we die, Codex ends with
// us: it is at the end of its input, and on Linux it is told by the kernel. Its
// own file of the thread then holds the turn as interrupted.
package codex
