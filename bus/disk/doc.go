// Package disk makes, reads and moves the files of a bus by descriptor, so that
// nobody can put a link in the way.
//
// Every system call of the bus that touches the file system stands here, behind
// a step, so that a test can end the process or fail the call before any of them.
//
// A file that WriteNew has made and a directory that MakeDir has made survive a
// loss of power. A crash leaves a hidden file at most, or, where the file system
// knows no exclusive rename, one file under two names.
package disk
