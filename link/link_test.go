package link_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/team"
	"netsky/link/wire"
)

// Mail goes both ways, in order, and its answers come back.
func TestMail(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	var want, back []string
	for i := range 40 {
		laptop.send("agent0", "agent1@build1", fmt.Sprint(i))
		want = append(want, fmt.Sprint("agent0@laptop: ", i))
		build1.send("agent1", "agent0@laptop", fmt.Sprint(i))
		back = append(back, fmt.Sprint("agent1@build1: ", i))
	}
	testworld.Wait(t, "all has arrived", func() bool { return len(build1.texts("agent1")) == 40 && len(laptop.texts("agent0")) == 40 })
	testworld.EqualList(t, build1.texts("agent1"), want, "in order")
	testworld.EqualList(t, laptop.texts("agent0"), back, "in order")
	testworld.Wait(t, "what was sent on is filed", func() bool { return laptop.waiting("agent1@build1") == 0 })
	id := laptop.send("owner", "agent9@build1", "is anybody there?")
	testworld.Wait(t, "the answer", func() bool { return len(laptop.texts("owner")) == 1 })
	testworld.Contains(t, laptop.texts("owner")[0], "agent9@build1: not delivered: agent9: no mailbox", "of "+id)
	build1.send("owner", "agent0@laptop", "do it")
	testworld.Wait(t, "the answer", func() bool { return len(build1.texts("owner")) == 1 })
	testworld.Contains(t, build1.texts("owner")[0], "agent0@laptop: not delivered: build1 is a worker, so nobody there speaks for the owner")
	testworld.Wait(t, "the report", func() bool {
		r, err := link.LoadReport(laptop.home)
		return err == nil && r.Connected && len(r.Troubles) == 0 && r.Hosts["build1"].Sent == 42 && r.Hosts["build1"].Received == 41
	})
}

// The server is killed and comes back, and so are the links: nothing is lost, doubled or out of order.
func TestOutages(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build1 := w.hosts[0], w.hosts[1]
	var want []string
	n := 0
	send := func() {
		for range 30 {
			laptop.send("owner", "agent1@build1", fmt.Sprint(n)) // no brake is in its way
			want = append(want, fmt.Sprint("owner@laptop: ", n))
			n++
		}
	}
	send()
	w.end()
	send()
	w.serve()
	send()
	build1.stop()
	send()
	laptop.stop()
	send()
	build1.link()
	laptop.link()
	send()
	testworld.Wait(t, "all has arrived", func() bool { return len(build1.texts("agent1")) >= n })
	testworld.EqualList(t, build1.texts("agent1"), want, "once, in order")
	testworld.Wait(t, "all is filed", func() bool { return laptop.waiting("agent1@build1") == 0 })
}

// A server that was restored from an earlier copy gets again what it has lost.
func TestRestored(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	send := func(n int) {
		laptop.send("owner", "agent1@build1", fmt.Sprint(n))
		testworld.Wait(t, "the server has it", func() bool { return laptop.waiting("agent1@build1") == 0 })
	}
	send(0)
	testworld.Wait(t, "the first has arrived", func() bool { return len(build1.texts("agent1")) == 1 })
	w.end()
	copied := t.TempDir()
	testworld.Must(t, os.CopyFS(copied, os.DirFS(w.store)))
	w.serve()
	build1.stop()
	send(1)
	send(2)
	testworld.Wait(t, "what was sent is on record", func() bool {
		data, err := os.ReadFile(laptop.home.Path("state/link/sent.json"))
		return err == nil && strings.Contains(string(data), `"last":3`)
	})
	w.end()
	w.store = copied
	w.serve()
	build1.link()
	laptop.send("owner", "agent1@build1", "3")
	want := []string{"owner@laptop: 0", "owner@laptop: 1", "owner@laptop: 2", "owner@laptop: 3"}
	testworld.Wait(t, "all has arrived", func() bool { return len(build1.texts("agent1")) >= len(want) })
	testworld.EqualList(t, build1.texts("agent1"), want, "once, in order")
	testworld.Wait(t, "the owner is told", func() bool {
		return strings.Contains(strings.Join(laptop.texts("owner"), ""), "restored from an earlier copy")
	})
}

