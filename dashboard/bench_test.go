package dashboard_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/dashboard/live"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
)

func (w *world) fillMuch(b *testing.B) {
	b.Helper()
	var ops []store.Op
	for n := range 50 {
		id := agent.Clone(n + 1)
		ops = append(ops, store.UpsertActor{ID: id, Runtime: "demo", Objective: "x"})
		for s := range 5 {
			ops = append(ops, store.StartSession{Start: fmt.Sprintf("%016x", n*10+s), Actor: id, Started: store.Time(s + 1)})
		}
	}
	for i := range 10_000 {
		id, to := fmt.Sprintf("m-%05d", i), agent.Clone(i%50+1)
		state := store.Delivered
		if i%10 == 0 {
			state = store.Queued
		}
		ops = append(ops, store.UpsertMessage{ID: id, From: "owner", To: to, Text: "some words to an agent", Time: store.Time(i + 1)},
			store.UpsertDelivery{Message: id, Target: to, State: state, Time: store.Time(i + 1)},
			store.AddLog{Key: id, Text: "delivered", Actor: to, About: id})
	}
	testworld.Must(b, w.db.Apply(b.Context(), ops...))
	var list []view.Agent
	for n := range 50 {
		list = append(list, view.Agent{ID: agent.Clone(n + 1), State: agent.Idle, Evidence: "its own word", Runtime: "demo"})
	}
	w.agents.set(nil, list...)
}

// The state of 50 agents with 10,000 messages, over HTTP.
func BenchmarkSnapshot(b *testing.B) {
	w := mustWorld(b, nil)
	w.fillMuch(b)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if a := w.get(b, "/api/snapshot"); a.status != 200 {
			b.Fatal(a.status)
		}
		took = append(took, time.Since(began))
	}
	reportMedian(b, "p50-ms", took)
}

func reportMedian(b *testing.B, unit string, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, unit)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, strings.Replace(unit, "p50", "p95", 1))
}

// What it costs to look whether records have changed.
func BenchmarkDataVersion(b *testing.B) {
	w := mustWorld(b, nil)
	for b.Loop() {
		testworld.Got(w.db.DataVersion(b.Context()))(b)
	}
}

// paneText is a screen of 50 rows in colour, of which the first says when it was
// drawn and four more change with it.
func paneText(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %d \x1b[1m✻\x1b[0m Thinking\n", time.Now().UnixNano())
	for row := range 49 {
		step := 0
		if row%12 == 0 {
			step = n
		}
		fmt.Fprintf(&b, "\x1b[38;5;%dm%4d\x1b[39m \x1b[38;2;200;%d;10mfunc\x1b[39m words of a line that an agent wrote, 漢字 %d\n", row+16, row, row, step)
	}
	return b.String()
}

// BenchmarkRender is a capture in which five of fifty rows have changed.
func BenchmarkRender(b *testing.B) {
	var r live.Renderer
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = paneText(i)
	}
	n := 0
	for b.Loop() {
		r.Render(texts[n%len(texts)])
		n++
	}
}

// From a pane's change to its arrival on a websocket, with 50 panes that change
// twice a second each and 10 browsers that look at all, one of them frozen.
func BenchmarkPaneChange(b *testing.B) {
	w := mustWorld(b, nil)
	for n := range 50 {
		w.panes.set(agent.Clone(n+1), paneText(0))
	}
	var query []string
	for n := range 50 {
		query = append(query, string(agent.Clone(n+1)))
	}
	path := "/ws?watch=" + strings.Join(query, ",")
	w.dialPath(b, path) // frozen
	var mu sync.Mutex
	var took []time.Duration
	var readers sync.WaitGroup
	b.Cleanup(readers.Wait) // when all are closed
	for range 9 {
		c := w.dialPath(b, path)
		readers.Go(func() {
			for {
				_, data, err := c.ReadMessage()
				if err != nil {
					return
				}
				if _, after, ok := bytes.Cut(data, []byte(`"at `)); ok {
					end := bytes.IndexByte(after, ' ')
					at, _ := strconv.ParseInt(string(after[:end]), 10, 64)
					mu.Lock()
					took = append(took, time.Since(time.Unix(0, at)))
					mu.Unlock()
				}
			}
		})
	}
	testworld.Wait(b, "all are watched", func() bool { return w.panes.watched() == 50 })
	tick := time.NewTicker(10 * time.Millisecond) // 100 changes a second
	defer tick.Stop()
	mu.Lock()
	took = nil
	mu.Unlock()
	n, began, cpu := 0, time.Now(), cpuTime(b)
	for b.Loop() {
		<-tick.C
		n++
		w.panes.set(agent.Clone(n%50+1), paneText(n))
	}
	used := cpuTime(b) - cpu
	b.ReportMetric(100*used.Seconds()/time.Since(began).Seconds(), "%cpu-with-browsers")
	mu.Lock()
	defer mu.Unlock()
	if len(took) > 0 {
		reportMedian(b, "p50-ms", took)
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	testworld.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
