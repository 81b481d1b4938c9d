// Package messagesim stands in for Messages.app in tests: a process that keeps a chat.db as
// Messages does, and a program osascript that pretends to send. It is not in the binary.
//
// A test binary is those programs itself: its TestMain calls [Main] first. [Start] starts the
// process and makes a database with the tables of one release of macOS; the methods of [Sim] are
// carried out in that process, which is the only one that writes, as with Messages. [Sim.Script]
// makes the osascript.
//
// What it proves is netsky's side alone: that the right rows are read once, and that the right
// program is started with the right arguments. It proves nothing about Messages.app. The names of
// the columns are Apple's, from published schemas; the triggers are left out, since they call
// functions that only Apple's processes have.
package messagesim
