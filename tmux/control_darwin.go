package tmux

import "syscall"

// childAttr gives a control client its own process group, so that netsky gets a
// person's Ctrl-C and then closes the client. If netsky is killed, the client's input
// ends and so does the client.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
