package watch_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/watch"
)

// vendor is a runtime whose agents all use one account.
type vendor struct{ spawn.Runtime }

func (vendor) Account(agent.Launch) (string, time.Time) { return "claude me", time.Time{} }

// A limit of one model keeps only an agent from starting again that has run into it in its
// last start; it may be started otherwise, and so may the others.
func TestBarred(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tripped, held, start string // held is the model that the mail of that start waits for
		until                time.Duration
		reason               agent.Reason
		barred, mayNot       bool
	}{
		{tripped: "", until: time.Hour, barred: true, mayNot: true},
		{tripped: "opus", until: time.Hour},
		{tripped: "opus", held: "opus", start: "this", until: time.Hour, barred: true},
		{tripped: "opus", held: "opus", start: "last", until: time.Hour},
		{tripped: "opus", held: "sonnet", start: "this", until: time.Hour},
		{held: "opus", start: "this"},
		{reason: agent.Login, until: time.Hour, mayNot: true}, // a restart may be what it needs
	} {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			t.Parallel()
			h := testworld.Home(t)
			la := agent.Launch{Agent: "agent1", Start: "this", Runtime: "claude"}
			testworld.Must(t, h.SaveLaunch(la))
			if tt.until > 0 {
				f := agent.Fault{Reason: cmp.Or(tt.reason, agent.UsageLimit), Scope: tt.tripped, UntilMS: time.Now().Add(tt.until).UnixMilli()}
				if _, _, err := breaker.Of(h, breaker.Name("claude me", tt.tripped)).Trip(t.Context(), "agent2", f); err != nil {
					t.Fatal(err)
				}
			}
			if tt.held != "" {
				mustHold(t, h, tt.held, tt.start)
			}
			if why := watch.Barred(h, map[string]spawn.Runtime{"claude": vendor{}}, "agent1"); (why != "") != tt.barred {
				t.Errorf("Barred = %q", why)
			}
			if why := watch.MayStart(h, vendor{}, la, false, time.Now()); (why != "") != tt.mayNot {
				t.Errorf("MayStart = %q", why)
			}
		})
	}
}

// mustHold writes the ledger of an agent that holds a message for a model.
func mustHold(t *testing.T, h home.Dir, scope, start string) {
	t.Helper()
	ledger := fmt.Sprintf(`{"owed": [{"id": "owner-0", "from": "owner", "start": %q, "wants": true,
		"held": {"fault": {"reason": "usage_limit", "scope": %q}, "last_ms": 1, "waits": true}}]}`, start, scope)
	testworld.Must(t, h.WriteFile("state/owed/agent1.json", []byte(ledger), false))
}
