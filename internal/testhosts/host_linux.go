package testhosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// firstUID is the user's number on the first host; the others have the next ones.
const firstUID = 47701

// A Host is a machine of a world's. Its user is called me.
type Host struct {
	Name    string
	Address string

	world *World
	dir   string // what is on its disk
	uid   int

	mu   sync.Mutex
	init *exec.Cmd // its first process, nil if it is off
	pipe io.Closer // ends it
	port *port
}

// Home returns the user's netsky home as this process sees it. On the host it is
// /home/me/.netsky.
func (h *Host) Home(tb testing.TB) home.Dir {
	tb.Helper()
	return testworld.Got(home.At(h.Path(".netsky")))(tb)
}

// Path returns a file below the user's home directory as this process sees it.
func (h *Host) Path(name string) string { return filepath.Join(h.dir, "home", "me", name) }

// Boot starts the host, with its sshd. Nothing of netsky's runs there until somebody starts it.
func (h *Host) Boot(tb testing.TB) {
	tb.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), firstVar+"="+h.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Setsid:     true,
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in := testworld.Got(cmd.StdinPipe())(tb)
	out := testworld.Got(cmd.StdoutPipe())(tb)
	if err := cmd.Start(); errors.Is(err, unix.EPERM) {
		tb.Skip("this machine does not let root make hosts: ", err)
	} else if err != nil {
		tb.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		in.Close()
		cmd.Wait()
		tb.Fatalf("host %s: does not start: %v: %s", h.Name, err, &errs)
	}
	h.mu.Lock()
	h.init, h.pipe = cmd, in
	h.mu.Unlock()
	port, err := h.world.wire.plug(h.Address, cmd.Process.Pid)
	testworld.Must(tb, err, "host %s", h.Name)
	h.mu.Lock()
	h.port = port
	h.mu.Unlock()
	h.must(tb, h.As("root", "ip", "address", "add", h.Address+"/24", "dev", device))
	h.LinkUp(tb)
	h.must(tb, h.As("root", "/usr/sbin/sshd", "-f", "/dev/null", "-h", "/run/etc/"+filepath.Base(h.hostKey()), "-o", "ListenAddress="+h.Address,
		"-o", "UsePAM=no", "-o", "PasswordAuthentication=no", "-o", "KbdInteractiveAuthentication=no", "-o", "UseDNS=no", "-o", "MaxStartups=100",
		"-o", "Subsystem=sftp internal-sftp", "-E", "/tmp/sshd.log"))
}

// PowerOff ends all processes of the host at once, as a power cut does. What is on its disk
// stays, as it does on a machine whose disk keeps what was written.
func (h *Host) PowerOff() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.init == nil {
		return
	}
	if h.port != nil {
		h.world.wire.unplug(h.port)
	}
	h.init.Process.Kill()
	h.pipe.Close()
	h.init.Wait() // returns when the kernel has ended them all
	h.init, h.port = nil, nil
}

// LinkDown takes the host's network interface down.
func (h *Host) LinkDown(tb testing.TB) { h.link(tb, "down") }

// LinkUp takes it up again.
func (h *Host) LinkUp(tb testing.TB) { h.link(tb, "up") }

func (h *Host) link(tb testing.TB, state string) {
	tb.Helper()
	h.must(tb, h.As("root", "ip", "link", "set", device, state))
}

// Command prepares a command of the host's user, with the environment of a login.
func (h *Host) Command(words ...string) *exec.Cmd { return h.As("me", words...) }

// As is Command for another user of the host's: root.
func (h *Host) As(user string, words ...string) *exec.Cmd {
	h.mu.Lock()
	defer h.mu.Unlock()
	id, dir := strconv.Itoa(h.uid), "/home/me"
	if user == "root" {
		id, dir = "0", "/"
	}
	if h.init == nil {
		return exec.Command("false")
	}
	args := []string{"-t", strconv.Itoa(h.init.Process.Pid), "-m", "-p", "-n", "-u", "-i", "-S", id, "-G", id, "--",
		"env", "-i", "-C", dir, "HOME=" + dir, "USER=" + user, "LOGNAME=" + user, "SHELL=/bin/sh", "LANG=C.UTF-8", "TERM=xterm",
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
	return exec.Command("nsenter", append(args, words...)...)
}

// Netsky runs a verb as the user, and returns what it printed.
func (h *Host) Netsky(words ...string) (string, error) {
	out, err := h.Command(append([]string{"netsky"}, words...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("netsky %s at %s: %w: %s", strings.Join(words, " "), h.Name, err, out)
	}
	return strings.TrimRight(string(out), "\n"), err
}

// Run is Netsky for what must succeed.
func (h *Host) Run(tb testing.TB, words ...string) string {
	tb.Helper()
	return testworld.Got(h.Netsky(words...))(tb)
}

// must runs what must succeed.
func (h *Host) must(tb testing.TB, cmd *exec.Cmd) {
	tb.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("host %s: %s: %v: %s", h.Name, strings.Join(cmd.Args, " "), err, out)
	}
}

// tool is must for a program that runs beside the hosts.
func (h *Host) tool(tb testing.TB, words ...string) {
	tb.Helper()
	h.must(tb, exec.Command(words[0], words[1:]...))
}

// Processes returns the host's processes whose command lines hold the words.
func (h *Host) Processes(words string) (list []proc.Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.init == nil {
		return nil
	}
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.init.Process.Pid))
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is fine
	for _, dir := range dirs {
		if its, e := os.Readlink(dir + "/ns/pid"); err != nil || e != nil || its != space {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if p, err := proc.Find(pid); err == nil && strings.Contains(p.Command(), words) {
			list = append(list, p)
		}
	}
	return list
}

// Kill kills those processes with SIGKILL, and returns how many there were.
func (h *Host) Kill(words string) (n int) {
	for _, p := range h.Processes(words) {
		if p.Signal(unix.SIGKILL) == nil {
			n++
		}
	}
	return n
}

// KillDaemon kills the user's netsky daemon.
func (h *Host) KillDaemon() int { return h.Kill("netsky daemon") }

// Drop writes a file of the user's below the home, whole or not at all.
func (h *Host) Drop(name, text string) error {
	file := h.Path(".netsky/" + name)
	hidden := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
	if err := h.give(hidden, text); err != nil {
		return err
	}
	return os.Rename(hidden, file)
}
