package courier_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

func (p *post) mustJournal(text string) {
	p.Helper()
	if err := p.home.WriteFile(courier.JournalFile(p.id), []byte(text), false); err != nil {
		p.Fatal(err)
	}
}

func (p *post) journal() string {
	p.Helper()
	data, err := os.ReadFile(p.home.Path(courier.JournalFile(p.id)))
	if err != nil {
		p.Fatal(err)
	}
	return string(data)
}

// TestJournalLines: the last line of a message counts, half a line does not, and what a later
// version has written is kept.
func TestJournalLines(t *testing.T) {
	p := mustPost(t)
	p.mustJournal(`{"owed":[{"id":"a","from":"owner","state":"offered","wants":true},{"id":"b","from":"owner","state":"offered"}]}
{"owed":[{"id":"a","from":"owner","state":"held","held":{"fault":{"reason":"usage_limit"}}}],"recorded_ms":7}
{"later":1}
{"owed":[{"id":"b","from":"owner","state":"answered"},{"id":"c","from":"agent0","state":"later","mood":{"x":1}}]}
{"owed":[{"id":"c","from":"agent0","state":"answered"}`)
	list := courier.ReadLedger(p.home, me)
	if p.owed() != "a c" || list.RecordedMS != 7 || list.Messages[0].State != courier.StateHeld || list.Messages[0].Wants || !list.Owes("c") {
		t.Errorf("%+v", list)
	}
	if err := courier.Forget(p.home, me, "a"); err != nil {
		t.Fatal(err)
	}
	if text := p.journal(); p.owed() != "c" || !strings.Contains(text, `"mood":{"x":1}`) || !strings.HasSuffix(text, "\n") {
		t.Errorf("owed: %s; journal:\n%s", p.owed(), text)
	}
}

// TestJournalDamaged: only what a line that is not JSON said is lost, and the file is kept.
func TestJournalDamaged(t *testing.T) {
	p := mustPost(t)
	p.mustLeave(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"}, bus.Delivered,
		agent.Event{MS: 2000, Event: agent.EventSeen, ID: "q-0"}, agent.Event{MS: 3000, Event: agent.EventStop, Text: "of the turn", Start: "dead"})
	text := "\x00\x00\n" + `{"owed":[{"id":"q-0","from":"owner","state":"seen","wants":true,"offered_ms":1000}]}` + "\n"
	p.mustJournal(text)
	if l := courier.ReadLedger(p.home, me); l.Err == nil || !l.Owes("lost") {
		t.Errorf("%+v", l)
	}
	p.program.mustStart(t)
	p.run()
	testworld.Wait(p, "the answer", func() bool { return len(p.answers(agent.Owner, "q-0")) == 1 })
	testworld.Wait(p, "settled", func() bool { return p.owed() == "" })
	list, err := filepath.Glob(p.home.Path("state/owed/agent1.json.bad-*"))
	if err != nil || len(list) != 1 || !strings.Contains(p.log.String(), list[0]) {
		t.Fatalf("kept: %v, %v; log: %s", list, err, p.log.String())
	}
	if data, err := os.ReadFile(list[0]); err != nil || string(data) != text {
		t.Errorf("it says %q, %v", data, err)
	}
}

// TestJournalBounded: what is over is dropped from the file, and what is open stays.
func TestJournalBounded(t *testing.T) {
	p := mustPost(t)
	p.program.mustStart(t)
	stop := p.run()
	for i := range 150 {
		p.drop(envelope.Envelope{ID: fmt.Sprintf("q-%d", i), From: agent.Root, To: me, Thread: strings.Repeat("t", 200), Text: "hello"})
	}
	testworld.Wait(p, "all of them are settled", func() bool { return p.count(me, bus.Delivered) == 150 && p.owed() == "" })
	if n := len(p.journal()); n > 100<<10 {
		t.Errorf("%d bytes", n)
	}
	stop()
	if err := courier.Owe(p.home, me, envelope.Envelope{ID: "open", From: agent.Owner}); err != nil {
		t.Fatal(err)
	}
	if text := p.journal(); p.owed() != "open" || strings.Count(text, "\n") != 1 {
		t.Errorf("owed: %s; journal:\n%s", p.owed(), text)
	}
}

// TestJournalAway: a mailbox that is moved away keeps its journal, and the one that is made in
// its place has all that is open.
func TestJournalAway(t *testing.T) {
	p := mustPost(t)
	p.program.turn = func(string) (time.Duration, string, error) { return time.Hour, "", nil }
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
	testworld.Wait(p, "filed", func() bool { return p.owed() == "q-0" && p.count(me, bus.Delivered) == 1 })
	box := p.home.Path(home.Mailbox(me))
	before := p.journal()
	if err := os.Rename(box, box+".away"); err != nil {
		t.Fatal(err)
	}
	p.man.Answered("q-0")
	if owed, ok := courier.ReadLedger(p.home, me).Find("q-0"); !ok || !owed.Replied || owed.State != courier.StateSeen {
		t.Errorf("%+v, %v", owed, ok)
	}
	if data, err := os.ReadFile(box + ".away/journal"); err != nil || string(data) != before {
		t.Errorf("the one that is away says %q, %v, want %q", data, err, before)
	}
}
