package testhosts

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// device is each host's network interface.
const device = "eth0"

// A port is where a host is connected.
type port struct {
	address netip.Addr
	tun     *os.File
}

// A wire passes packets between the hosts. Its zero value is ready.
type wire struct {
	mu    sync.Mutex
	ports map[netip.Addr]*port
	cut   map[[2]netip.Addr]bool // from, to
	lines map[netip.Addr]line
}

// A line is how bad the way between a host and the others is.
type line struct {
	delay, jitter time.Duration
	loss          float64
}

// plug gives the network namespace of a process its interface.
func (w *wire) plug(address string, pid int) (*port, error) {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return nil, err
	}
	type result struct {
		tun *os.File
		err error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		tun, err := open(pid)
		made <- result{tun, err}
	}()
	r := <-made
	if r.err != nil {
		return nil, fmt.Errorf("%s: %w", device, r.err)
	}
	p := &port{a, r.tun}
	w.mu.Lock()
	if w.ports == nil {
		w.ports, w.cut, w.lines = make(map[netip.Addr]*port), make(map[[2]netip.Addr]bool), make(map[netip.Addr]line)
	}
	w.ports[a] = p
	w.mu.Unlock()
	go w.carry(p)
	return p, nil
}

// open makes the interface in the network namespace of a process, with a thread that stays there.
func open(pid int) (*os.File, error) {
	ns, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(ns)
	if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(device)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), device), nil
}

func (w *wire) unplug(p *port) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ports, p.address)
	p.tun.Close()
}

// carry passes on what a host sends, until it is unplugged.
func (w *wire) carry(p *port) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := p.tun.Read(buffer)
		if err != nil {
			return
		}
		if n < 20 || buffer[0]>>4 != 4 { // IPv4 alone
			continue
		}
		to := netip.AddrFrom4([4]byte(buffer[16:20]))
		wait, ok := w.way(p.address, to)
		switch {
		case !ok:
		case wait > 0:
			packet := append([]byte(nil), buffer[:n]...)
			time.AfterFunc(wait, func() { w.deliver(to, packet) })
		default:
			w.deliver(to, buffer[:n])
		}
	}
}

// way decides how long a packet takes, or that it is lost.
func (w *wire) way(from, to netip.Addr) (wait time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut[[2]netip.Addr{from, to}] {
		return 0, false
	}
	for _, a := range []netip.Addr{from, to} {
		l := w.lines[a]
		if rand.Float64() < l.loss {
			return 0, false
		}
		wait += l.delay
		if l.jitter > 0 {
			wait += rand.N(l.jitter)
		}
	}
	return wait, true
}

func (w *wire) deliver(to netip.Addr, packet []byte) {
	w.mu.Lock()
	p := w.ports[to]
	w.mu.Unlock()
	if p != nil {
		p.tun.Write(packet) // one that can't be taken is lost, as on any network
	}
}

// Cut has the network lose all that one host sends another: connections stay half-open.
// Two cuts make a partition.
func (w *World) Cut(from, to string) {
	w.set(func() { w.wire.cut[[2]netip.Addr{w.address(from), w.address(to)}] = true })
}

// Slow delays all packets from and to a host, by up to jitter more for each, so that they
// overtake each other, and loses that share of them.
func (w *World) Slow(host string, delay, jitter time.Duration, loss float64) {
	w.set(func() { w.wire.lines[w.address(host)] = line{delay, jitter, loss} })
}

// Heal ends what Cut and Slow have begun.
func (w *World) Heal() {
	w.set(func() {
		clear(w.wire.cut)
		clear(w.wire.lines)
	})
}

func (w *World) set(change func()) {
	w.wire.mu.Lock()
	defer w.wire.mu.Unlock()
	change()
}

func (w *World) address(host string) netip.Addr { return netip.MustParseAddr(w.Host(host).Address) }
