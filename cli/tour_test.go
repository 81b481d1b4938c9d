package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/spawn/keeper"
)

// A tour that is cut off, by Ctrl-C or by its terminal that is closed, ends all
// that it has started, and counts nothing as lost.
func TestTourInterrupted(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"Ctrl-C", "closed"} {
		t.Run(how, func(t *testing.T) {
			w := mustWorld(t)
			dir := filepath.Join(w.dir, "tour")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // whatever the test finds, nothing stays
				list, _ := agent.Descendants(0, "TMPDIR="+dir)
				keeper.End(context.Background(), list, 0)
			})
			s := w.mustScreen(t, "tour", "env -u TMUX -u TMUX_PANE TMPDIR="+dir+" sh")
			s.types("netsky demo; echo status $?", "Enter")
			s.shows(`Ten jobs go out`)
			if list, err := agent.Descendants(0, "TMPDIR="+dir); err != nil || len(list) < 8 {
				t.Errorf("running: %v, %v", list, err)
			}
			if how == "Ctrl-C" {
				s.keys("C-c")
				s.shows(`status 130`)
				if text := s.text(); strings.Contains(text, "lost") || strings.Contains(text, "LOST") || !strings.Contains(text, "interrupted") {
					t.Errorf("it says:\n%s", text)
				}
				s.types("exit", "Enter")
			} else {
				s.tmux("kill-session", "-t", "=tour:")
			}
			var list []agent.Process
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for end := time.Now().Add(time.Minute); time.Now().Before(end); <-tick.C {
				var err error
				list, err = agent.Descendants(0, "TMPDIR="+dir)
				if left, derr := os.ReadDir(dir); err == nil && derr == nil && len(list) == 0 && len(left) == 0 {
					return
				}
			}
			t.Errorf("still running: %v", list)
		})
	}
}
