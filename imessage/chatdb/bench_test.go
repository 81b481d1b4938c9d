package chatdb_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
)

// BenchmarkChatArrival measures from a message's commit to its return, with the times that a user has.
func BenchmarkChatArrival(b *testing.B) {
	r := &reader{TB: b, sim: messagesim.Start(b, 15), clock: newClock()}
	r.db = chatdb.New(chatdb.Options{Path: r.sim.Path, Decode: decode})
	defer r.db.Close()
	r.next()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		at := make(chan time.Time)
		go func() {
			time.Sleep(time.Duration(i%20) * 47 * time.Millisecond) // at any moment between two looks
			r.sim.Insert(message{From: friend, Text: fmt.Sprint(i)})
			at <- time.Now()
		}()
		for len(r.next()) == 0 {
		}
		took = append(took, time.Since(<-at))
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Milliseconds()), "p95-ms")
}

// BenchmarkChatIdle measures the processor time of looking while nothing comes.
func BenchmarkChatIdle(b *testing.B) {
	sim := messagesim.Start(b, 15)
	const every = time.Millisecond
	db := chatdb.New(chatdb.Options{Path: sim.Path, Decode: decode, Every: every, Wait: time.Second})
	defer db.Close()
	batch := testworld.Got(db.Next(b.Context(), ""))(b)
	before, looks := used(b), 0
	for b.Loop() {
		testworld.Got(db.Next(b.Context(), batch.Cursor))(b)
		looks += int(time.Second / every)
	}
	perLook := (used(b) - before) / time.Duration(looks)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(perLook.Nanoseconds()), "cpu-ns/look")
	b.ReportMetric((perLook * time.Duration(time.Hour/(750*time.Millisecond))).Seconds(), "cpu-s/hour")
}

func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	testworld.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkChatBacklog measures the reading of what has come while netsky was down.
func BenchmarkChatBacklog(b *testing.B) {
	r := &reader{TB: b, sim: messagesim.Start(b, 15), clock: newClock()}
	r.open(nil)
	r.next()
	var rows []message
	for i := range 500 {
		rows = append(rows, message{From: friend, Body: fmt.Appendf(nil, "body:%d", i)})
	}
	r.sim.InsertAll(rows...)
	start := r.cursor
	r.next()
	r.clock.advance(soon)
	for b.Loop() {
		r.cursor = start
		if n := len(r.next()); n != 500 {
			b.Fatalf("%d messages", n)
		}
	}
	b.ReportMetric(float64(500*b.N)/b.Elapsed().Seconds(), "messages/s")
}
