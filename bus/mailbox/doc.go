// Package mailbox creates, reads and moves the files of a bus by descriptor, so that
// nobody can divert it with a link.
//
// It contains every system call of the bus that touches the file system, each behind a
// step, so that a test can end the process or fail the call before any of them.
//
// A file that WriteNew has created and a directory that MakeDir has created survive a
// loss of power. A crash leaves a hidden file at most, or, on a file system without
// exclusive rename, one file under two names.
package mailbox
