package ssh

import "syscall"

// tunnelAttr leaves a person's terminal to netsky. If netsky is killed, the tunnel stays until
// the next one takes its socket.
func tunnelAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}
