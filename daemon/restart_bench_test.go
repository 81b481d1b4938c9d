package daemon_test

import (
	"slices"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/watch/backoff"
)

// BenchmarkRestart kills agents, each once, and tells how long after the kill the daemon
// has counted the death, has begun the restart, and has seen the new start report that it
// lives. The wait that the back-off prescribes is left out of the latter two.
func BenchmarkRestart(b *testing.B) {
	w := newWorld(b)
	w.start()
	var ids []agent.ID
	for i := range 10 {
		ids = append(ids, agent.Clone(i+1))
	}
	w.up(demo{}, ids...)
	var noticed, begun, alive []float64
	for b.Loop() {
		id := ids[0]
		ids = append(ids[1:], id)
		st := w.statuses().Find(id)
		p, err := proc.Find(st.PID)
		testworld.Must(b, err)
		if err := backoff.Save(w.home, id, backoff.Record{}); err != nil { // its earlier deaths are forgotten
			b.Fatal(err)
		}
		at := time.Now().UnixMilli()
		w.kill(p)
		var r backoff.Record
		testworld.WaitOr(w, func() bool {
			r, err = backoff.Load(w.home, id)
			return err == nil && r.ProvedMS != 0 && r.Died == st.Start
		}, w.log)
		wait := backoff.Wait(0).Milliseconds()
		noticed = append(noticed, float64(r.DeathsMS[0]-at))
		begun = append(begun, float64(r.TriedMS-at-wait))
		alive = append(alive, float64(r.ProvedMS-at-wait))
	}
	report := func(of string, list []float64) {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], of+"-ms")
		b.ReportMetric(list[len(list)*95/100], of+"-p95-ms")
	}
	report("noticed", noticed)
	report("begun", begun)
	report("alive", alive)
}
