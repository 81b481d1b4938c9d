package ssh

import "syscall"

// tunnelAttr makes a tunnel end with netsky, also when that is killed, and leaves a person's
// terminal to netsky.
func tunnelAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
}
