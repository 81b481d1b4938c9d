package courier_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// TestLedgerUnreadable: while the ledger can't be read nothing is offered and nothing owed
// is forgotten.
func TestLedgerUnreadable(t *testing.T) {
	p := mustPost(t)
	e := envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"}
	seen := agent.Event{MS: 2000, Event: agent.EventSeen, ID: "q-0"}
	stop := agent.Event{MS: 3000, Event: agent.EventStop, Text: "of the turn", Start: "dead"}
	p.mustLeave(e, bus.Delivered, seen, stop)
	dir := p.home.Path("state/owed")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "next-0", From: agent.Root, To: me, Text: "next"})
	testworld.Wait(p, "said", func() bool { return strings.Contains(p.log.String(), "ledger of owed answers") })
	if !p.man.Look(t.Context()) {
		t.Error("its state can't be asked for")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	testworld.Wait(p, "the answer", func() bool { return len(p.answers(agent.Owner, "q-0")) == 1 })
	if list := p.answers(agent.Owner, "q-0"); list[0].Text != "of the turn" {
		t.Errorf("answers: %+v", list)
	}
	testworld.Wait(p, "taken", func() bool { return len(p.program.effects()) == 1 })
}

// TestAnsweredTooLate: a courier that has ended writes no ledger any more: it is the next
// one's.
func TestAnsweredTooLate(t *testing.T) {
	p := mustPost(t)
	p.program.turn = func(string) (time.Duration, string, error) { return time.Hour, "", nil }
	p.program.mustStart(t)
	stop := p.run()
	before := p.man
	p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "owed", func() bool { return p.owed() == "q-0" && p.count(me, bus.Delivered) == 1 })
	stop()
	p.run()
	p.drop(envelope.Envelope{ID: "q-1", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "owed", func() bool { return p.owed() == "q-0 q-1" })
	before.Answered("q-0")
	if p.owed() != "q-0 q-1" {
		t.Errorf("owed: %s", p.owed())
	}
}
