package cli_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
)

// BenchmarkAsk compares `netsky ask` beside 100,000 files in delivered/ of the
// agent and of the owner with one beside none. The two are taken in turn.
func BenchmarkAsk(b *testing.B) {
	full, empty := mustDemos(b, 1), mustDemos(b, 1)
	for k, id := range []agent.ID{agent.Owner, agent.Clone(1)} {
		dir := full.mustHome(b).Path(home.Mailbox(id), "delivered")
		for i := range 100_000 {
			mustMail(b, dir, k*100_000+i)
		}
	}
	full.mustRecord(b, 200_000)
	compare(b, func() { full.mustAsk(b, "hello") }, func() { empty.mustAsk(b, "hello") })
}

// BenchmarkInbox compares `netsky inbox` of 1,000 new messages, which reads,
// prints and files them, with a shell that reads and moves the same files.
func BenchmarkInbox(b *testing.B) {
	w := mustWorld(b)
	w.must(b, "netsky", "channel", "send", "owner", "hello")
	h := w.mustHome(b)
	inbox, bare := h.Path(home.Mailbox(agent.Owner), "inbox"), filepath.Join(w.dir, "bare")
	for _, dir := range []string{bare, bare + ".moved"} {
		testworld.Must(b, os.Mkdir(dir, 0o700))
	}
	n := 0
	fill := func(dir string) {
		b.StopTimer()
		for range 1000 {
			mustMail(b, dir, n)
			n++
		}
		b.StartTimer()
	}
	compare(b, func() { w.must(b, "sh", "-c", "netsky inbox >/dev/null") }, func() {
		w.must(b, "sh", "-c", `cd "$1" && cat ./*.json >/dev/null && mv ./*.json "$1".moved`, "sh", bare)
	}, func() { fill(inbox); fill(bare) })
}

// BenchmarkStatus compares `netsky status` of 50 agents with tmux's own list of
// their panes.
func BenchmarkStatus(b *testing.B) {
	w := mustDemos(b, 50)
	compare(b, func() { w.must(b, "netsky", "status") },
		func() { w.must(b, "tmux", "-S", w.socket(), "list-panes", "-a") })
}

// mustDemos is a world with so many clones up that answer without a model.
func mustDemos(b *testing.B, n int) *world {
	b.Helper()
	w := mustWorld(b)
	w.must(b, "netsky", "up", fmt.Sprint(n), "--type", "demo", "--no-attach")
	return w
}

// mustRecord waits until the daemon has recorded so many messages.
func (w *world) mustRecord(b *testing.B, n int) {
	b.Helper()
	db := testworld.Got(sql.Open("sqlite3", w.mustHome(b).Path(home.DBFile)+"?_busy_timeout=5000"))(b)
	defer db.Close()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for have := 0; have < n; <-tick.C {
		testworld.Must(b, db.QueryRowContext(b.Context(), "SELECT count(*) FROM messages").Scan(&have))
	}
}

// mustMail puts an envelope of agent0's into a directory, under a name as the
// bus makes them.
func mustMail(b testing.TB, dir string, n int) {
	b.Helper()
	at := time.Now().UTC()
	name := fmt.Sprintf("%020d-%010d-%08x-%010d-from-agent0.json", at.UnixNano(), 1, n, n)
	text := fmt.Sprintf(`{"from":"agent0","id":"m-bench-%d","text":"hello","ts":%q}`, n, at.Format(time.RFC3339))
	testworld.Must(b, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// compare reports the medians of two things that are done in turn, and their
// ratio. What is prepared before each turn is not counted.
func compare(b *testing.B, ours, bare func(), prepare ...func()) {
	b.Helper()
	var us, them []time.Duration
	took := func(do func()) time.Duration {
		began := time.Now()
		do()
		return time.Since(began)
	}
	for b.Loop() {
		for _, do := range prepare {
			do()
		}
		us = append(us, took(ours))
		them = append(them, took(bare))
	}
	slices.Sort(us)
	slices.Sort(them)
	o, f := us[len(us)/2], them[len(them)/2]
	b.ReportMetric(float64(o.Microseconds())/1e3, "ours-ms")
	b.ReportMetric(float64(f.Microseconds())/1e3, "bare-ms")
	b.ReportMetric(float64(o)/float64(f), "ratio")
	b.ReportMetric(0, "ns/op")
}
