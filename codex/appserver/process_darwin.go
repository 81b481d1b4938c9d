package appserver

import "syscall"

// childAttr gives the server its own process group. If netsky is killed, the server's
// input ends and so does the server.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
