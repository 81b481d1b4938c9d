package ssh

import "syscall"

// tunnelAttr makes a tunnel end with netsky, also when that is killed, and leaves a person's
// Ctrl-C to netsky.
func tunnelAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
