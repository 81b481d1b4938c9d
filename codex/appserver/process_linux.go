package appserver

import "syscall"

// childAttr makes the server end with us, also when we are killed: one that
// lives on would keep its thread from every other. SIGTERM is not enough: Codex
// first waits for the end of a running turn, which may be hours away.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
