package ssh_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/link/ssh"
)

// echo listens and answers each line with itself, until the test ends.
func echo(t *testing.T) (address string) {
	t.Helper()
	l := testworld.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(conn, conn)
				conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// carries reports whether a line that is sent to a socket comes back.
func carries(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(2 * time.Second))
	back := make([]byte, 3)
	if _, err := conn.Write([]byte("hi\n")); err != nil {
		return false
	}
	_, err = io.ReadFull(conn, back)
	return err == nil && string(back) == "hi\n"
}

// A kept is a tunnel that is kept up, with the states it was in.
type kept struct {
	mu   sync.Mutex
	list []ssh.State
	stop func() error
}

func (k *kept) last() (s ssh.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.list); n > 0 {
		s = k.list[n-1]
	}
	return s
}

func keep(t *testing.T, c ssh.Client, tunnel ssh.Tunnel) *kept {
	k := new(kept)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- c.Forward(ctx, tunnel, func(s ssh.State) {
			k.mu.Lock()
			k.list = append(k.list, s)
			k.mu.Unlock()
		})
	}()
	k.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { k.stop() })
	return k
}

func client(t *testing.T, s *testworld.SSHD) ssh.Client {
	h := testworld.Home(t)
	environ := append(os.Environ(), "PATH="+s.Bin+":"+os.Getenv("PATH"))
	return ssh.Client{Home: h, Environ: environ, Alive: time.Second}
}

// mine lists the processes of ssh's that this test's process has started, by a word of their command.
func mine(t *testing.T, word string) (list []proc.Process) {
	t.Helper()
	for _, p := range testworld.Got(proc.Descendants(os.Getpid(), ""))(t) {
		if strings.Contains(p.Command(), word) && strings.Contains(p.Command(), "-N") {
			list = append(list, p)
		}
	}
	return list
}

// A tunnel comes up again whatever ends it, says when and why it was down, and is gone with
// its context.
func TestForward(t *testing.T) {
	for name, reverse := range map[string]bool{"from here": false, "from there": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testworld.StartSSHD(t)
			c := client(t, s)
			socket := filepath.Join(filepath.Dir(s.Bin), "socket")
			tunnel := ssh.Tunnel{Host: ssh.Host{Name: "build1", Dest: "build1"}, Here: socket, There: echo(t)}
			if reverse {
				tunnel.Here, tunnel.There, tunnel.Reverse = tunnel.There, tunnel.Here, true
			}
			testworld.Must(t, os.WriteFile(socket, nil, 0o600)) // left by another
			k := keep(t, c, tunnel)
			works := func() bool { return k.last().Up && carries(socket) }
			testworld.Wait(t, "the tunnel is up", works)

			for how, end := range map[string]func(){
				"its ssh is killed": func() {
					for _, p := range mine(t, socket) {
						p.Signal(syscall.SIGKILL)
					}
				},
				"its server ends": func() { s.Signal(syscall.SIGKILL) },
				"half open":       func() { s.Signal(syscall.SIGSTOP) },
			} {
				up := k.last().Since
				end()
				testworld.Wait(t, how+": it is seen", func() bool { return k.last().Since.After(up) })
				testworld.Wait(t, how+": the tunnel is up again", works)
			}
			testworld.ErrorIs(t, k.stop(), context.Canceled)
			testworld.Len(t, mine(t, socket), 0, "after its end")
		})
	}
}

// While a host can't be reached, the state says since when and why, once.
func TestForwardDown(t *testing.T) {
	t.Parallel()
	s := testworld.StartSSHD(t)
	k := keep(t, client(t, s), ssh.Tunnel{Host: ssh.Host{Dest: "ssh://127.0.0.1:1"}, Here: filepath.Join(filepath.Dir(s.Bin), "here"), There: "127.0.0.1:1"})
	testworld.Wait(t, "it is down", func() bool { return k.last().Why != "" })
	if state := k.last(); state.Up || state.Since.IsZero() || !strings.HasSuffix(state.Why, "Connection refused") {
		t.Errorf("state %+v", state)
	}
}

// What ssh would take for an option, or a shell for a command, is no destination.
func TestCheck(t *testing.T) {
	for _, dest := range []string{"", "-oProxyCommand=x", "me@-x", "a b", "a;b", "$(x)", "a\nb"} {
		if (ssh.Host{Dest: dest}).Check() == nil {
			t.Errorf("%q is a destination", dest)
		}
	}
	for _, dest := range []string{"build1", "me@build1", "ssh://me@build1:22", "me@[::1]", "10.0.0.1"} {
		testworld.Must(t, ssh.Host{Dest: dest}.Check())
	}
	if err := (ssh.Client{}).Forward(t.Context(), ssh.Tunnel{Host: ssh.Host{Dest: "-x"}}, nil); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("Forward to -x: %v", err)
	}
}

// A path that another host has named holds nothing that ssh would replace, as by a variable of this process.
func TestForwardNames(t *testing.T) {
	t.Parallel()
	s := testworld.StartSSHD(t)
	c := client(t, s)
	c.Environ = append(c.Environ, "TOKEN=secret")
	dir := filepath.Dir(s.Bin)
	for _, name := range []string{"${TOKEN}", "%u", `a\b`} {
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Forward(ctx, ssh.Tunnel{Host: ssh.Host{Dest: "build1"}, Here: echo(t), There: filepath.Join(dir, name), Reverse: true}, func(ssh.State) { cancel() })
		if cancel(); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("a tunnel to %s: %v", name, err)
		}
	}
	for _, e := range testworld.Got(os.ReadDir(dir))(t) {
		if e.Type() == os.ModeSocket {
			t.Errorf("there is a socket %s", e.Name())
		}
	}
}
