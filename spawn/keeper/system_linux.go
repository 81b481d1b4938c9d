package keeper

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios      = unix.TCGETS
	setTermios      = unix.TCSETS
	setTermiosFlush = unix.TCSETSF
)

// becomeReaper makes orphans below us our children instead of init's, so that
// a process that left by a double fork is still found below its agent.
func becomeReaper() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// dieWithUs has the child killed when we die in whatever way.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
