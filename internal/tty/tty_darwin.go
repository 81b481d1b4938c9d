package tty

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios      = unix.TIOCGETA
	setTermios      = unix.TIOCSETA
	setTermiosFlush = unix.TIOCSETAF
)

// dieWithUs: macOS has no parent-death signal. The kernel hangs up the terminal's
// foreground group when the leader of its session ends.
func dieWithUs(*syscall.SysProcAttr) {}
