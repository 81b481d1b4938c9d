package ssh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/internal/proc"
)

// A Tunnel carries connections between this machine and a host. Here and There are the path
// of a unix socket or an address, "127.0.0.1:4222": whoever connects to a socket Here reaches
// There, and with Reverse, whoever connects to a socket There reaches Here.
type Tunnel struct {
	Host    Host
	Here    string
	There   string
	Reverse bool
}

// A State is whether a tunnel is up.
type State struct {
	Up    bool
	Since time.Time // when it came up, or went down
	Why   string    // it is down: the last that ssh said
}

// The pause before a tunnel is tried again: the first, then twice the one before.
const (
	firstPause   = time.Second
	longestPause = 15 * time.Second
	steady       = 10 * time.Second // a tunnel that was up for so long begins with the first again
)

// Forward keeps a tunnel up until ctx ends, whose error it returns, or no ssh can be started.
// changed is called with each new state, never by two at once.
func (c Client) Forward(ctx context.Context, t Tunnel, changed func(State)) error {
	if err := t.Host.Check(); err != nil {
		return err
	}
	if strings.ContainsAny(t.Here+t.There, "$%\\") {
		return fmt.Errorf("ssh: no tunnel between %q and %q: ssh would replace the $, %% or \\ in it", t.Here, t.There)
	}
	c.Unasked = true
	state := State{Since: time.Now()}
	for pause := firstPause; ; {
		why, err := c.carry(ctx, t, func() {
			state = State{Up: true, Since: time.Now()}
			changed(state)
		})
		if err != nil {
			return err
		}
		if state.Up {
			if time.Since(state.Since) > steady {
				pause = firstPause
			}
			state = State{Since: time.Now()}
		}
		if state.Why != why {
			state.Why = why
			changed(state)
		}
		if err := proc.Sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

// carry runs one ssh until it ends, and returns why. The error is that of ctx, or that no ssh
// can be started.
func (c Client) carry(ctx context.Context, t Tunnel, up func()) (why string, err error) {
	way, spec := "-L", t.Here+":"+t.There
	if t.Reverse {
		way, spec = "-R", t.There+":"+t.Here
		if strings.HasPrefix(t.There, "/") { // sshd makes none where there is one
			asks := c
			asks.own = true
			if _, err := asks.Ask(ctx, t.Host, 2*connectTime, nil, `rm -f "$1"`, t.There); err != nil {
				return err.Error(), ctx.Err()
			}
		}
	}
	// What it says tells when the tunnel is up. A connection of its own: the kept one serves whoever
	// types, and its forwards would outlive this.
	options := append(c.alone(), "LogLevel=DEBUG1", "ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes", "StreamLocalBindMask=0177")
	cmd, err := c.command(ctx, options, "-N", "-T", way, spec, "--", t.Host.Dest)
	if err != nil {
		return "", err
	}
	cmd.SysProcAttr = tunnelAttr()
	said, errs := io.Pipe() // Wait reads what ssh says, so that a program which ssh has started and left behind does not hold it up
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		return "", errors.Join(ctx.Err(), err)
	}
	heard := make(chan string, 1)
	go func() { heard <- listen(said, sync.OnceFunc(up)) }()
	err = cmd.Wait()
	errs.Close()
	last := <-heard
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case last != "":
		return last, nil
	case errors.As(err, new(*exec.ExitError)):
		return "ssh ended: " + err.Error(), nil
	}
	return "ssh ended", nil
}

// chatter is how what ssh says of a connection begins that it does not complain about.
var chatter = []string{"OpenSSH_", "Authenticated to ", "Transferred: ", "Bytes per second: "}

// listen reads what ssh says until it says no more, and returns the last line that is not for
// debugging. It calls up once the tunnel can be used.
func listen(said io.Reader, up func()) (last string) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch rest, debug := strings.CutPrefix(line, "debug1: "); {
		case strings.HasPrefix(rest, "Local forwarding listening on"), strings.HasPrefix(rest, "remote forward success for"):
			up()
		case !debug && line != "" && !slices.ContainsFunc(chatter, func(word string) bool { return strings.HasPrefix(line, word) }):
			last = line
		}
	}
	io.Copy(io.Discard, said) // a line that is too long
	return last
}
