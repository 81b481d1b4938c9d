// Package codex runs agents on the Codex CLI: it brings an agent's mail through the
// threads of Codex's servers.
//
// A Session keeps one agent's thread: it connects to a server of [appserver], and
// resumes the thread or starts one. Once brings one message through a Session, with its
// mail.
//
// Serve is the program in the pane of a resident agent: a courier brings the agent's
// mail to a Session that stays, on an app-server that listens on a socket, and Codex's
// own TUI shows the same thread. Runtime starts it.
//
// # What it promises
//
// A message that was in progress when any process died is recognised by its id in the
// thread's own history: an existing answer is used, an interrupted turn is continued,
// and only a message that never arrived is submitted again. If Codex has lost the
// thread, a new one is started and both ids are printed.
//
// # What it does not know
//
// How a message is claimed, owed, answered, held and retried is the courier's job: a
// vendor's fault is reported to it as the end of a turn. The package reads no
// configuration of netsky's, and of Codex's only what names the account, as account.go
// does; it renders no prompt. Only Codex knows which models there are and whether a login
// is accepted.
//
// With Codex up to 0.153.4 each call starts a thread of its own, and nothing is
// recognised after a crash.
//
// # What a crash leaves
//
// state/codex/<agent>.json names the thread and the last message handed to it; it is
// replaced atomically before each submit. Codex ends with netsky.
package codex
