//go:build live

package cli_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/daemon/update"
	"netsky/internal/testworld"
)

// Versions that are bad in some way, as real builds. Each is refused, or taken back, the owner is told why, once, and the
// agents and their mail know nothing of it.
func TestSelfUpdateBad(t *testing.T) {
	t.Parallel()
	const run = "(a daemonVerbs) daemonRun"
	old := filepath.Join(t.TempDir(), "netsky")
	mustNetsky(t, old, "0.1.0")
	for _, tc := range []struct {
		name  string
		edits []edit
		state update.State
		why   string
	}{
		{"crashes", []edit{begins("cli/daemon.go", run, `panic("bad")`)}, update.Undone, "ended"},
		{"hangs", []edit{begins("cli/daemon.go", run, "time.Sleep(time.Hour)")}, update.Undone, "did not answer|not running"},
		{"migration-fails", []edit{adds("store/migrations/999_bad.sql", "CREATE TABLE messages (x);\n")}, update.Failed, "999_bad.sql: table messages already exists"},
		{
			"migrates-and-dies", []edit{
				adds("store/migrations/999_new.sql", "CREATE TABLE fresh (x TEXT) STRICT;\n"),
				begins("cli/daemon.go", run, `time.AfterFunc(3*time.Second, func() { panic("bad") })`),
			}, update.Undone, "ended",
		},
		{"moves-no-mail", []edit{begins("daemon/daemon.go", "(d *daemon) route", "if <-ctx.Done(); true { return nil }")}, update.Undone, "mail is not moved"},
		{
			"eats-memory", []edit{begins("cli/daemon.go", run, `
				eaten := make([]byte, 600<<20) // at once: how soon it would have grown depends on the machine
				for i := 0; i < len(eaten); i += 4<<10 { eaten[i] = 1 }
				defer clear(eaten[:1])`)}, update.Undone, "MB of memory",
		},
	} {
		releases := mustRelease(t, "0.2.0-"+tc.name, tc.edits...)
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSelf(t, mustWorld(t), old)
			s.w.config(t, "[agents]\nruntime = \"demo\"\n")
			s.must("up", "1", "--no-attach")
			keepers := s.keepers(agent.Root, "agent1", agent.Infinity)
			stop := s.send("agent1")
			began := time.Now()
			out, err := s.netsky("self", "update", releases, "--yes")
			took := time.Since(began)
			if err == nil {
				t.Errorf("it is installed\n%s", out)
			}
			r := testworld.Got(update.Load(s.home))(t)
			testworld.Equal(t, r.State, tc.state, out)
			if !regexp.MustCompile(tc.why).MatchString(r.Why) {
				t.Errorf("why: %q, want %q", r.Why, tc.why)
			}
			testworld.Equal(t, strings.Fields(s.must("version"))[1], "0.1.0", "the program")
			testworld.Equal(t, s.daemon(), "0.1.0", "the daemon")
			testworld.EqualList(t, s.keepers(agent.Root, "agent1", agent.Infinity), keepers)
			sent := stop()
			s.answeredOnce(sent)
			want := 1
			if tc.state == update.Failed { // whoever has asked sees it
				want = 0
			}
			testworld.Equal(t, s.told(r.ID), want, "notices to the owner")
			t.Logf("| %s | %s, %s | %.1f s, %d ms without a daemon | %d messages |", tc.name, r.State, at(r), took.Seconds(), r.AnswersMS-r.StoppedMS, len(sent))
		})
	}
}

// at returns the step in which a run has failed.
func at(r update.Run) string {
	for _, s := range r.Steps {
		if s.Error != "" {
			return s.Name
		}
	}
	return "nowhere"
}
