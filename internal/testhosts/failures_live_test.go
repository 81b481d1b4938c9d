//go:build linux && live

package testhosts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testhosts"
	"netsky/internal/testworld"
)

// small gives a host a disk of its own for its netsky home.
func (s *soak) small(h *testhosts.Host) {
	s.Helper()
	for _, cmd := range [][]string{
		{"mkdir", "-m", "700", "-p", "/home/me/.netsky"}, {"mount", "-t", "tmpfs", "-o", "size=128m,mode=700", "disk", "/home/me/.netsky"}, {"chown", "me:me", "/home/me/.netsky"},
	} {
		testworld.Must(s, run(h.As("root", cmd...)))
	}
}

// fill leaves no space on that disk, until the returned function is called.
func (s *soak) fill(h *testhosts.Host) (free func()) {
	s.Helper()
	const file = ".netsky/run/scratch/full"
	_ = run(h.Command("sh", "-c", "mkdir -p .netsky/run/scratch; dd if=/dev/zero of="+file+" bs=64k; dd if=/dev/zero of="+file+"2 bs=1")) // fails when it is full
	return func() { testworld.Must(s, run(h.Command("rm", file, file+"2"))) }
}

// A full disk, of whoever it is, loses no mail: it is said, and mail goes on once there is space.
func TestFullDisk(t *testing.T) {
	s := &soak{T: t, world: testhosts.New(t, "laptop", "build1", "build2")}
	hosts := s.world.Hosts()
	owner := hosts[0]
	for _, h := range hosts {
		s.small(h)
		s.up(h)
	}
	owner.Run(t, "link", "serve", "--name", owner.Name)
	for _, h := range hosts[1:] {
		s.world.Allow(h.Name, owner.Name)
		testworld.Wait(t, h.Name+" joins", func() bool {
			return s.join(owner, h, []string{"netsky", "link", "join", "ssh:me@" + owner.Name, "--name", h.Name, "--yes"}) == ""
		})
	}
	for _, h := range hosts {
		testworld.WaitOr(t, func() bool {
			return strings.Contains(h.Run(t, "link"), "connected since") && len(strings.Fields(string(testworld.Got(h.Command("ls", ".netsky/channels/link").Output())(t)))) == 2
		}, func() string { return h.Name + ": " + h.Run(t, "link") })
	}
	from, to := hosts[2], hosts[1]
	sent := 0
	send := func() {
		t.Helper()
		testworld.Must(t, run(from.Command("env", "AGENT_N=1", "netsky", "channel", "send", "agent1@"+to.Name, fmt.Sprint("message ", sent, "."))))
		sent++
	}
	arrived := func() (list []string) {
		out, _ := to.Command("sh", "-c", "cat .netsky/channels/agent/agent1/*/*.json").Output() // one may be moved meanwhile
		for i := range sent {
			if text := fmt.Sprint("message ", i, "."); strings.Contains(string(out), text) {
				list = append(list, text)
			}
		}
		return list
	}
	for _, full := range []*testhosts.Host{to, owner, from} {
		send()
		testworld.Wait(t, "mail goes", func() bool { return len(arrived()) == sent })
		free := s.fill(full)
		for full != from && sent%4 != 0 {
			send()
		}
		testworld.WaitOr(t, func() bool { return strings.Contains(full.Run(t, "link"), "no space left on device") }, func() string { return full.Run(t, "link") })
		free()
		testworld.WaitOr(t, func() bool { return len(arrived()) == sent }, func() string {
			why := fmt.Sprint(arrived())
			for _, h := range hosts {
				why += "\n" + h.Name + ": " + h.Run(t, "link")
			}
			return why
		})
	}
}

// mustLater builds a netsky of the next protocol.
func mustLater(t *testing.T) (program string) {
	t.Helper()
	root, dir := testworld.Got(filepath.Abs("../.."))(t), t.TempDir()
	file := filepath.Join(root, "link/wire/wire.go")
	was := string(testworld.Got(os.ReadFile(file))(t))
	now := strings.Replace(was, "const Protocol = 1\n", "const Protocol = 2\n", 1)
	if now == was {
		t.Fatal(file, "names no protocol")
	}
	overlay, next := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "wire.go")
	testworld.Must(t, os.WriteFile(next, []byte(now), 0o600))
	testworld.Must(t, os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace":{%q:%q}}`, file, next), 0o600))
	program = filepath.Join(dir, "netsky")
	testworld.Must(t, testworld.Build("-overlay", overlay, "-o", program))
	return program
}

// Mail of a later netsky waits until its receiver is one, too; mail to it arrives.
func TestLaterNetsky(t *testing.T) {
	later := mustLater(t)
	s := &soak{T: t, world: testhosts.New(t, "laptop", "build1")}
	laptop, build1 := s.world.Host("laptop"), s.world.Host("build1")
	s.up(laptop)
	s.up(build1)
	s.team()
	update := func(h *testhosts.Host) {
		t.Helper()
		h.Install(t, later)
		h.Run(t, "daemon", "restart")
	}
	send := func(from, to *testhosts.Host, text string) {
		t.Helper()
		testworld.Must(t, run(from.Command("env", "AGENT_N=1", "netsky", "channel", "send", "agent1@"+to.Name, text)))
	}
	arrived := func(h *testhosts.Host, text string) bool {
		out, _ := h.Command("sh", "-c", "cat .netsky/channels/agent/agent1/*/*.json").Output() // one may be moved meanwhile
		return strings.Contains(string(out), text)
	}
	update(build1)
	send(laptop, build1, "of the one before")
	testworld.Wait(t, "it arrives", func() bool { return arrived(build1, "of the one before") })
	send(build1, laptop, "of the next")
	testworld.Wait(t, "it is said", func() bool {
		return strings.Contains(laptop.Run(t, "link"), "mail from build1, since") && strings.Contains(laptop.Run(t, "link"), "is of protocol 2, and this netsky speaks 1: update this one")
	})
	testworld.Equal(t, arrived(laptop, "of the next"), false, "it has arrived")
	update(laptop)
	testworld.Wait(t, "it arrives", func() bool { return arrived(laptop, "of the next") })
	send(build1, laptop, "of two of the next")
	testworld.Wait(t, "it arrives", func() bool { return arrived(laptop, "of two of the next") })
}
