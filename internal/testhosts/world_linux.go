package testhosts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"netsky/internal/testworld"
)

// netsky is the program, built by Main.
var netsky string

// Main is the TestMain of a package that makes hosts: it builds netsky and runs the tests.
func Main(m *testing.M) int {
	if First() {
		return 0
	}
	return testworld.Main(m, func(program string) { netsky = program })
}

// A World is some hosts and the network between them.
type World struct {
	tb    testing.TB
	dir   string
	hosts []*Host
	wire  wire
}

// New makes hosts of these names and starts them. They end with the test, which is skipped
// if it may not make any.
func New(tb testing.TB, names ...string) *World {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("only root can make hosts of one machine")
	}
	dir := testworld.Got(os.MkdirTemp("", "n"))(tb)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	testworld.Must(tb, os.Chmod(dir, 0o711))
	w := &World{tb: tb, dir: dir}
	for i, name := range names {
		w.hosts = append(w.hosts, &Host{Name: name, Address: fmt.Sprintf("10.77.0.%d", i+1), uid: firstUID + i, dir: filepath.Join(dir, name), world: w})
	}
	for _, h := range w.hosts {
		h.furnish(tb)
	}
	for _, h := range w.hosts {
		testworld.Must(tb, h.know())
		tb.Cleanup(h.PowerOff)
		h.Boot(tb)
	}
	return w
}

// Host returns the host of that name.
func (w *World) Host(name string) *Host {
	i := slices.IndexFunc(w.hosts, func(h *Host) bool { return h.Name == name })
	if i < 0 {
		w.tb.Fatalf("host %s: there is none of that name", name)
	}
	return w.hosts[i]
}

// Hosts returns all hosts, in the order of their names in New.
func (w *World) Hosts() []*Host { return w.hosts }

// Allow lets the user of one host log in at another by ssh, as me@NAME.
func (w *World) Allow(from, to string) {
	w.tb.Helper()
	key := testworld.Got(os.ReadFile(filepath.Join(w.Host(from).ssh(), "id_ed25519.pub")))(w.tb)
	h := w.Host(to)
	file := filepath.Join(h.ssh(), "authorized_keys")
	had, _ := os.ReadFile(file) // there is none at first
	testworld.Must(w.tb, h.give(file, string(had)+string(key)))
}

// furnish makes what is on the host's disk.
func (h *Host) furnish(tb testing.TB) {
	tb.Helper()
	for dir, mode := range map[string]os.FileMode{"etc": 0o755, "bin": 0o755, "tmp": 0o777 | os.ModeSticky, "home": 0o755, "home/me": 0o755, "home/me/.ssh": 0o700} {
		testworld.Must(tb, os.MkdirAll(filepath.Join(h.dir, dir), 0o755))
		testworld.Must(tb, os.Chmod(filepath.Join(h.dir, dir), mode)) // whatever the umask is
	}
	for _, dir := range []string{"home/me", "home/me/.ssh"} {
		testworld.Must(tb, os.Chown(filepath.Join(h.dir, dir), h.uid, h.uid))
	}
	h.Install(tb, netsky)
	var known strings.Builder
	for _, o := range h.world.hosts {
		fmt.Fprintf(&known, "%s %s\n", o.Address, o.Name)
	}
	for name, text := range map[string]string{
		"hostname":   h.Name + "\n",
		"machine-id": fmt.Sprintf("%032x\n", h.uid),
		"hosts":      "127.0.0.1 localhost\n" + known.String(),
		"passwd":     fmt.Sprintf("root:*:0:0::/root:/bin/sh\nsshd:*:74:74::/run/sshd:/usr/sbin/nologin\nme:*:%d:%[1]d::/home/me:/bin/sh\nnobody:*:65534:65534::/:/usr/sbin/nologin\n", h.uid),
		"group":      fmt.Sprintf("root:x:0:\ntty:x:5:\nsshd:x:74:\nme:x:%d:\nnogroup:x:65534:\n", h.uid),
	} {
		testworld.Must(tb, os.WriteFile(filepath.Join(h.dir, "etc", name), []byte(text), 0o644))
	}
	for _, key := range []string{h.hostKey(), filepath.Join(h.ssh(), "id_ed25519")} {
		h.tool(tb, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me@"+h.Name, "-f", key)
	}
	for _, name := range []string{"id_ed25519", "id_ed25519.pub"} {
		testworld.Must(tb, os.Chown(filepath.Join(h.ssh(), name), h.uid, h.uid))
	}
}

// know writes the host keys of all into the user's known_hosts.
func (h *Host) know() error {
	var list strings.Builder
	for _, o := range h.world.hosts {
		key, err := os.ReadFile(o.hostKey() + ".pub")
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s,%s %s", o.Name, o.Address, key)
	}
	return h.give(filepath.Join(h.ssh(), "known_hosts"), list.String())
}

// Install puts a program on the host, under its own name.
func (h *Host) Install(tb testing.TB, program string) {
	tb.Helper()
	data := testworld.Got(os.ReadFile(program))(tb)
	file := filepath.Join(h.dir, "bin", filepath.Base(program))
	syscall.ForkLock.Lock() // see testworld.Program
	err := os.WriteFile(file+".new", data, 0o755)
	syscall.ForkLock.Unlock()
	testworld.Must(tb, err)
	testworld.Must(tb, os.Rename(file+".new", file))
}

// give writes a file that belongs to the host's user.
func (h *Host) give(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Chown(file, h.uid, h.uid)
}

func (h *Host) ssh() string     { return filepath.Join(h.dir, "home", "me", ".ssh") }
func (h *Host) hostKey() string { return filepath.Join(h.dir, "etc", "ssh_host_ed25519_key") }
