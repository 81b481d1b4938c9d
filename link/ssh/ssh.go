// Package ssh reaches other hosts through the user's own ssh: its program, configuration, keys
// and known hosts. It runs netsky there over a connection that is kept, and keeps tunnels up.
//
// A kept connection is a process of ssh's that ends with [Client.Close], or after ten idle minutes; its
// socket is in run/ssh/ below the home, or where the home's path is too long for that, in
// /tmp/netsky-UID. A tunnel has a connection of its own, and ends with the process that keeps
// it. Nothing here answers ssh's questions or weakens its checks.
package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"netsky/home"
	"netsky/internal/execx"
)

// A Host is another machine that has a netsky.
type Host struct {
	Name   string // what the user calls it
	Dest   string // its destination, as ssh takes it: an alias, me@build1, ssh://me@build1:2222
	Netsky string // the program there; "" is the one on PATH, or where programs of a user's are
}

// Check returns what is wrong with the destination: ssh would take it for something else.
func (h Host) Check() error {
	user, host, _ := strings.Cut(h.Dest, "@")
	switch {
	case h.Dest == "":
		return errors.New("ssh: the destination is empty")
	case strings.HasPrefix(user, "-") || strings.HasPrefix(host, "-"):
		return fmt.Errorf("ssh: %q is not a destination: it begins with a dash", h.Dest)
	case strings.ContainsFunc(h.Dest, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("'\"`$;&|<>(){}\\", r) }):
		return fmt.Errorf("ssh: %q is not a destination: it holds a character that none has", h.Dest)
	}
	return nil
}

// A Client reaches hosts on behalf of a home.
type Client struct {
	Home    home.Dir
	Environ []string
	Alive   time.Duration // how often a connection is asked whether it lives, three times in vain at most; 0 is 15 s
	Unasked bool          // nobody is there to answer ssh's questions, so it asks none
	own     bool          // neither make nor use the connection that is kept: it may have broken, which is noticed late
}

// connectTime is how long a host may take to answer where nobody waits at a terminal.
const connectTime = 10 * time.Second

// options returns those of every connection.
func (c Client) options() []string {
	list := []string{"RemoteCommand=none", "ServerAliveInterval=" + seconds(cmp.Or(c.Alive, 15*time.Second)), "ServerAliveCountMax=3"}
	if c.Unasked {
		return append(list, "BatchMode=yes", "ConnectTimeout="+seconds(connectTime))
	}
	return append(list, "ConnectTimeout="+seconds(3*connectTime)) // not for what ssh asks
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

// command returns an ssh with options, before the words that name the host.
func (c Client) command(ctx context.Context, options []string, words ...string) (*exec.Cmd, error) {
	program := execx.Find(execx.Value(c.Environ, "PATH"), "ssh")
	if program == "" {
		return nil, errors.New("ssh: not found on PATH; install OpenSSH's client")
	}
	var args []string
	for _, o := range options {
		args = append(args, "-o", o)
	}
	cmd := exec.CommandContext(ctx, program, append(args, words...)...)
	cmd.Env = c.Environ
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if c.Unasked { // an ssh that it starts for a jump host does not hear of BatchMode: it has no terminal either
		cmd.Env = append(slices.Clip(c.Environ), "SSH_ASKPASS_REQUIRE=never")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	}
	cmd.WaitDelay = 2 * time.Second
	return cmd, nil
}
