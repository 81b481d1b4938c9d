package tmux

import "syscall"

// childAttr makes a control client end with us, also when we are killed: one
// that lost its parent was seen to hang for ever. Not by SIGKILL: tmux 3.3a dies,
// and all its sessions with it, when a control client is gone before it has said
// all that it is (51 of 3000 killed at a random moment of their start). Asked to
// end, the client says the rest first (0 of 3000). A process group of its own
// keeps a person's Ctrl-C for us, who then close it.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
