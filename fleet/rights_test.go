package fleet_test

import (
	"os"
	"slices"
	"testing"

	"netsky/agent"
	"netsky/config"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/testworld"
)

// Who may do what, one row a deed: the owner, agent0, a clone, agentinfinity.
func TestRights(t *testing.T) {
	t.Parallel()
	actors := []agent.ID{agent.Owner, agent.Root, agent.Clone(3), agent.Infinity}
	const managers, owner, everybody = "yyny", "ynnn", "yyyy"
	for deed, want := range map[string]string{
		"up": managers, "agent": managers, "down": managers, "restart": managers, "interrupt": managers, "codex": managers,
		"task start": managers, "task of another's": managers, "work retire": managers, "daemon run": managers, "daemon stop": managers, "doctor --fix": managers,
		"init": managers, "service install": managers, "service uninstall": managers, "service run": managers, "escalate": managers,
		"forget": managers, "on": managers, "channel drain AGENT": managers, "imessage history": managers, "imessage send": managers, "imessage doctor": managers,
		"io serve -s imessage": "nyny",
		"approve":              owner, "dashboard": owner, "uninstall": owner, "demo": owner, "hosts install": owner, "deed on another host": owner, "drill": owner, "quiet": owner, "forget --unproved": owner,
		"check --set": owner, "imessage access ls": owner, "imessage access allow": owner, "imessage access deny": owner,
		"imessage access pair": owner, "inbox": owner,
		"link serve": owner, "link join": owner, "link approve": owner, "link reject": owner, "link remove": owner, "link leave": owner, "link move": owner, "link": everybody,
		"cron add": "yynn", "loop": "yynn", "cron rm": "yynn",
		"land": "yynn", "undo": "yynn", "ask": everybody, "status": everybody, "note add": everybody,
	} {
		got := ""
		for _, id := range actors {
			if fleet.May(id, deed) == nil {
				got += "y"
			} else {
				got += "n"
			}
		}
		testworld.Equal(t, got, want, "%s", deed)
	}
	for land, want := range map[string]string{config.LandOwner: owner, config.LandRoot: "yynn"} {
		var c config.Config
		c.Work.Land = land
		got := ""
		for _, id := range actors {
			got += map[bool]string{true: "y", false: "n"}[fleet.MayLand(id, c, "land") == nil]
		}
		testworld.Equal(t, got, want, "land, with %q", land)
	}
}

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
