package appserver

import "syscall"

// childAttr gives the server a process group of its own. When we are killed it
// ends at the end of its input.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
