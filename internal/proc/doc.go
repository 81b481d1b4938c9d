// Package proc identifies a process by its number and its birth, finds its family, and
// waits for and signals exactly that process.
//
// The system reuses numbers, so a process without a birth is nobody: it never counts as
// alive and is never signalled.
package proc