// What the server has, but was not filed as the daemon was killed, keeps nothing back that is behind it, and has no
// second effect.
func TestNotFiled(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	const n = 20
	var want []string
	send := func() {
		for range n {
			laptop.send(agent.Owner, "agent1@build1", fmt.Sprint(len(want)))
			want = append(want, fmt.Sprint("owner@laptop: ", len(want)))
		}
	}
	record := laptop.home.Path("state/link/sent.json")
	laptop.send(agent.Owner, "agent0@build1", "the record is there")
	testworld.Wait(t, "it is filed", func() bool { return laptop.waiting("agent0@build1") == 0 })
	testworld.Must(t, os.Remove(record))
	testworld.Must(t, os.Mkdir(record, 0o700)) // it can't be written, so nothing is filed
	send()
	testworld.Wait(t, "the server has them", func() bool { return len(build1.texts("agent1")) == n })
	laptop.stop()
	testworld.Equal(t, laptop.waiting("agent1@build1"), n, "messages that are not filed")
	testworld.Must(t, os.Remove(record))
	send()
	nc := w.adminJS().Conn()
	published := testworld.Got(nc.SubscribeSync(wire.MailSubject("laptop", "build1")))(t)
	testworld.Must(t, nc.Flush())
	laptop.link()
	testworld.Wait(t, "all arrives", func() bool { return len(build1.texts("agent1")) >= len(want) })
	testworld.Wait(t, "all is filed", func() bool { return laptop.waiting("agent1@build1") == 0 })
	testworld.EqualList(t, build1.texts("agent1"), want, "once, in order")
	if tries, _, err := published.Pending(); err != nil || tries < 2*n || tries > 5*n {
		t.Errorf("published %d times, %v", tries, err)
	}
}

// What is too large for the server keeps nothing else back, and its sender is told.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	wide := bus.New(laptop.home, bus.Options{MaxBytes: 4 << 20})
	e := envelope.Envelope{From: agent.Root, To: "agent1@build1", Text: strings.Repeat("x", 2<<20), Time: time.Now()}
	laptop.stop()
	laptop.bus = wide
	laptop.link()
	testworld.Must(t, testworld.Err(wide.Send(t.Context(), e)))
	laptop.send(agent.Root, "agent1@build1", "small")
	testworld.Wait(t, "the small one arrives", func() bool { return len(build1.texts("agent1")) == 1 })
	testworld.Wait(t, "the sender is told", func() bool { return len(laptop.texts(agent.Root)) == 1 })
	testworld.Contains(t, laptop.texts(agent.Root)[0], "agent1@build1: not delivered to agent1@build1: too large for another host")
}

// A file that goes with a message arrives with it; one that can't is named.
func TestAttachments(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	data := bytes.Repeat([]byte("0123456789abcdef"), 100_000) // several parts
	testworld.Must(t, laptop.home.WriteFile("channels/link/build1/agent1/attach/photo.jpg", data, false))
	e := envelope.Envelope{From: agent.Owner, To: "agent1@build1", Text: "look", Time: time.Now(), Attachments: []string{"attach/photo.jpg", "attach/gone.txt", "../../../etc/passwd"}}
	testworld.Must(t, testworld.Err(laptop.bus.Send(t.Context(), e)))
	testworld.Wait(t, "it arrives", func() bool { return len(build1.texts("agent1")) == 1 })
	got := testworld.Got(build1.bus.List("agent1", bus.Inbox, 0))(t)[0].Envelope
	testworld.Len(t, got.Attachments, 1, "files")
	testworld.Equal(t, got.Text, "look\n(The file gone.txt is not there.)\n(The file ../../../etc/passwd did not come with it.)", "the text")
	testworld.Len(t, slices.Collect(maps.Keys(got.Extra)), 0, "extra fields")
	there := testworld.Got(os.ReadFile(build1.home.Path("channels/agent/agent1", got.Attachments[0])))(t)
	testworld.Equal(t, bytes.Equal(there, data), true, "the same bytes")
}

// A copy of a home carries nothing, and both are told; a home that was moved carries on.
func TestCopied(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	build1.tells(`["a"]`, `[]`)
	testworld.Wait(t, "the first has told its state", func() bool { return string(laptop.state("build1").Agents) == `["a"]` })
	copied := testworld.FastHome(t)
	testworld.Must(t, os.RemoveAll(copied.Root()))
	testworld.Must(t, os.CopyFS(copied.Root(), os.DirFS(build1.home.Root())))
	twin := &host{TB: t, name: "build1", home: copied, bus: testworld.Bus(t, copied, agent.Owner, agent.Root, "agent1")}
	twin.link()
	told := func(h *host) bool {
		r, err := link.LoadReport(h.home)
		return err == nil && strings.Contains(r.Troubles["this home"].What, "one is a copy of the other")
	}
	var heard link.State
	testworld.Wait(t, "the copy is heard of", func() bool { heard = laptop.state("build1"); return heard.Idle })
	testworld.Equal(t, string(heard.Agents), `["a"]`, "the agents, as the first has told")
	testworld.Wait(t, "both are told", func() bool { return told(twin) && told(build1) })
	for i := range 20 {
		laptop.send(agent.Owner, "agent1@build1", fmt.Sprint(i))
	}
	testworld.Wait(t, "all is at the first", func() bool { return len(build1.texts("agent1")) == 20 })
	testworld.Len(t, twin.texts("agent1"), 0, "at the copy")
	build1.stop()
	laptop.send(agent.Owner, "agent1@build1", "after the move")
	testworld.Wait(t, "the other carries on", func() bool { return len(twin.texts("agent1")) == 1 })
}

