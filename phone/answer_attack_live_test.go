//go:build live

package phone_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/phone/chat"
)

// Ten thousand items are one list, of which each can be seen and answered; looking at them
// again costs little.
func TestTenThousand(t *testing.T) {
	l := newLater(t)
	list := make([]attention.Need, 10_000)
	for i := range list {
		code := []byte("aaaaa")
		for at, n := 4, i; at >= 0; at, n = at-1, n/25 {
			code[at] = "abcdefghijkmnopqrstuvwxyz"[n%25]
		}
		list[i] = only(attention.Sources{Approvals: []agent.Approval{{Code: string(code), Agent: "agent1", Tool: "Bash", Text: fmt.Sprint("command ", i)}}})
	}
	began := time.Now()
	l.stands(list...)
	l.says("10000 items need you")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 3 {
		l.looks()
	}
	runtime.ReadMemStats(&after)
	t.Logf("listed and looked at ten times within %v; %d MiB live", time.Since(began), after.HeapAlloc>>20)
	last := list[9_999]
	l.wire.Put(chat.Message{Text: "yes " + last.Code, At: l.clock.now()})
	l.says("or no " + last.Code) // it was in the list only: it is shown first
	l.wire.Put(chat.Message{Text: "yes " + last.Code, At: l.clock.now()})
	l.taken(last.Code + " true")
	parts := slices.DeleteFunc(l.wire.Texts(), func(s string) bool { return !strings.HasPrefix(s, "[netsky ") })
	if len(parts) != 5 || !strings.Contains(parts[4], "text `needs` for the rest") {
		t.Errorf("%d parts", len(parts))
	}
}
