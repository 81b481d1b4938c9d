package dashboard_test

import (
	"testing"
	"time"
)

// BenchmarkSnapshotPage is what a browser and a script wait for that want to see
// all: 50 agents with 10,000 messages on record.
func BenchmarkSnapshotPage(b *testing.B) {
	w := mustWorld(b, nil)
	w.fillMuch(b)
	for name, path := range map[string]string{"api": "/api/snapshot", "overview": "/"} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if a := w.get(b, path); a.status != 200 {
					b.Fatalf("GET %s: %d", path, a.status)
				}
				took = append(took, time.Since(began))
			}
			reportMedian(b, "p50-ms", took)
			b.ReportMetric(0, "ns/op")
		})
	}
}
