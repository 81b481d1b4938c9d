package codex

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// dieWithUs: macOS has no parent-death signal. The keeper's end hangs up the
// terminal's foreground group.
func dieWithUs(*syscall.SysProcAttr) {}
