package tmux

import "syscall"

// childAttr gives a control client a process group of its own, which keeps a
// person's Ctrl-C for us, who then close it. If we are killed it ends at the end
// of its input.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
