package keeper

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios      = unix.TIOCGETA
	setTermios      = unix.TIOCSETA
	setTermiosFlush = unix.TIOCSETAF
)

// becomeReaper: macOS has no reapers but launchd.
func becomeReaper() {}

// dieWithUs: macOS has no parent-death signal. We lead the pane's session, so
// the kernel hangs up the terminal's foreground group when we die.
func dieWithUs(*syscall.SysProcAttr) {}
