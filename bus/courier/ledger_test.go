package courier_test

import (
	"os"
	"path/filepath"
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

// TestLedgerDamaged: a ledger that is not JSON is kept beside the new one, and told of.
func TestLedgerDamaged(t *testing.T) {
	p := mustPost(t)
	const text = `{"owed":[{"id":"q-0","from":"own`
	if err := p.home.WriteFile("state/owed/agent1.json", []byte(text), false); err != nil {
		t.Fatal(err)
	}
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "next-0", From: agent.Root, To: me, Text: "next"})
	testworld.Wait(p, "taken", func() bool { return len(p.program.effects()) == 1 })
	list, err := filepath.Glob(p.home.Path("state/owed/agent1.json.bad-*"))
	if err != nil || len(list) != 1 {
		t.Fatalf("set aside: %v, %v", list, err)
	}
	if data, err := os.ReadFile(list[0]); err != nil || string(data) != text {
		t.Errorf("it says %q, %v", data, err)
	}
	if !strings.Contains(p.log.String(), list[0]) {
		t.Error("that was not said")
	}
	if logs := p.records.all(); len(logs) == 0 || !strings.Contains(logs[0].Text, "agent1.json.bad-") {
		t.Errorf("on record: %+v", logs)
	}
}
