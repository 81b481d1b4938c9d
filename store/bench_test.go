package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/store"
)

// One record, from the call to the return of its commit.
func BenchmarkApply(b *testing.B) {
	db := mustOpen(b, testworld.Home(b))
	took := make([]time.Duration, 0, b.N)
	for b.Loop() {
		began := time.Now()
		mustApply(b, db, store.AddLog{Text: "x", Actor: "agent1", Part: "bench"})
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}

// A message with its delivery, by thirty-two callers at once.
func BenchmarkApplyParallel(b *testing.B) {
	db := mustOpen(b, testworld.Home(b))
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := agent.NewStart()
			mustApply(b, db, store.UpsertMessage{ID: id, From: "owner", To: "agent1", Text: "x"},
				store.UpsertDelivery{Message: id, Target: "agent1", State: store.Queued})
		}
	})
}

func mustFill(b *testing.B, db *store.DB) {
	b.Helper()
	var ops []store.Op
	for n := range 50 {
		id := agent.Clone(n + 1)
		ops = append(ops, store.UpsertActor{ID: id, Runtime: "demo", Objective: "x"})
		for s := range 5 {
			ops = append(ops, store.StartSession{Start: fmt.Sprintf("%016x", n*10+s), Actor: id, Started: store.Time(s + 1)})
		}
	}
	states := []store.DeliveryState{store.Queued, store.Claimed, store.Poisoned}
	for i := range 10_000 {
		id := fmt.Sprintf("m-%05d", i)
		to := agent.Clone(i%50 + 1)
		state := store.Delivered
		if i%10 == 0 {
			state = states[i/10%3]
		}
		ops = append(ops, store.UpsertMessage{ID: id, From: "owner", To: to, Text: "some words to an agent", Time: store.Time(i + 1)},
			store.UpsertDelivery{Message: id, Target: to, State: state, Time: store.Time(i + 1)},
			store.AddLog{Key: id, Text: "delivered", Actor: to, About: id})
	}
	for i := range 300 {
		ops = append(ops, store.UpsertTask{ID: fmt.Sprint("t-", i), Title: "x", Assignee: agent.Clone(i%50 + 1)})
	}
	mustApply(b, db, ops...)
}

// The state of 50 agents with 10,000 messages.
func BenchmarkSnapshot(b *testing.B) {
	db := mustOpen(b, testworld.Home(b))
	mustFill(b, db)
	for b.Loop() {
		s, err := db.Snapshot(b.Context())
		if err != nil || len(s.Actors) != 50 {
			b.Fatal(len(s.Actors), err)
		}
	}
}

func BenchmarkTimeline(b *testing.B) {
	db := mustOpen(b, testworld.Home(b))
	mustFill(b, db)
	for _, id := range []string{"m-05000", "agent7"} {
		b.Run(id, func(b *testing.B) {
			for b.Loop() {
				testworld.Got(db.Timeline(b.Context(), id))(b)
			}
		})
	}
}

// What a verb pays for one line on record: open, write, close.
func BenchmarkJournal(b *testing.B) {
	home := testworld.Home(b)
	mustOpen(b, home) // as beside a daemon
	for b.Loop() {
		j := store.NewJournal(home)
		testworld.Must(b, j.Record(b.Context(), store.AddLog{Text: "x"}))
		testworld.Must(b, j.Close())
	}
}

// A search that finds nothing reads all: 10,000 messages of 1 KB.
func BenchmarkFindNothing(b *testing.B) {
	home := testworld.Home(b)
	db := mustOpen(b, home)
	text := strings.Repeat("some words that are not it ", 40)
	for i := range 100 {
		ops := make([]store.Op, 100)
		for j := range ops {
			n := 100*i + j
			ops[j] = store.UpsertMessage{ID: fmt.Sprint("m-", n), From: "owner", To: "agent1", Text: text, Time: store.Time(1000 + n)}
		}
		mustApply(b, db, ops...)
	}
	for b.Loop() {
		if l, err := db.Find(b.Context(), "needle", store.Page{}); err != nil || len(l.Items) != 0 {
			b.Fatal(l, err)
		}
	}
}

// A pass over half a million old messages beside as many young ones: the whole, and how
// long its longest transaction keeps others waiting.
func BenchmarkPrune(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		home := testworld.Home(b)
		bulk(b, home, 500_000)
		db := mustOpen(b, home)
		p := &store.Pass{Before: time.Now().Add(-30 * day), Key: "k", Why: "a test"}
		b.StartTimer()
		longest := time.Duration(0)
		for !p.Done() {
			began := time.Now()
			testworld.Must(b, db.Prune(b.Context(), p))
			longest = max(longest, time.Since(began))
		}
		b.ReportMetric(float64(longest.Milliseconds()), "longest-ms")
		b.ReportMetric(float64(p.Removed["messages"]), "messages")
	}
}
