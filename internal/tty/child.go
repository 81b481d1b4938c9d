package tty

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Child is a program in its own process group, in the foreground of the terminal. The
// zero Child has ended.
type Child struct {
	tty *Terminal

	mu  sync.Mutex // guards the fields below, and keeps pid from being reaped meanwhile
	pid int        // 0: it has ended
}

// Start starts a program that has the terminal before its first instruction. Only
// descriptors 0 to 2 are inherited. On Linux the program is killed when the thread that
// calls Start ends, so that must be locked.
func Start(t *Terminal, program string, argv, env []string, dir string) (*Child, error) {
	attr := &syscall.ProcAttr{
		Dir: dir, Env: env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true},
	}
	if t != nil {
		attr.Sys.Foreground, attr.Sys.Ctty = true, t.fd
	}
	dieWithUs(attr.Sys)
	pid, err := syscall.ForkExec(program, argv, attr)
	if err != nil {
		return nil, err
	}
	return &Child{tty: t, pid: pid}, nil
}

// PID is the program's number, or 0 if it has ended.
func (c *Child) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

// Signal signals the process group that the program is in, if it has not ended.
func (c *Child) Signal(sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid != 0 {
		c.signal(sig)
	}
}

// signal is Signal with c.mu held: the number is the program's until it is reaped.
func (c *Child) signal(sig unix.Signal) {
	group, err := unix.Getpgid(c.pid)
	if err != nil || group == unix.Getpgrp() {
		unix.Kill(c.pid, sig)
		return
	}
	unix.Kill(-group, sig)
}

// Reap handles that the program has stopped or ended, and reports its end once. One
// that has stopped is continued, in the foreground: there is no shell to return to.
// With orphans it also reaps all other children. It doesn't block.
func (c *Child) Reap(orphans bool) (end unix.WaitStatus, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		who := c.pid
		if orphans {
			who = -1
		}
		if who == 0 {
			return end, ended
		}
		var ws unix.WaitStatus
		pid, err := unix.Wait4(who, &ws, unix.WNOHANG|unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
		case err != nil || pid <= 0:
			return end, ended
		case pid != c.pid:
		case ws.Stopped():
			if group, err := unix.Getpgid(pid); err == nil {
				c.tty.give(group)
			}
			c.signal(unix.SIGCONT)
		case ws.Signaled() || ws.Exited():
			c.pid, end, ended = 0, ws, true
		}
	}
}

// Wait waits for the program's end, which must not have been reported yet.
func (c *Child) Wait() unix.WaitStatus {
	changed := make(chan os.Signal, 1) // one means: look
	signal.Notify(changed, unix.SIGCHLD)
	defer signal.Stop(changed)
	for {
		if end, ended := c.Reap(false); ended {
			return end
		}
		<-changed
	}
}
