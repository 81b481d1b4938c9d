package tty

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios      = unix.TCGETS
	setTermios      = unix.TCSETS
	setTermiosFlush = unix.TCSETSF
)

// dieWithUs has the child killed when the thread that started it ends.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
