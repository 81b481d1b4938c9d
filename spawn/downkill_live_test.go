//go:build live

package spawn_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/spawn"
)

func (w *world) downProcess() *exec.Cmd {
	w.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), downRole+"="+w.home.Root(), downSocket+"="+w.socket)
	cmd.Stderr = os.Stderr
	testworld.Must(w, cmd.Start())
	return cmd
}

// A down that is killed at any moment leaves nothing that a later start obeys
// and nothing that a later down believes.
func TestDownKilled(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			killDowns(t, 5)
		})
	}
}

func killDowns(t *testing.T, times int) {
	t.Helper()
	w := newWorld(t)
	names := []string{"agent0", "agent1", "agent2"}
	w.upReady(demo{}, names...)
	began := time.Now()
	testworld.Must(t, w.downProcess().Wait())
	whole := time.Since(began)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("a whole down takes %v; seed %d", whole, seed)
	for range times {
		w.upReady(demo{}, names...)
		cmd := w.downProcess()
		moment := time.NewTimer(time.Duration(random.Int64N(int64(whole))))
		<-moment.C
		cmd.Process.Kill()
		cmd.Wait()
		// As a person does at once: up again. Agents that have been asked are on
		// their way out, and either count as up still or are replaced.
		testworld.WaitOr(w, func() bool {
			for _, p := range w.up(demo{}, names...) {
				if p.Step != spawn.StepReady && p.Step != spawn.StepAlready {
					t.Fatalf("%s: %s %v", p.Agent, p.Step, p.Err)
				}
			}
			for _, n := range names {
				if st := w.status(n); !st.Alive() || w.asked(n) || w.leaving(n) {
					return false
				}
			}
			return true
		}, func() string { return "the agents do not come up" })
		starts := w.statuses()
		for _, n := range names {
			w.answers(n)
		}
		for _, n := range names {
			if st := w.status(n); st.Start != starts[agent.ID(n)].Start || !st.Alive() {
				t.Fatalf("%s: obeyed what was meant for another start: %+v", n, st)
			}
		}
	}
	if got := w.down(spawn.DownOptions{}); got["agent0"] != "asked acked ended" || got["agent1"] != "asked acked ended" || got["agent2"] != "asked acked ended" {
		t.Errorf("the last down: %v", got)
	}
}

// leaving reports whether an agent has acknowledged a shutdown that was meant for
// it: it is about to exit then.
func (w *world) leaving(name string) bool {
	w.Helper()
	list := testworld.Got(w.bus.List(agent.ID(name), bus.Delivered, 0))(w)
	for _, e := range list {
		if e.Envelope.Kind != envelope.KindShutdown || e.Envelope.Start != w.status(name).Start {
			continue
		}
		if _, acked, err := w.bus.FindAnswer(w.ctx, "", agent.Root, e.Envelope.ID, time.Time{}); acked || err != nil {
			return true
		}
	}
	return false
}
