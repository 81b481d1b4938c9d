//go:build live

package courier_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// die is a kill -9 of the program and its start with the old conversation: what
// was queued is gone and, with luck, the last text of the turn that runs.
func (p *program) die(tb testing.TB) {
	tb.Helper()
	p.mu.Lock()
	p.queue, p.last, p.bucket = nil, "", 30
	if p.breakOff != nil {
		close(p.breakOff)
		p.breakOff = nil
	}
	if n := len(p.texts); p.fresh > 0 && rand.IntN(2) == 0 {
		ids, _ := envelope.RenderedIDs(p.texts[n-1])
		p.texts = p.texts[:n-1]
		p.taken = p.taken[:len(p.taken)-len(ids)]
		for _, id := range ids {
			delete(p.held, id)
			delete(p.took, id)
		}
	}
	p.mu.Unlock()
	p.settle(tb)
}

// TestKilled: the server is killed at random moments, and half of the times the
// program with it; some of its hooks are killed, too. Every message has its effect
// once, and what wants an answer has one, which was said to it.
func TestKilled(t *testing.T) {
	t.Parallel()
	const many, kills = 300, 25
	p := mustPost(t)
	defer func() {
		if log, err := p.home.ReadFile(killedLog, 1<<20); err == nil && t.Failed() {
			t.Logf("the servers' log:\n%s", log)
		}
	}()
	p.program.turn = func(text string) (time.Duration, string, error) {
		ids, _ := envelope.RenderedIDs(text)
		words := strings.Join(ids, ", ")
		if strings.Contains(text, "Not answered yet") {
			words += text
		}
		return scaled(time.Duration(rand.IntN(10_000)) * time.Millisecond), "to " + words + ".", nil
	}
	p.program.mustStart(t)
	socket, gone := p.mustDoor()
	want := make(map[string]int)
	// A brake lets only 60 answers a minute pass from one to another.
	senders := []agent.ID{agent.Root, agent.Clone(2), agent.Infinity, agent.Root, agent.Clone(2), agent.Infinity, agent.Owner}
	send := func(n int) {
		for range n {
			from := senders[rand.IntN(len(senders))]
			p.drop(envelope.Envelope{ID: fmt.Sprintf("%s-%d", from, want[string(from)]), From: from, To: me, Text: size(4000)})
			want[string(from)]++
		}
	}
	for range kills {
		kill := p.mustCourier(socket)
		testworld.Wait(p, "the server works", func() bool {
			r, err := p.home.LoadReport(me)
			return err == nil && r.Start == p.program.startID()
		})
		for range 4 {
			send(many / kills / 4)
			p.program.set(func() {
				for _, kind := range []agent.EventKind{agent.EventSeen, agent.EventPrompt, agent.EventStop} {
					p.program.muted[kind] = rand.IntN(4) == 0
				}
			})
			pause := time.NewTimer(time.Duration(rand.IntN(120)) * time.Millisecond)
			<-pause.C
		}
		kill()
		testworld.Wait(p, "what the dead server had sent", gone)
		if rand.IntN(2) == 0 {
			p.program.settle(t)
		} else {
			p.program.die(t)
		}
	}
	p.program.set(func() { clear(p.program.muted) })
	defer p.mustCourier(socket)()
	testworld.Wait(p, "all of them filed", func() bool { return p.count(me, bus.Delivered) == many })
	testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
	effects := p.program.effects()
	once := make(map[string]bool)
	for _, id := range effects {
		if once[id] {
			t.Errorf("%s had its effect twice", id)
		}
		once[id] = true
	}
	for sender, n := range want {
		for i := range n {
			id := fmt.Sprintf("%s-%d", sender, i)
			if !once[id] {
				t.Errorf("%s had no effect", id)
			}
			answers := p.answers(agent.ID(sender), id)
			if wants := sender == string(agent.Owner); wants && len(answers) != 1 || !wants && len(answers) != 0 {
				t.Errorf("%d answers to %s", len(answers), id)
			} else if wants && (answers[0].Kind != envelope.KindReply || !regexp.MustCompile(`\b`+id+`\b`).MatchString(answers[0].Text)) {
				t.Errorf("%s: answered by a %s %.300q", id, answers[0].Kind, answers[0].Text)
			}
		}
	}
	restarts := 0
	for _, text := range p.program.texts {
		if strings.Contains(text, "interruption") || strings.Contains(text, "cut off your turn") {
			restarts++
		}
	}
	t.Logf("%d texts, %d of them about a restart", len(p.program.texts), restarts)
}
