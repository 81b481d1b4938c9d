//go:build live

package cost_test

import (
	"fmt"
	"strings"
	"testing"

	"netsky/cost/breaker"
	"netsky/internal/testworld"
)

// died is what a step panics with that is the last one.
type died struct{}

// However often it is killed between two steps, each request counts once, and the owner is told
// once of each share of a budget, and the agent is barred.
func TestKilled(t *testing.T) {
	t.Parallel()
	kill := func(at int) (steps int) {
		w := mustWorld(t)
		w.terms.Limits.Agent.Tokens = 100
		n := 0
		w.step = func(string) {
			if n++; n == at {
				panic(died{})
			}
		}
		for i, size := range []int{9, 18, 9} { // 27, 81, 108 tokens
			w.mustAppend(main, answer(fmt.Sprint("part", i), size))
			func() {
				defer func() {
					if v := recover(); v != nil && v != (died{}) {
						panic(v)
					}
				}()
				w.mustRead()
			}()
		}
		n = at + 1 // from here on it lives
		w.mustRead()
		w.mustRead()
		testworld.Equal(t, w.used(), "agent1 3: 36+72", "killed at step %d", at)
		full := 0
		for _, text := range w.mail() {
			if strings.HasPrefix(text, "108 % of agent1's budget for ") {
				full++
			}
		}
		if mail := w.mail(); full != 1 || len(mail) > 2 {
			t.Errorf("killed at step %d: told %q", at, mail)
		}
		if s, err := breaker.Of(w.home, breaker.Budget("agent1")).Load(); err != nil || !s.Tripped() {
			t.Errorf("killed at step %d: not barred: %+v, %v", at, s, err)
		}
		return n
	}
	kill(0)
	for at := 1; at <= 16; at++ {
		kill(at)
	}
}
