//go:build live

package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

func TestRowsOfFiles(t *testing.T) {
	t.Run("row 7 huge", row07Huge)
	t.Run("row 8 growing", row08Growing)
	t.Run("row 9 no regular file", row09NoRegularFile)
	t.Run("row 10 links in the inbox", row10LinksInTheInbox)
	t.Run("row 12 hard link", row12HardLink)
	t.Run("row 15 a hundred thousand files", row15AHundredThousandFiles)
	t.Run("row 16 owners and modes", row16OwnersAndModes)
}

func row07Huge(t *testing.T) {
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	for name, size := range map[string]int64{"1g.json": 1 << 30, "10g.json": 10 << 30, "just.json": bus.DefaultMaxBytes + 1} {
		file := mustDrop(t, home, a1, bus.Inbox, name, handmade)
		testworld.Must(t, os.Truncate(file, size))
		age(t, file)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustSend(t, b, message(agent.Owner, a1, "hi"))
	mustConfirm(t, mustNext(t, r))
	testworld.Wait(t, "poison", func() bool { n, _ := b.Count(a1, bus.Poison); return n == 3 })
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
	if _, err := b.Send(t.Context(), message(agent.Owner, a1, strings.Repeat("x", bus.DefaultMaxBytes))); !errors.Is(err, envelope.ErrInvalid) {
		t.Errorf("Send of a text too long = %v", err)
	}
}

func row08Growing(t *testing.T) {
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	f := testworld.Got(os.Create(box(home, bus.Inbox, "slow.json")))(t)
	whole := newEnvelope(`"text":"` + strings.Repeat("slowly ", 40) + `"`)
	for i := 0; i < len(whole); i += 10 { // a person's typing, within the second
		testworld.Got(f.WriteString(whole[i:min(i+10, len(whole))]))(t)
		mustNoneFor(t, r, i+10 >= len(whole))
	}
	d := mustNext(t, r)
	testworld.Equal(t, d.Envelope().Text, strings.Repeat("slowly ", 40), "half delivered")
	mustConfirm(t, d)
	age(t, mustDrop(t, home, a1, bus.Inbox, "never.json", whole[:50]))
	testworld.Wait(t, "poison", func() bool { n, _ := b.Count(a1, bus.Poison); return n == 1 })
}

func row09NoRegularFile(t *testing.T) {
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	testworld.Must(t, unix.Mkfifo(box(home, bus.Inbox, "fifo.json"), 0o600))
	testworld.Must(t, os.Mkdir(box(home, bus.Inbox, "dir.json"), 0o700))
	s, err := net.Listen("unix", box(home, bus.Inbox, "socket.json"))
	testworld.Must(t, err)
	defer s.Close()
	want := 3
	if unix.Mknod(box(home, bus.Inbox, "zero.json"), unix.S_IFCHR|0o600, 1<<8|5) == nil { // root's only
		want++
	}
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustDrop(t, home, a1, bus.Inbox, "x.json", handmade)
	mustConfirm(t, mustNext(t, r))
	testworld.Wait(t, "poison", func() bool { n, _ := b.Count(a1, bus.Poison); return n == want })
	list, err := b.List(a1, bus.Poison, 0)
	if err != nil || len(list) != want || !strings.Contains(list[0].Why, "not a regular file") {
		t.Errorf("List = %+v, %v", list, err)
	}
	testworld.Must(t, b.PoisonDrop(a1, "dir.json"))
	testworld.Must(t, b.PoisonDrop(a1, "fifo.json"))
}

func row10LinksInTheInbox(t *testing.T) {
	b, home := mustBus(t, bus.Options{}, agent.Root, a1, agent.Clone(2))
	other := mustDrop(t, home, agent.Clone(2), bus.Inbox, "y.json", handmade)
	for name, target := range map[string]string{
		"passwd.json": "/etc/passwd", "y.json": "../../agent2/inbox/y.json", "none.json": "nowhere", "loop.json": "loop.json",
	} {
		testworld.Must(t, os.Symlink(target, box(home, bus.Inbox, name)))
	}
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	testworld.Wait(t, "poison", func() bool { n, _ := b.Count(a1, bus.Poison); return n == 4 })
	mustNone(t, r)
	testworld.Equal(t, string(testworld.Got(os.ReadFile(other))(t)), handmade, "the target")
}

func row12HardLink(t *testing.T) {
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	good, bad := home.Path("good"), home.Path("bad")
	testworld.Must(t, os.WriteFile(good, []byte(handmade), 0o640))
	testworld.Must(t, os.WriteFile(bad, []byte("secret"), 0o640))
	age(t, bad)
	testworld.Must(t, os.Link(good, box(home, bus.Inbox, "good.json")))
	testworld.Must(t, os.Link(bad, box(home, bus.Inbox, "bad.json")))
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustConfirm(t, mustNext(t, r))
	testworld.Wait(t, "poison", func() bool { n, _ := b.Count(a1, bus.Poison); return n == 1 })
	for file, want := range map[string]string{good: handmade, bad: "secret"} {
		data, err := os.ReadFile(file)
		info, _ := os.Stat(file)
		if err != nil || string(data) != want || info.Mode() != 0o640 {
			t.Errorf("%s: %q, %v, %v", file, data, err, info.Mode())
		}
	}
}

func row15AHundredThousandFiles(t *testing.T) {
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	for i := range 100_000 {
		name := fmt.Sprintf("%020d-%010d-%08x-%010d-from-agent0.json", 1_000_000-i, 1, 0, i)
		if i%10 == 0 {
			name = fmt.Sprintf("by-hand-%d.json", i)
		}
		mustDrop(t, home, a1, bus.Inbox, name, handmade)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	last := ""
	for i := range 5000 { // more than two batches
		d := mustNext(t, r)
		if i == 0 {
			t.Logf("the first after %v", time.Since(began))
		}
		runtime.ReadMemStats(&after)
		mustConfirm(t, d)
		if e := d.Envelope(); e.ID == last {
			t.Fatalf("%s twice", e.ID)
		}
		last = d.Envelope().ID
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+64<<20 {
		t.Errorf("%d bytes in use", after.HeapAlloc-before.HeapAlloc)
	}
	names, err := b.Names(a1, bus.Inbox)
	if err != nil || len(names) != 95_000 || names[0] != fmt.Sprintf("%020d-%010d-%08x-%010d-from-agent0.json", 905_556, 1, 0, 94_444) {
		t.Errorf("%d left, the first is %s, %v", len(names), names[0], err)
	}
}

func row16OwnersAndModes(t *testing.T) {
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	for name, mode := range map[string]os.FileMode{"644.json": 0o644, "664.json": 0o664, "666.json": 0o666, "602.json": 0o602} {
		testworld.Must(t, os.Chmod(mustDrop(t, home, a1, bus.Inbox, name, handmade), mode))
	}
	want := 2
	if os.Getuid() == 0 { // only root can give a file away
		testworld.Must(t, os.Chown(mustDrop(t, home, a1, bus.Inbox, "foreign.json", handmade), 12345, 12345))
		want++
	}
	testworld.Must(t, os.Chmod(box(home, bus.Inbox, ""), 0o777))
	testworld.Must(t, os.Chmod(home.Root(), 0o755))
	testworld.Len(t, testworld.Got(home.Make())(t), 1, "Make")
	var said atomic.Bool
	r := mustReceive(t, b, a1, bus.ReceiveOptions{Report: func(what string, _ error) {
		said.CompareAndSwap(false, strings.Contains(what, "was open to others"))
	}})
	mustConfirm(t, mustNext(t, r))
	mustConfirm(t, mustNext(t, r))
	testworld.Wait(t, "poison", func() bool { n, _ := b.Count(a1, bus.Poison); return n == want })
	mustNone(t, r)
	if info, err := os.Stat(box(home, bus.Inbox, "")); err != nil || info.Mode().Perm() != 0o700 || !said.Load() {
		t.Errorf("the inbox: %v, %v, said: %v", info.Mode(), err, said.Load())
	}
}

// mustNoneFor looks, without waiting, whether something is handed over; whole
// says that it may be.
func mustNoneFor(tb testing.TB, r *bus.Receiver, whole bool) {
	tb.Helper()
	if whole {
		return
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Millisecond)
	defer cancel()
	if d, err := r.Next(ctx); d != nil {
		tb.Fatalf("handed over half: %+v, %v", d.Envelope(), err)
	}
}
