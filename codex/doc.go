// Package codex runs agents on the Codex CLI: it brings an agent's mail through the
// threads of Codex's servers.
//
// A Session keeps one agent's thread: it connects to a server of [appserver], and
// resumes the thread or begins one. Once brings one message through a Session, with
// its mail.
//
// Serve is the program in the pane of a resident agent: a courier brings the
// agent's mail to a Session that stays, on an app-server that listens on a socket,
// and Codex's own TUI shows the same thread. Runtime says how to start it.
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
// How a message is claimed, owed, answered and tried again is the courier's. No
// configuration file is read here, neither ours nor Codex's, and no prompt
// rendered. Only Codex knows which models there are and who is logged in.
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
