// Package proc names a process for good, by its number and its birth, finds the
// family of one, and waits for and signals exactly that process.
//
// A number alone is given out again by the system, so a process without a birth
// is nobody: it never counts as alive and is never signalled.
package proc
