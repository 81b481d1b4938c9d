package bus_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus"
	"netsky/internal/testworld"
)

// bareClaims watches a directory with inotify and renames what comes to
// another, in a goroutine of its own that blocks in read as C would.
func (f *bare) bareClaims(path string, to int) <-chan time.Time {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, path, unix.IN_CREATE|unix.IN_MOVED_TO)
	}
	testworld.Must(f.tb, err)
	claims := make(chan time.Time, 1)
	go func() {
		defer unix.Close(fd)
		buf := make([]byte, 4096)
		for {
			n, err := unix.Read(fd, buf)
			if err != nil || n < unix.SizeofInotifyEvent {
				return
			}
			for at := 0; at < n; {
				size := int(buf[at+12]) | int(buf[at+13])<<8
				name := strings.TrimRight(string(buf[at+16:at+16+size]), "\x00")
				at += unix.SizeofInotifyEvent + size
				if strings.HasSuffix(name, ".stop") {
					return
				}
				if name[0] == '.' {
					continue
				}
				if err := unix.Renameat(f.dir, name, to, name); err != nil {
					f.tb.Error(err)
				}
				claims <- time.Now()
			}
		}
	}()
	f.tb.Cleanup(func() { os.WriteFile(filepath.Join(path, "x.stop"), nil, 0o600) })
	return claims
}

// BenchmarkSendToClaim: the call of Send until the claim's rename has returned,
// at most 1.15 of the bare calls.
func BenchmarkSendToClaim(b *testing.B) {
	s, home := mustBus(b, bus.Options{}, agent.Clone(1))
	r := mustReceive(b, s, agent.Clone(1), bus.ReceiveOptions{})
	floor := mustBare(b, home.Path("bare"))
	mustBare(b, home.Path("claimed"))
	claims := floor.bareClaims(home.Path("bare"), mustDirFD(b, home.Path("claimed")))
	e := message(agent.Owner, agent.Clone(1), kilobyte)
	data, _ := e.MarshalJSON()
	got := make(chan time.Time)
	next := make(chan struct{})
	go func() {
		for range next {
			d, err := r.Next(b.Context())
			at := r.LastClaim()
			if err == nil {
				err = d.Confirm()
			}
			if err != nil {
				b.Error(err)
			}
			got <- at
		}
	}()
	defer close(next)
	ours, bares := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
	for range b.N {
		next <- struct{}{}
		t0 := time.Now()
		mustSend(b, s, e)
		ours = append(ours, (<-got).Sub(t0))
		t0 = time.Now()
		floor.send("xxxxxxxx", data)
		bares = append(bares, (<-claims).Sub(t0))
	}
	report(b, ours, bares)
}
