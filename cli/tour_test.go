//go:build live

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// A tour that is cut off, by Ctrl-C or by its terminal that is closed, ends all
// that it has started, and counts nothing as lost.
func TestTourInterrupted(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"Ctrl-C", "closed"} {
		t.Run(how, func(t *testing.T) {
			w := mustWorld(t)
			dir := w.mustTempDir(t, "tour")
			s := w.mustScreen(t, "tour", "env -u TMUX -u TMUX_PANE TMPDIR="+dir+" sh")
			s.types("netsky demo; echo status $?", "Enter")
			s.shows(`pauses for reading`)
			s.shows(`agent2 +ready`)
			if list, err := proc.Descendants(0, "TMPDIR="+dir); err != nil || len(list) < 8 {
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
			var list []proc.Process
			testworld.WaitOr(t, func() bool {
				var err error
				list, err = proc.Descendants(0, "TMPDIR="+dir)
				left, derr := os.ReadDir(dir)
				return err == nil && derr == nil && len(list) == 0 && len(left) == 0
			}, func() string { return fmt.Sprintf("still running: %v", list) })
		})
	}
}

// A tour that is killed, at whatever moment, leaves nothing: another process clears
// up, and says so.
func TestTourKilled(t *testing.T) {
	t.Parallel()
	for name, least := range map[string]int{"at its start": 2, "while agents start": 4, "at work": 9} {
		t.Run(name, func(t *testing.T) {
			w := mustWorld(t)
			dir := w.mustTempDir(t, "tour")
			cmd := w.command(t.Context(), "netsky", "demo")
			cmd.Env = append(cmd.Env, "TMPDIR="+dir)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			testworld.Must(t, cmd.Start())
			var list []proc.Process
			until := func(ok func() bool) {
				t.Helper()
				var err error
				testworld.WaitOr(t, func() bool { list, err = proc.Descendants(0, "TMPDIR="+dir); return err == nil && ok() }, func() string {
					left, _ := os.ReadDir(dir)
					return fmt.Sprintf("running: %v, left: %v, %v\n%s", list, left, err, said.String())
				})
			}
			until(func() bool { return len(list) >= least })
			testworld.Must(t, cmd.Process.Kill())
			until(func() bool {
				left, err := os.ReadDir(dir)
				return err == nil && len(list) == 0 && len(left) == 0
			})
			_ = cmd.Wait() // it was killed
			testworld.Contains(t, said.String(), "the tour was killed; its processes have ended and its home is removed")
		})
	}
}

// mustTempDir makes a directory in which programs make theirs, with TMPDIR. Whatever the
// test finds, none of them stays.
func (w *world) mustTempDir(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(w.dir, name)
	testworld.Must(t, os.Mkdir(dir, 0o700))
	t.Cleanup(func() {
		list, _ := proc.Descendants(0, "TMPDIR="+dir)
		proc.End(context.Background(), list, 0)
	})
	return dir
}
