package view_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/view"
)

// What scripts read of an agent, from `netsky status --json` and from the dashboard's API.
func TestJSON(t *testing.T) {
	a := view.Agent{
		ID: "agent1", State: agent.Blocked, Since: 1, Evidence: "e", Detail: "d", Fault: agent.Fault{Reason: agent.UsageLimit, Account: "a", UntilMS: 5},
		Attempt: 1, Attempts: 2, Runtime: "demo", Model: "m", Dir: "/", Start: "s", PID: 3, Pane: "%1", Version: "v", Restart: "r",
		Held: 2, HeldUntil: 7, Decidable: true, Deaf: true,
	}
	const both = "evidence detail since state runtime model dir start pid wanted inbox claimed outbox poison restart held"
	for _, tt := range []struct {
		v    any
		keys string
		held any
	}{
		{a, both + " agent reason account until attempt attempts pane version strays held_until", 2.0},
		{view.API{Agent: a}, both + " id fault decidable deaf", a.HeldWords()},
	} {
		data := testworld.Got(json.Marshal(tt.v))(t)
		var got map[string]any
		testworld.Must(t, json.Unmarshal(data, &got))
		for key := range strings.FieldsSeq(tt.keys) {
			if _, ok := got[key]; !ok {
				t.Errorf("%T: no %q among %q", tt.v, key, slices.Sorted(maps.Keys(got)))
			}
		}
		testworld.Equal(t, got["held"], tt.held, "%T: held", tt.v)
	}
}
