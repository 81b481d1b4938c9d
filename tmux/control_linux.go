package tmux

import "syscall"

// childAttr makes a control client end with netsky, also when that is killed: one that
// lost its parent has been seen to hang forever. Not by SIGKILL: tmux 3.3a dies, and
// all its sessions with it, when a control client is gone before it has identified
// itself completely (51 of 3000 killed at a random moment of their start). Asked to
// end, the client completes that first (0 of 3000). Its own process group means that
// netsky gets a person's Ctrl-C and then closes the client.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
