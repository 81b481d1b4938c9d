//go:build live

package courier_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

func size(max int) string { return strings.Repeat("x ", 1+rand.IntN(max/2)) }

// TestThousand: what comes in bursts of all sizes, while the program is idle,
// busy or shows a dialog, has its effect once, each sender's in order, although
// some texts are dropped on the way.
func TestThousand(t *testing.T) {
	t.Parallel()
	const many = 1000
	p := mustPost(t)
	p.program.turn = func(string) (time.Duration, string, error) {
		return scaled(time.Duration(rand.IntN(3000)) * time.Millisecond), "done", nil
	}
	p.program.mustStart(t)
	p.run()
	senders := []agent.ID{agent.Root, agent.Clone(2), agent.Infinity}
	want := make(map[string]int)
	for sent := 0; sent < many; {
		for range min(1+rand.IntN(60), many-sent) {
			from := senders[rand.IntN(len(senders))]
			e := envelope.Envelope{ID: fmt.Sprintf("%s-%d", from, want[string(from)]), From: from, To: me, Text: size(400)}
			if rand.IntN(40) == 0 {
				e.Text = size(200 << 10)
			}
			want[string(from)]++
			p.drop(e)
			sent++
		}
		p.program.set(func() {
			p.program.dialog = rand.IntN(4) == 0
			if rand.IntN(5) == 0 {
				p.program.drop = 1
			}
		})
		pause := time.NewTimer(scaled(time.Duration(rand.IntN(4000)) * time.Millisecond))
		<-pause.C
	}
	p.program.set(func() { p.program.dialog = false })
	testworld.Wait(p, "all of them filed", func() bool { return p.count(me, bus.Delivered) == many })
	mustOnce(t, p.program.effects(), want)
	testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
	p.program.mu.Lock()
	t.Logf("%d texts pushed, %d dropped, %d turns", p.program.pushes, p.program.dropped, len(p.program.texts))
	p.program.mu.Unlock()
	if n := p.count(agent.Root, bus.Inbox); n != 0 {
		t.Errorf("%d answers to messages that want none", n)
	}
}
