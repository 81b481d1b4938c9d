package codex_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
)

// A Codex that hangs while it opens the thread is reported, ended and replaced.
func TestFaultHangs(t *testing.T) {
	t.Parallel()
	w := mustHome(t)
	self := testworld.Got(os.Executable())(t)
	w.program = self
	w.env = append(w.env, "FAKE_CODEX=hangs once", "FAKE_MARK="+w.home.Path("hung"))
	r := w.mustRigWithin(w.serving(), 500*time.Millisecond)
	r.until("the report", func() bool {
		s := r.State(w.ctx)
		return s.State == agent.Blocked && strings.Contains(s.Detail, "codex did not open the thread within 500ms")
	})
	r.takes()
	testworld.Contains(t, w.pane.String(), "did not open the thread", "pane")
}
