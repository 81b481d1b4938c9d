//go:build live

package bus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/internal/testworld"
)

// TestOrderWhileSending: each sender's order holds however listings of the inbox
// and arrivals meet.
func TestOrderWhileSending(t *testing.T) {
	t.Parallel()
	const senders, each = 2, 1500
	home := testworld.Home(t) // on a disk: memory lists otherwise
	b, _ := mustBusIn(t, home, bus.Options{}, agent.Root, agent.Clone(2), a1)
	froms := []agent.ID{agent.Root, agent.Clone(2)}
	dir := box(home, bus.Inbox, "")
	var wg sync.WaitGroup
	defer wg.Wait()
	for s, from := range froms {
		wg.Go(func() {
			for i := range each {
				name := fmt.Sprintf("%020d-%010d-00000000-%010d-from-%s.json", i+1, s, i, from)
				data := fmt.Sprintf(`{"from":%q,"text":"%d %d","ts":"2026-11-20T12:00:00Z","id":"%d-%d"}`, from, s, i, s, i)
				temp := filepath.Join(dir, "."+name+".tmp")
				if err := os.WriteFile(temp, []byte(data), 0o600); err != nil {
					t.Error(err)
				}
				if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	var next [senders]int
	for got := 0; got < senders*each; {
		list, _ := mustBatch(t, r, 30, 200<<10)
		got += len(list)
		for _, d := range list {
			var s, i int
			if _, err := fmt.Sscanf(d.Envelope().Text, "%d %d", &s, &i); err != nil || i != next[s] {
				t.Fatalf("message %d: got %q, want %d of this sender", got, d.Envelope().Text, next[s])
			}
			next[s]++
		}
		mustConfirmAll(t, list)
	}
}
