// Package codex runs agents on the Codex CLI: it brings an agent's mail through the
// threads of Codex's servers.
//
// A Session keeps one agent's thread: it connects to a server of [appserver], resumes
// the thread or begins one, and brings a message through a turn. Once is a Session for
// one message, with its mail.
//
// Serve is the program in the pane of a resident agent: a Session that stays,
// on an app-server that listens on a socket, the agent's mail, its state, and
// Codex's own TUI on the same thread. Runtime says how to start it.
//
// # What it promises
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
// With Codex up to 0.153.4 each call begins a thread of its own, and nothing is
// recognised after a crash.
//
// # What a crash leaves
//
// state/codex/<agent>.json names the thread and the last message handed to it;
// it is replaced atomically before each submit. Codex
// ends with us.
package codex
