// Package ssh reaches other hosts through the user's own ssh: its program, configuration, keys
// and known hosts. It runs netsky there over a connection that is kept, and keeps tunnels up.
//
// A kept connection is a process of ssh's that ends by itself after ten idle minutes; its
// socket is in run/ssh/ below the home, or where the home's path is too long for that, in
// /tmp/netsky-UID. A tunnel has a connection of its own, and ends with the process that keeps
// it. Nothing here answers ssh's questions or weakens its checks.
package ssh

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
}

// connectTime is how long a host may take to answer where nobody waits at a terminal.
const connectTime = 10 * time.Second

// options returns those of every connection.
func (c Client) options() []string {
	list := []string{"ServerAliveInterval=" + seconds(cmp.Or(c.Alive, 15*time.Second)), "ServerAliveCountMax=3"}
	if c.Unasked {
		list = append(list, "BatchMode=yes", "ConnectTimeout="+seconds(connectTime))
	}
	return list
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
	cmd.WaitDelay = 2 * time.Second
	return cmd, nil
}

// maxSocket is the longest path of a unix socket (macOS), less what ssh appends while it makes one.
const maxSocket = 103 - len(".0123456789abcdef")

// socket returns the path of the kept connection's socket, in a directory that only this user can enter.
func (c Client) socket(h Host) (string, error) {
	sum := sha256.Sum256([]byte(c.Home.Root() + "\x00" + h.Dest))
	name := hex.EncodeToString(sum[:4])
	if path := c.Home.Path(home.RunDir, "ssh", name); c.Home.Root() != "" && len(path) <= maxSocket {
		if _, err := os.Stat(c.Home.Path(home.RunDir)); err == nil { // the home is made
			dir, err := c.Home.OpenDir(home.RunDir+"/ssh", true)
			if err != nil {
				return "", err
			}
			return path, dir.Close()
		}
	}
	dir := "/tmp/netsky-" + strconv.Itoa(os.Getuid())
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if own, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || info.Mode().Perm() != 0o700 || !ok || int(own.Uid) != os.Getuid() {
		return "", fmt.Errorf("%s: is not a directory of yours alone (mode 0700), which ssh's sockets need; remove it", dir)
	}
	return filepath.Join(dir, name), nil
}
