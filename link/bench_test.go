package link_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// A bare is a client of NATS without netsky: it publishes from one host, and takes on the other.
type bare struct {
	testing.TB
	js   jetstream.JetStream
	it   jetstream.MessagesContext
	dirs [2]string // where it stores at the one and at the other
	n    int
}

func mustBare(tb testing.TB, w *world) *bare {
	tb.Helper()
	nc := testworld.Got(nats.Connect("nats://"+w.at, w.admin.SignIn()))(tb)
	tb.Cleanup(nc.Close)
	b := &bare{TB: tb, js: testworld.Got(jetstream.New(nc))(tb), dirs: [2]string{tb.TempDir(), tb.TempDir()}}
	s := testworld.Got(b.js.CreateStream(tb.Context(), jetstream.StreamConfig{
		Name: "BARE", Subjects: []string{"bare"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
	}))(tb)
	c := testworld.Got(s.CreateConsumer(tb.Context(), jetstream.ConsumerConfig{Durable: "bare", AckPolicy: jetstream.AckExplicitPolicy}))(tb)
	b.it = testworld.Got(c.Messages(jetstream.PullMaxMessages(256)))(tb)
	tb.Cleanup(b.it.Stop)
	return b
}

// store does what makes a message durable: write, fsync, link, unlink, fsync of the directory.
func (b *bare) store(at int, data []byte) {
	b.n++
	part, name := filepath.Join(b.dirs[at], fmt.Sprint(".", b.n)), filepath.Join(b.dirs[at], fmt.Sprint(b.n))
	f := testworld.Got(os.Create(part))(b)
	testworld.Got(f.Write(data))(b)
	testworld.Must(b, f.Sync())
	f.Close()
	testworld.Must(b, os.Link(part, name))
	testworld.Must(b, os.Remove(part))
	d := testworld.Got(os.Open(b.dirs[at]))(b)
	testworld.Must(b, d.Sync())
	d.Close()
}

// one carries one message, and returns how long that took.
func (b *bare) one(data []byte) time.Duration {
	began := time.Now()
	b.store(0, data)
	testworld.Got(b.js.Publish(b.Context(), "bare", data))(b)
	b.takeOne()
	return time.Since(began)
}

func (b *bare) takeOne() {
	m := testworld.Got(b.it.Next(jetstream.NextMaxWait(30 * time.Second)))(b)
	b.store(1, m.Data())
	testworld.Must(b, m.Ack())
}

// many publishes messages as fast as it can, and takes them.
func (b *bare) many(list [][]byte) time.Duration {
	began := time.Now()
	go func() {
		for i, data := range list {
			if _, err := b.js.PublishAsync("bare", data); err != nil {
				b.Error(err)
			}
			if i%256 == 255 {
				<-b.js.PublishAsyncComplete()
			}
		}
	}()
	for range list {
		b.takeOne()
	}
	return time.Since(began)
}

func mustBenchWorld(b *testing.B) (*world, *bare) {
	if os.Getenv("NETSKY_BENCH") == "" {
		b.Skip("NETSKY_BENCH=1 measures")
	}
	w := mustWorldIn(b, testworld.Home, "laptop", "build1")
	return w, mustBare(b, w)
}

// BenchmarkCarry measures a message from its being written on one host until it is in an inbox
// on the other.
func BenchmarkCarry(b *testing.B) {
	w, bare := mustBenchWorld(b)
	laptop, build1 := w.hosts[0], w.hosts[1]
	r := testworld.Got(build1.bus.Receive(b.Context(), "agent1", bus.ReceiveOptions{}))(b)
	defer r.Close()
	var ours, theirs []time.Duration
	text := strings.Repeat("x", 500)
	next := func() *bus.Delivery {
		ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
		defer cancel()
		return testworld.Got(r.Next(ctx))(b)
	}
	for b.Loop() {
		began := time.Now()
		laptop.send(agent.Owner, "agent1@build1", text)
		d := next()
		ours = append(ours, time.Since(began))
		testworld.Must(b, d.Confirm())
		data := testworld.Got(d.Envelope().MarshalJSON())(b)
		theirs = append(theirs, bare.one(data))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	p50 := func(list []time.Duration) float64 { return float64(list[len(list)/2].Microseconds()) / 1000 }
	b.ReportMetric(p50(ours), "ours-ms")
	b.ReportMetric(p50(theirs), "bare-ms")
	b.ReportMetric(p50(ours)/p50(theirs), "ratio")
}

// BenchmarkDrain measures how fast a backlog is carried.
func BenchmarkDrain(b *testing.B) {
	w, bare := mustBenchWorld(b)
	laptop, build1 := w.hosts[0], w.hosts[1]
	const n = 10_000
	for b.Loop() {
		laptop.stop()
		list := make([][]byte, n)
		for i := range list {
			e := envelope.Envelope{From: agent.Owner, To: "agent1@build1", Text: fmt.Sprint(i, strings.Repeat("x", 500)), Time: time.Now()}
			testworld.Must(b, testworld.Err(laptop.bus.Send(b.Context(), e)))
			list[i] = testworld.Got(e.MarshalJSON())(b)
		}
		theirs := bare.many(list)
		began := time.Now()
		laptop.link()
		for testworld.Got(build1.bus.Count("agent1", bus.Inbox))(b) < n { // the benchmark waits for what it measures
			time.Sleep(10 * time.Millisecond)
		}
		ours := time.Since(began)
		b.ReportMetric(float64(n)/ours.Seconds(), "ours/s")
		b.ReportMetric(float64(n)/theirs.Seconds(), "bare/s")
		b.ReportMetric(theirs.Seconds()/ours.Seconds(), "rate-ratio")
	}
}
