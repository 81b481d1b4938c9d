//go:build live

package dispatch_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
)

// Whenever the owner's verb or the daemon is killed, each task is given out once, and closed.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	self := testworld.Got(os.Executable())(t)
	for steps := 1; ; steps++ {
		r := &rig{T: t, home: testworld.FastHome(t), states: make(map[agent.ID]spawn.Status)}
		r.bus = testworld.Bus(t, r.home, agent.Owner, agent.Root, "agent1", "agent2")
		db := testworld.Got(store.Open(t.Context(), r.home))(r)
		testworld.Must(r, db.Apply(t.Context(),
			store.UpsertTask{ID: "t-first-00", Title: "first"}, store.UpsertTask{ID: "t-second-0", Title: "second"},
			store.UpsertTask{ID: "t-gone-000", Title: "gone"}, store.UpsertTask{ID: "t-needless", Title: "needless"},
			store.AddDependency{Task: "t-second-0", Needs: "t-first-00"}, store.AddDependency{Task: "t-needless", Needs: "t-gone-000"}))
		db.Close()
		died := false
		for run := range 2 {
			var said bytes.Buffer
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), homeEnv+"="+r.home.Root(), fmt.Sprintf("%s=%d", stepsEnv, steps*(1-run)))
			cmd.Stderr = &said
			err := cmd.Run()
			if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() && run == 0 {
				died = true
				continue
			}
			if err != nil {
				t.Fatalf("after %d steps, run %d: %v: %s", steps, run, err, said.String())
			}
		}
		r.db = testworld.Got(store.Open(t.Context(), r.home))(r)
		r.says("t-first-00", "claimed agent1 1")
		r.says("t-second-0", "claimed agent2 1")
		r.says("t-needless", "blocked agent2 0")
		given := testworld.Got(r.home.ReadFile("given", 1<<16))(r)
		if got := strings.Fields(string(given)); len(got) != 2 {
			t.Errorf("after %d steps: given %v", steps, got)
		}
		if list := r.inbox(agent.Owner, envelope.KindNotice); len(list) != 1 {
			t.Errorf("after %d steps: told %d times: %+v", steps, len(list), list)
		}
		r.db.Close()
		if !died {
			if steps < 8 {
				t.Errorf("only %d steps", steps)
			}
			return
		}
	}
}
