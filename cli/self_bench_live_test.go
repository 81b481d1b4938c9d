//go:build live

package cli_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/internal/testworld"
)

// BenchmarkSelfUpdate measures how long there is no daemon during an update or a rollback, of a home with a team under mail,
// against a daemon that is ended and started again by hand. Messages that are sent meanwhile are all answered.
func BenchmarkSelfUpdate(b *testing.B) {
	old := filepath.Join(b.TempDir(), "netsky")
	mustNetsky(b, old, "0.1.0")
	s, releases := newSelf(b, mustWorld(b), old), mustRelease(b, "0.2.0")
	s.w.config(b, "[agents]\nruntime = \"demo\"\n")
	s.must("up", "2", "--no-attach")
	var ours, bare []time.Duration
	messages := 0
	for b.Loop() {
		words := []string{"self", "update", releases, "--yes"}
		if s.version() == "0.2.0" {
			words = []string{"self", "rollback", "--yes"}
		}
		stop := s.send("agent1", "agent2")
		s.must(words...)
		sent := stop()
		s.answeredOnce(sent)
		messages += len(sent)
		r := testworld.Got(update.Load(s.home))(b)
		ours = append(ours, time.Duration(r.AnswersMS-r.StoppedMS)*time.Millisecond)
		bare = append(bare, s.restartByHand())
	}
	slices.Sort(ours)
	slices.Sort(bare)
	us, them := ours[len(ours)/2], bare[len(bare)/2]
	b.ReportMetric(float64(us.Milliseconds()), "ours-ms")
	b.ReportMetric(float64(ours[len(ours)-1].Milliseconds()), "ours-max-ms")
	b.ReportMetric(float64(them.Milliseconds()), "bare-ms")
	b.ReportMetric(float64(us)/float64(them), "ratio")
	b.ReportMetric(float64(messages), "messages")
	b.ReportMetric(0, "ns/op")
}

// restartByHand ends the daemon and starts another, and returns how long none answered.
func (s *self) restartByHand() time.Duration {
	s.Helper()
	began := time.Now()
	testworld.Got(daemon.Stop(s.Context(), s.home))(s)
	cmd := s.w.command(s.Context(), s.program, "daemon", "run")
	testworld.Must(s, cmd.Start())
	go func() { _ = cmd.Wait() }() // it ends with the world
	testworld.Wait(s, "the daemon", func() bool { _, up := s.ping(); return up })
	return time.Since(began)
}
