//go:build live

package land_test

import (
	"sync"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
)

func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	const n = 4
	for _, id := range []string{"agent1", "agent2", "agent3", "agent4"} {
		y.clone(agent.ID(id)).Commit(id, id+".txt", id)
	}
	var wg sync.WaitGroup
	outs := make([]string, n)
	for i := range n {
		wg.Go(func() { outs[i] = y.netsky("land agent"+string(rune('1'+i)), 0) })
	}
	wg.Wait()
	for i, out := range outs {
		testworld.Contains(t, out, "step done", "agent%d", i+1)
	}
	if got := y.Git("ls-tree", "--name-only", "main"); got != "a.txt\nagent1.txt\nagent2.txt\nagent3.txt\nagent4.txt" || y.Git("status", "--porcelain") != "" {
		t.Errorf("%s", got)
	}
	y.tidy()
}