// A host that this one can reach by ssh, and that can't reach this one, uses a tunnel from here.
func TestTunnelled(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	sshd := testworld.StartSSHD(t, "NETSKY_HOME="+build1.home.Root())
	testworld.Must(t, os.MkdirAll(build1.home.Path("run"), 0o700))
	for _, h := range w.hosts {
		h.stop()
		h.environ = []string{"PATH=" + sshd.Bin + ":" + os.Getenv("PATH")}
	}
	testworld.Must(t, laptop.home.Save(link.ServedFile, map[string]string{"address": "nats://" + w.at}, false))
	testworld.Must(t, link.Tunnels{"build1": {Name: "build1", Dest: "build1"}}.Save(laptop.home))
	laptop.reachBy("")
	build1.reachBy("tunnel:")
	laptop.link()
	build1.link()
	laptop.send(agent.Owner, "agent1@build1", "by the tunnel")
	testworld.Wait(t, "it arrives", func() bool { return len(build1.texts("agent1")) == 1 })
	if n := sshd.Signal(syscall.SIGKILL); n == 0 {
		t.Error("there was no connection by ssh")
	}
	laptop.send(agent.Owner, "agent1@build1", "by the next tunnel")
	testworld.Wait(t, "it arrives", func() bool { return len(build1.texts("agent1")) == 2 })

	// It stays open while the team changes.
	socket := build1.home.Path(link.Socket)
	was := testworld.Got(os.Lstat(socket))(t)
	admit := func(name string) {
		k := testworld.Got(team.MakeKey(testworld.Home(t)))(t)
		testworld.Got(team.Admit(laptop.home, team.Host{Name: name, Key: k.Public(), Role: team.Worker}))(t)
		testworld.Wait(t, "the owner's host has told of "+name, func() bool {
			r, err := link.LoadReport(laptop.home)
			return err == nil && r.Connected && testworld.Err(os.Stat(laptop.home.Path("channels/link", name))) == nil
		})
	}
	admit("build3")
	laptop.send(agent.Owner, "agent1@build1", "by the same tunnel")
	testworld.Wait(t, "it arrives", func() bool { return len(build1.texts("agent1")) == 3 })
	is := testworld.Got(os.Lstat(socket))(t)
	testworld.Equal(t, os.SameFile(was, is) && was.ModTime().Equal(is.ModTime()), true, "the socket is the same")

	testworld.Must(t, link.Tunnels{}.Save(laptop.home))
	testworld.Wait(t, "the tunnel ends", func() bool {
		r, err := link.LoadReport(build1.home)
		return err == nil && !r.Connected && strings.HasPrefix(r.Why, "the tunnel from the owner's host is down")
	})

	// The team changes meanwhile, which the host hears of once it is back.
	admit("build2")
	testworld.Must(t, link.Tunnels{"build1": {Name: "build1", Dest: "build1"}}.Save(laptop.home))
	testworld.Wait(t, "build1 knows build2", func() bool {
		_, known := testworld.Got(team.Load(build1.home))(t).Host("build2")
		return known
	})

	// It follows a server that listens elsewhere.
	w.end()
	w.at = ""
	w.serve()
	testworld.Must(t, laptop.home.Save(link.ServedFile, map[string]string{"address": "nats://" + w.at}, false))
	laptop.send(agent.Owner, "agent1@build1", "at another port")
	testworld.Wait(t, "it arrives", func() bool { return len(build1.texts("agent1")) == 4 })
}

// A host that is not connected reports that, and not also what it can't send meanwhile.
func TestTroubles(t *testing.T) {
	testworld.Equal(t, len(link.Troubles(fmt.Errorf("mail: %w", nats.ErrReconnectBufExceeded))), 0, "troubles without a connection")
	testworld.Equal(t, link.Troubles(errors.New("full"))["mail"].What, "full")
}
