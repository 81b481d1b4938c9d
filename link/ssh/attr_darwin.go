package ssh

import "syscall"

// tunnelAttr leaves a person's Ctrl-C to netsky. If netsky is killed, the tunnel stays until
// the next one takes its socket.
func tunnelAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
