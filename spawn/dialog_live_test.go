//go:build live

package spawn_test

import (
	"strings"
	"testing"

	"netsky/agent"
	"netsky/spawn"
)

// An arrow that jumps back to the no, or moves late, has the Enter wait, not meet the no.
func TestDialogArrowJumps(t *testing.T) {
	t.Parallel()
	for how, typed := range map[string]string{"jumps": "\x1b[B" + answer, "late": answer} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.up(seenAsker{asker{how}}, "agent1")[0]
			if p.Step != spawn.StepReady || p.State != agent.Idle {
				t.Errorf("%s %s %v, want ready, idle", p.Step, p.State, p.Err)
			}
			w.isTyped("agent1", typed)
		})
	}
}

func TestDialogForAPerson(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ how, name, detail, typed string }{
		{"elsewhere", "another directory", "trust: /elsewhere", ""},
		{"moon", "unknown", "unknown dialog: Buy a moon?", ""},
		{"stuck", "an arrow that does not move", "trust: ", "\x1b[B"},
		{"deaf", "an answer that changes nothing", "trust: ", answer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := seenAsker{asker{tt.how}}
			p := w.up(r, "agent1")[0]
			if p.Step != spawn.StepReady || p.State != agent.Waiting || !strings.HasPrefix(p.Note, tt.detail) {
				t.Errorf("up: %s %s %q %v, want ready, waiting, %q", p.Step, p.State, p.Note, p.Err, tt.detail)
			}
			st := w.status("agent1")
			if st.State != agent.Waiting || st.Evidence != "its pane" || !strings.HasPrefix(st.Detail, tt.detail) {
				t.Errorf("status: %s (%s) %q", st.State, st.Evidence, st.Detail)
			}
			// Whoever looks again, it is not answered a second time.
			for range 3 {
				if d, ok, err := w.l.Lookout(st, r).Look(w.ctx, true); err != nil || !ok || d.Keys != nil {
					t.Errorf("Look = %q, %v, %v", d, ok, err)
				}
			}
			w.isTyped("agent1", tt.typed)
		})
	}
}
