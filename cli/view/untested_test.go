package view_test

import (
	"slices"
	"testing"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/spawn"
)

func TestUntestedNotes(t *testing.T) {
	t.Parallel()
	const newer, older = "Claude Code 3.0.0, which is newer", "Codex 0.160.0, which is older"
	got := view.UntestedNotes(spawn.Statuses{
		{Agent: "agent0", State: agent.Idle, Untested: newer}, {Agent: "agent1", State: agent.Busy},
		{Agent: "agent2", State: agent.Idle, Untested: older}, {Agent: "agent3", State: agent.Blocked, Untested: newer},
		{Agent: "agent4", State: agent.Down, Untested: newer}, {Agent: "agent5", State: agent.Dead, Untested: newer},
	})
	if want := []string{"agent0 and agent3 run on " + newer, "agent2 runs on " + older}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
