package appserver

import "syscall"

// childAttr makes the kernel kill the server when netsky dies, also by SIGKILL: a
// server that lives on would keep its thread from all others. SIGTERM is not enough:
// Codex first waits for the end of a running turn, which may be hours away.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
