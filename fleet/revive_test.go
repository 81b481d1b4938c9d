package fleet_test

import (
	"os"
	"slices"
	"testing"

	"netsky/agent"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/testworld"
)

func TestWanted(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	for name, up := range map[string]bool{"agent0": true, "agent1": false, "agent12": true, "agentinfinity": true, agent.DaemonName: true} {
		testworld.Must(t, home.Desired(h).Set(name, up, "owner"))
	}
	ids, daemon, err := fleet.Wanted(h)
	if err != nil || !daemon || !slices.Equal(ids, []agent.ID{"agent0", "agent12", "agentinfinity"}) {
		t.Errorf("%v, %v, %v", ids, daemon, err)
	}
	testworld.Must(t, os.WriteFile(h.Path(home.DesiredDir, "agent3"), []byte("{"), 0o600))
	if ids, _, err = fleet.Wanted(h); err == nil || len(ids) != 3 {
		t.Errorf("%v, %v", ids, err)
	}
}
