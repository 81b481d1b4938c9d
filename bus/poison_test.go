package bus_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

func mustRetry(tb testing.TB, b *bus.Bus, id agent.ID, name string, want bus.Place) {
	tb.Helper()
	place, err := b.PoisonRetry(id, name)
	if err != nil || place != want {
		tb.Fatalf("PoisonRetry(%s) = %s, %v, want %s", name, place, err, want)
	}
}

// TestPoisonRetryChecks: a file goes back where it was found, and only if it
// will not be poisoned again; all that is wrong is said at once.
func TestPoisonRetryChecks(t *testing.T) {
	t.Parallel()
	const valid = `"text":"hi","ts":"2026-11-20T12:00:00Z"}`
	for _, tt := range []struct {
		name  string
		found bus.Place
		text  string   // as it is when it is retried
		want  []string // in the error; nil: it goes back
	}{
		{"valid", bus.Inbox, `{"from":"agent0",` + valid, nil},
		{"valid, with the recipient", bus.Inbox, `{"from":"agent0","to":"agent1",` + valid, nil},
		{"another recipient", bus.Inbox, `{"from":"agent0","to":"agent0",` + valid, []string{"to: agent0, but this is the mailbox of agent1"}},
		{"all faults", bus.Inbox, `{"from":"nobody","text":"","kind":"X","TS":"x","hops":"1"}`, []string{"from: ", "text: ", "kind: ", "ts: ", `"TS": a spelling of ts`, "hops: "}},
		{"no sender", bus.Inbox, `{"text":"hi","ts":"2026-11-20T12:00:00Z"}`, []string{"from: missing"}},
		{"no text, no time", bus.Inbox, `{"from":"agent0"}`, []string{"text: missing", "ts: missing"}},
		{"not JSON", bus.Inbox, `hello`, []string{"not JSON"}},
		{"half", bus.Inbox, `{"from":"agent0"`, []string{"not JSON: it ends too early"}},
		{"from an outbox", bus.Outbox, `{"to":"agent0","text":"hi"}`, nil},
		{"forged", bus.Outbox, `{"from":"owner","to":"agent1",` + valid, []string{"from: owner, but this is the outbox of agent1"}},
		{"nobody there", bus.Outbox, `{"to":"agent7","text":"hi"}`, []string{"agent7: no mailbox"}},
		{"not allowed", bus.Outbox, `{"to":"agentinfinity","text":"hi"}`, []string{"is not allowed to write to", "no mailbox"}},
		{"too many hops", bus.Outbox, `{"to":"agent0","text":"hi","hops":99}`, []string{"hops: 99"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, home := mustBus(t, bus.Options{}, agent.Root, a1)
			age(t, mustDrop(t, home, a1, tt.found, "x.json", "bad"))
			if tt.found == bus.Outbox {
				testworld.Must(t, b.Route(t.Context()))
			} else if _, err := b.Drain(t.Context(), a1, 0, nil); err != nil {
				t.Fatal(err)
			}
			mustCount(t, b, a1, bus.Poison, 1)
			mustDrop(t, home, a1, bus.Poison, "x.json", tt.text)
			before := mustRead(t, box(home, bus.Poison, "x.json.why"))
			place, err := b.PoisonRetry(a1, "x.json")
			if tt.want == nil {
				if err != nil || place != tt.found {
					t.Fatalf("PoisonRetry = %s, %v, want %s", place, err, tt.found)
				}
				mustCount(t, b, a1, tt.found, 1)
				mustCount(t, b, a1, bus.Poison, 0)
				return
			}
			if err == nil {
				t.Fatal("retried what is still bad")
			}
			for _, want := range tt.want {
				testworld.Contains(t, err.Error(), want, "PoisonRetry")
			}
			mustCount(t, b, a1, bus.Poison, 1)
			mustCount(t, b, a1, tt.found, 0)
			testworld.Equal(t, mustRead(t, box(home, bus.Poison, "x.json.why")), before, "the .why has changed")
		})
	}
}

// TestPoisonRetryOld: what an older netsky has poisoned has a .why without the
// origin, or none.
func TestPoisonRetryOld(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text, why string
		want            bus.Place // "" is refused
	}{
		{"inbox", handmade, "not delivered: empty\n\nA right envelope is …\n", bus.Inbox},
		{"no why", handmade, "", bus.Inbox},
		{"outbox", `{"to":"agent0","text":"hi"}`, "not delivered: not JSON\n", bus.Outbox},
		{"forged", `{"from":"owner","to":"agent1","text":"hi","ts":"2026-11-20T12:00:00Z"}`, "not delivered: from: owner, but this is the outbox of agent1\n", ""},
		{"a line of its own", handmade, "not delivered: netsky-origin: {}\n", bus.Inbox},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, home := mustBus(t, bus.Options{}, agent.Root, a1)
			mustDrop(t, home, a1, bus.Poison, "x.json", tt.text)
			if tt.why != "" {
				mustDrop(t, home, a1, bus.Poison, "x.json.why", tt.why)
			}
			place, err := b.PoisonRetry(a1, "x.json")
			switch {
			case tt.want == "" && !errors.Is(err, envelope.ErrInvalid):
				t.Errorf("PoisonRetry = %s, %v, want ErrInvalid", place, err)
			case tt.want != "" && (err != nil || place != tt.want):
				t.Errorf("PoisonRetry = %s, %v, want %s", place, err, tt.want)
			}
		})
	}
}

// TestForSomebodyElse: a file dropped into the wrong mailbox is not delivered.
func TestForSomebodyElse(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	age(t, mustDrop(t, home, a1, bus.Inbox, "x.json", newEnvelope(`"to":"agent0","text":"secret"`)))
	mustDrop(t, home, a1, bus.Inbox, "y.json", newEnvelope(`"to":"agent1","text":"right"`))
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	if d := mustNext(t, r); d.Envelope().Text != "right" {
		t.Errorf("handed over: %q", d.Envelope().Text)
	} else {
		mustConfirm(t, d)
	}
	testworld.Wait(t, "poison", func() bool { n, _ := b.Count(a1, bus.Poison); return n == 1 })
	list, err := b.List(a1, bus.Poison, 0)
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Why, "to: agent0, but this is the mailbox of agent1") || list[0].Origin != bus.Inbox {
		t.Errorf("poison: %+v, %v", list, err)
	}
	mustNone(t, r)
}

func mustRead(tb testing.TB, file string) string {
	tb.Helper()
	data := testworld.Got(os.ReadFile(file))(tb)
	return string(data)
}
