package bus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
)

// The benchmarks measure a path of ours and the bare system calls of the same
// path in turns, in one run, and report the ratio of the medians: the machine's
// mood cancels out.

// A bare is a directory to which one writes with nothing but system calls.
type bare struct {
	tb  testing.TB
	dir int
	n   int
}

func mustBare(tb testing.TB, path string) *bare {
	tb.Helper()
	testworld.Must(tb, os.MkdirAll(path, 0o700))
	return &bare{tb: tb, dir: mustDirFD(tb, path)}
}

func mustDirFD(tb testing.TB, path string) int {
	tb.Helper()
	fd := testworld.Got(unix.Open(path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0))(tb)
	tb.Cleanup(func() { unix.Close(fd) })
	return fd
}

// send is write, fsync, link, unlink, fsync of the directory.
func (f *bare) send(prefix string, data []byte) string {
	f.n++
	name := fmt.Sprintf("%020d-%010d-%s-%010d-from-agent0.json", time.Now().UnixNano(), os.Getpid(), prefix, f.n) // as long as ours
	temp := "." + name + ".tmp"
	fd, err := unix.Openat(f.dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err == nil {
		_, err = unix.Write(fd, data)
	}
	if err == nil {
		err = unix.Fsync(fd)
	}
	unix.Close(fd)
	if err == nil {
		err = unix.Linkat(f.dir, temp, f.dir, name, 0)
	}
	if err == nil {
		err = unix.Unlinkat(f.dir, temp, 0)
	}
	if err == nil {
		err = unix.Fsync(f.dir)
	}
	testworld.Equal(f.tb, err, nil)
	return name
}

func median(list []time.Duration) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// report gives the medians and their ratio. A disk has moods that last for
// seconds and differ by a factor of three, so the ratio is taken in blocks of
// neighbouring pairs, and the median of the blocks' ratios counts.
func report(b *testing.B, ours, floor []time.Duration) {
	var ratios []float64
	for block := range slices.Chunk(indices(len(ours)), 100) {
		first, end := block[0], block[len(block)-1]+1
		ratios = append(ratios, float64(median(ours[first:end]))/float64(median(floor[first:end])))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(float64(median(ours).Nanoseconds())/1e3, "ours-µs")
	b.ReportMetric(float64(median(floor).Nanoseconds())/1e3, "bare-µs")
	b.ReportMetric(0, "ns/op")
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

var kilobyte = strings.Repeat("All work and no play makes Jack a dull boy. ", 22)

// BenchmarkSend: Send's own return, at most 1.15 of the bare calls. The
// sender's inbox is emptied now and then, as a receiver would.
func BenchmarkSend(b *testing.B) {
	for _, from := range []agent.ID{agent.Owner, agent.Root} {
		b.Run(string(from), func(b *testing.B) {
			// An agent's sends are counted; a clock that runs keeps it below its brake.
			now := time.Now()
			clock := func() time.Time { now = now.Add(2 * time.Second); return now }
			s, h := mustBus(b, bus.Options{Now: clock}, agent.Clone(1))
			floor := mustBare(b, h.Path("channels/agent/bare/inbox"))
			e := message(from, agent.Clone(1), kilobyte)
			data, _ := e.MarshalJSON()
			ours, bares := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
			for i := range b.N {
				t0 := time.Now()
				if i%2 == 0 {
					floor.send("xxxxxxxx", data)
					bares = append(bares, time.Since(t0))
					t0 = time.Now()
				}
				mustSend(b, s, e)
				ours = append(ours, time.Since(t0))
				if i%2 == 1 {
					t0 = time.Now()
					floor.send("xxxxxxxx", data)
					bares = append(bares, time.Since(t0))
				}
				if i%16 == 15 {
					mustEmpty(b, h.Path(home.Mailbox(agent.Clone(1)), "inbox"))
					mustEmpty(b, h.Path("channels/agent/bare/inbox"))
				}
			}
			report(b, ours, bares)
		})
	}
}

func mustEmpty(tb testing.TB, dir string) {
	tb.Helper()
	list := testworld.Got(filepath.Glob(filepath.Join(dir, "*.json")))(tb)
	for _, name := range list {
		os.Remove(name)
	}
}

// BenchmarkWriters: 8 writers to 32 mailboxes, envelopes a second; at least 0.8
// of the bare calls.
func BenchmarkWriters(b *testing.B) {
	const writers, boxes = 8, 32
	s, h := mustBus(b, bus.Options{})
	var floors [writers][boxes]*bare
	for i := range boxes {
		testworld.Must(b, s.Make(agent.Clone(i+1)))
		for w := range writers {
			floors[w][i] = mustBare(b, h.Path(fmt.Sprintf("bare/%d", i)))
		}
	}
	e := message(agent.Owner, agent.Clone(1), kilobyte)
	data, _ := e.MarshalJSON()
	round := func(send func(w, i int)) time.Duration {
		began := time.Now()
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range boxes {
					send(w, (i+4*w)%boxes)
				}
			})
		}
		wg.Wait()
		return time.Since(began)
	}
	ours, bares := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
	for n := range b.N {
		ours = append(ours, round(func(_, i int) {
			if _, err := s.Send(b.Context(), message(agent.Owner, agent.Clone(i+1), kilobyte)); err != nil {
				b.Error(err)
			}
		}))
		bares = append(bares, round(func(w, i int) { floors[w][i].send(fmt.Sprintf("%03d-%04d", w, n), data) }))
		for i := range boxes {
			mustEmpty(b, h.Path(home.Mailbox(agent.Clone(i+1)), "inbox"))
			mustEmpty(b, h.Path(fmt.Sprintf("bare/%d", i)))
		}
	}
	o, f := median(ours), median(bares)
	b.ReportMetric(float64(f)/float64(o), "rate-ratio")
	b.ReportMetric(writers*boxes/o.Seconds(), "ours/s")
	b.ReportMetric(writers*boxes/f.Seconds(), "bare/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkClaimFull: a claim beside 100,000 files in delivered/, at most 1.1
// of one beside none.
func BenchmarkClaimFull(b *testing.B) {
	s, h := mustBus(b, bus.Options{}, agent.Clone(1), agent.Clone(2))
	full := h.Path(home.Mailbox(agent.Clone(1)), "delivered")
	for i := range 100_000 {
		name := fmt.Sprintf("%020d-%010d-%08x-%010d-from-agent0.json", i, 1, 0, i)
		testworld.Must(b, os.WriteFile(filepath.Join(full, name), nil, 0o600))
	}
	var receivers [2]*bus.Receiver
	for i := range receivers {
		receivers[i] = mustReceive(b, s, agent.Clone(i+1), bus.ReceiveOptions{})
	}
	b.ResetTimer()
	var took [2][]time.Duration
	for range b.N {
		for i, r := range receivers {
			mustSend(b, s, message(agent.Owner, agent.Clone(i+1), kilobyte))
			t0 := time.Now()
			mustConfirm(b, mustNext(b, r))
			took[i] = append(took[i], time.Since(t0))
		}
	}
	report(b, took[0], took[1])
}

// BenchmarkFindAnswer: the look of one who waits for an answer, beside 100,000
// files that were delivered before the question was sent.
func BenchmarkFindAnswer(b *testing.B) {
	s, h := mustBus(b, bus.Options{}, agent.Clone(1))
	full := h.Path(home.Mailbox(agent.Clone(1)), "delivered")
	for i := range 100_000 {
		name := fmt.Sprintf("%020d-%010d-%08x-%010d-from-agent0.json", i, 1, 0, i)
		testworld.Must(b, os.WriteFile(filepath.Join(full, name), nil, 0o600))
	}
	b.ResetTimer()
	for b.Loop() {
		if _, found, err := s.FindAnswer(b.Context(), "", agent.Clone(1), "m-1", time.Now()); found || err != nil {
			b.Fatal(found, err)
		}
	}
}
