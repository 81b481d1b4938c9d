package update_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"netsky/daemon/update"
	"netsky/internal/testworld"
)

// A kill is a run of which the supervisor is killed at each step.
type kill struct {
	name   string
	begin  func(w *world) update.Run
	state  update.State // that it ends in
	runs   string       // the version that runs then
	beside []string     // the program
	told   bool
}

// kills has more rows under the tag live.
var kills = []kill{
	{"update", func(w *world) update.Run { return w.prepare(update.Update, "v2", "", nil) }, update.Done, "v2", []string{"netsky.previous"}, true},
	{"rollback undone", func(w *world) update.Run { return w.rollback("crash") }, update.Undone, "v1", nil, true},
}

// A supervisor that is killed at any step leaves the old or the new program at the path, and the next start of the daemon
// finishes what it was at.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, tt := range kills {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.begin(w)
			if w.supervise() {
				t.Fatal("killed")
			}
			steps := bytes.Count(testworld.Got(os.ReadFile(w.set.Steps))(t), []byte("\n"))
			check := func(w *world) {
				w.Helper()
				r := w.over()
				testworld.Equal(w, r.State, tt.state, "%s", w.steps())
				told := w.whole(tt.runs, tt.beside...)
				if want := r.Outcome(tt.state); tt.told {
					testworld.EqualList(w, told, []string{want}, "told")
				} else {
					testworld.Len(w, told, 0, "told")
				}
			}
			check(w)
			for k := range steps {
				t.Run(fmt.Sprint(k+1), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					old := w.sum(w.bin)
					r := tt.begin(w)
					w.set.Kill = k + 1
					w.send("before")
					if !w.supervise() {
						t.Fatal("not killed")
					}
					if now := w.sum(w.bin); now != old && now != r.To.SHA256 {
						t.Errorf("the program is neither the old nor the new one")
					}
					w.send("meanwhile")
					w.set.Kill = 0
					w.start()
					check(w)
				})
			}
		})
	}
}
