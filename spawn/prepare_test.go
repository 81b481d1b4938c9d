package spawn_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// counted is a runtime that counts how often it is asked.
type counted struct {
	program
	asked *atomic.Int32
}

func (c counted) Check(context.Context, agent.Launch) error {
	c.asked.Add(1)
	return nil
}

// Each planned start is looked into once, by Prepare or by the Up that was not prepared.
func TestUpChecksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var asked atomic.Int32
	plans := w.plans(counted{sh(ready + "sleep 1000"), &asked}, "agent0", "agent1")
	prep, err := w.l.Prepare(w.ctx, plans)
	if err != nil || asked.Load() != 2 {
		t.Fatalf("Prepare = %v, asked %d times, want 2", err, asked.Load())
	}
	plans = append(plans, w.plans(counted{sh(ready + "sleep 1000"), &asked}, "agent2")...) // not prepared
	testworld.Got(w.l.Up(w.ctx, spawn.UpOptions{Plans: plans, Prepared: prep}))(t)
	testworld.Equal(t, asked.Load(), 3, "asked")
	for _, p := range plans {
		if text, err := os.ReadFile(w.home.Path(home.PromptFile(p.Agent))); err != nil || len(text) == 0 {
			t.Errorf("%s: no prompt: %v", p.Agent, err)
		}
	}
	if prep, err = w.l.Prepare(w.ctx, plans); err != nil || asked.Load() != 3 { // they are up
		t.Errorf("Prepare = %v, asked %d times", err, asked.Load())
	}
	if err := w.l.Recheck(w.ctx, prep, plans[:1]); err != nil || asked.Load() != 4 {
		t.Errorf("Recheck = %v, asked %d times, want 4", err, asked.Load())
	}
}
