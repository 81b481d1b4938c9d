package fleet_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nkeys"

	"netsky/agent"
	"netsky/config"
	"netsky/fleet"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/ssh"
	"netsky/link/team"
)

// Verbs that change the tunnels at once each have their effect, and a removal that was cut off
// before its tunnel ended can be repeated.
func TestLinkTunnels(t *testing.T) {
	h := testworld.FastHome(t)
	testworld.Got(team.Found(h, "laptop", team.Server{}))(t)
	f := testworld.Got(fleet.New(h, new(config.Config), agent.Owner, nil, "v1", nil))(t)
	tunnels := link.Tunnels{}
	for i := range 8 {
		name := fmt.Sprintf("build%d", i)
		tunnels[name] = ssh.Host{Name: name, Dest: name}
		if i%2 == 1 { // the others were removed
			key := testworld.Got(testworld.Got(nkeys.CreateUser())(t).PublicKey())(t)
			testworld.Got(team.Admit(h, team.Host{Name: name, Key: key, Role: team.Worker}))(t)
		}
	}
	testworld.Must(t, tunnels.Save(h))
	var all sync.WaitGroup
	for name := range tunnels {
		all.Go(func() {
			if err := (fleet.Links{Fleet: f}).Remove(t.Context(), name, true); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	testworld.Equal(t, len(testworld.Got(link.LoadTunnels(h))(t)), 0, "tunnels")
	testworld.Len(t, testworld.Got(team.Load(h))(t).Hosts, 1)
	testworld.Fails(t, fleet.Links{Fleet: f}.Remove(t.Context(), "build0", true), "no host of the team has that name")
}
