package testworld

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"netsky/internal/execx"
)

// An SSHD is OpenSSH's server on loopback, for this user, with keys of its own. Whoever runs
// the ssh in Bin knows it as build1; nobody's ~/.ssh is read.
type SSHD struct {
	Bin string // to put first on PATH
	Log string // the log of the server, a file
	// Delay is how long whatever is sent takes in each direction, set before anybody connects.
	Delay time.Duration

	tb     testing.TB
	listen net.Listener
	server []string

	mu    sync.Mutex
	conns map[*exec.Cmd]bool // those that are served
}

// StartSSHD starts a server. env is what its sessions have in their environment, each
// "NAME=value", instead of the user's own; without it HOME is the server's directory.
func StartSSHD(tb testing.TB, env ...string) *SSHD {
	tb.Helper()
	dir, err := os.MkdirTemp("", "n") // not the test's own, whose path may be too long for a socket
	Must(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	program := func(name string) string {
		file := execx.Find(os.Getenv("PATH")+":/usr/sbin:/usr/bin", name)
		if file == "" {
			tb.Fatalf("%s: not found; scripts/test installs openssh-server", name)
		}
		return file
	}
	for _, key := range []string{"host", "user"} {
		out, err := exec.Command(program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", filepath.Join(dir, key)).CombinedOutput()
		Must(tb, err, string(out))
	}
	if os.Getuid() == 0 { // the server asks for it
		Must(tb, os.MkdirAll("/run/sshd", 0o755))
	}
	s := &SSHD{Bin: filepath.Join(dir, "bin"), Log: filepath.Join(dir, "log"), tb: tb, conns: make(map[*exec.Cmd]bool)}
	s.listen = Got(net.Listen("tcp", "127.0.0.1:0"))(tb)
	_, port, _ := net.SplitHostPort(s.listen.Addr().String())
	read := func(name string) string {
		return strings.TrimSpace(string(Got(os.ReadFile(filepath.Join(dir, name)))(tb)))
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		Must(tb, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	keys := write("keys", read("user.pub")+"\n")
	known := write("known", fmt.Sprintf("[127.0.0.1]:%s %s\n", port, read("host.pub")))
	set := "SetEnv " + strconv.Quote("HOME="+execx.Value(append([]string{"HOME=" + dir}, env...), "HOME")) // what shells read at their start
	for _, e := range execx.Without(env, "HOME") {
		set += " " + strconv.Quote(e)
	}
	config := write("sshd_config", fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n%s\n", filepath.Join(dir, "host"), keys, set))
	client := write("ssh_config", fmt.Sprintf("Host build1\nHostName 127.0.0.1\nPort %s\nIdentityFile %s\nIdentitiesOnly yes\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\n",
		port, filepath.Join(dir, "user"), known))
	Must(tb, os.Mkdir(s.Bin, 0o700))
	Program(tb, filepath.Join(s.Bin, "ssh"), fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", program("ssh"), client))
	s.server = []string{program("sshd"), "-i", "-E", s.Log, "-f", config}
	var served sync.WaitGroup
	served.Go(s.serve)
	tb.Cleanup(func() {
		s.listen.Close()
		served.Wait()
		s.Signal(syscall.SIGKILL)
	})
	return s
}

// serve runs a server for each connection.
func (s *SSHD) serve() {
	for {
		conn, err := s.listen.Accept()
		if err != nil {
			return
		}
		if s.Delay > 0 {
			conn = far(conn, s.Delay)
		}
		file, err := conn.(*net.TCPConn).File()
		conn.Close()
		if err != nil {
			continue
		}
		cmd := exec.Command(s.server[0], s.server[1:]...)
		cmd.Stdin, cmd.Stdout = file, file
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		s.mu.Lock()
		if err := cmd.Start(); err == nil {
			s.conns[cmd] = true
			go func() {
				cmd.Wait()
				s.mu.Lock()
				delete(s.conns, cmd)
				s.mu.Unlock()
			}()
		}
		s.mu.Unlock()
		file.Close()
	}
}

// far returns the other end of a connection from further away.
func far(conn net.Conn, delay time.Duration) net.Conn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return conn
	}
	defer l.Close()
	var ends [2]net.Conn
	if ends[0], err = net.Dial("tcp", l.Addr().String()); err != nil {
		return conn
	}
	if ends[1], err = l.Accept(); err != nil {
		return conn
	}
	for _, way := range [][2]net.Conn{{conn, ends[0]}, {ends[0], conn}} {
		type part struct {
			at   time.Time
			data []byte
		}
		line := make(chan part, 1<<10)
		go func() {
			defer close(line)
			for {
				data := make([]byte, 32<<10)
				n, err := way[0].Read(data)
				if err != nil {
					return
				}
				line <- part{time.Now().Add(delay), data[:n]}
			}
		}()
		go func() {
			defer way[1].Close()
			for p := range line {
				time.Sleep(time.Until(p.at))
				way[1].Write(p.data)
			}
		}()
	}
	return ends[1]
}

// Signal sends a signal to the processes of all connections that there are now, and returns how many there are.
func (s *SSHD) Signal(sig syscall.Signal) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cmd := range s.conns {
		if syscall.Kill(-cmd.Process.Pid, sig) == nil {
			n++
		}
	}
	return n
}
