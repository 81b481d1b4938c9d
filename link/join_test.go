package link_test

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"netsky/internal/testworld"
	"netsky/link/team"
)

// The link of the owner's host answers who asks to join, also after the team has changed.
func TestJoin(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	build1 := testworld.Got(team.LoadKey(w.hosts[1].home))(t)
	for _, name := range []string{"build2", "build3"} {
		nc := testworld.Got(nats.Connect("nats://"+w.at, build1.SignIn(), nats.CustomInboxPrefix("_INBOX_JOIN.x"), nats.Timeout(time.Minute)))(t)
		defer nc.Close()
		a := team.Applicant{
			Home: testworld.Home(t), Name: name, Conn: nc,
			Show:    func(code, _ string) { testworld.Got(team.Approve(w.hosts[0].home, code, team.Worker))(t) },
			Confirm: func(string, string) (bool, error) { return true, nil },
		}
		joined := func() bool {
			_, err := a.Join(t.Context())
			return err == nil
		}
		testworld.Wait(t, name+" has joined", joined)
	}
	testworld.Wait(t, "the others know", func() bool { return len(testworld.Got(team.Load(w.hosts[1].home))(t).Hosts) == 4 })
}

// An owner's host that was restored from an older copy takes back what its team had become.
func TestOwnerRestored(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	knows := func(h *host) func() bool {
		return func() bool { _, is := testworld.Got(team.Load(h.home))(t).Host("build2"); return is }
	}
	_, old, err := team.Document(laptop.home)
	testworld.Must(t, err)
	key := testworld.Got(team.MakeKey(testworld.FastHome(t)))(t)
	testworld.Got(team.Admit(laptop.home, team.Host{Name: "build2", Key: key.Public(), Role: team.Worker}))(t)
	testworld.Wait(t, "build1 knows build2", knows(build1))
	laptop.stop()
	testworld.Must(t, laptop.home.WriteFile(team.TeamFile, old, true))
	laptop.link()
	testworld.Wait(t, "laptop knows build2 again", knows(laptop))
}

// A host that was away takes the mail of one that has joined again meanwhile, with another key. That
// one finds its own.
func TestJoinedAgain(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build1, build2 := w.hosts[0], w.hosts[1], w.hosts[2]
	build1.stop()
	laptop.send("agent1", "agent1@build1", "before it left")
	testworld.Wait(t, "the server has it", func() bool { return laptop.waiting("agent1@build1") == 0 })
	laptop.stop()
	build2.stop()
	w.end()
	testworld.Got(team.Remove(laptop.home, "build1"))(t)
	w.serve()
	w.end()
	testworld.Must(t, os.Remove(build1.home.Path(team.KeyFile)))
	key := testworld.Got(team.MakeKey(build1.home))(t)
	testworld.Got(team.Admit(laptop.home, team.Host{Name: "build1", Key: key.Public(), Role: team.Worker}))(t)
	testworld.Must(t, build1.home.WriteFile(team.TeamFile, testworld.Got(os.ReadFile(laptop.home.Path(team.TeamFile)))(t), true))
	w.serve()
	laptop.link()
	build1.link()
	build1.send("agent1", "agent1@build2", "with the new key")
	testworld.Wait(t, "the server has it", func() bool { return build1.waiting("agent1@build2") == 0 })
	laptop.send("agent1", "agent1@build1", "the team's document is at the server")
	testworld.Wait(t, "the owner's host is connected", func() bool { return len(build1.texts("agent1")) == 2 })
	build2.link()
	testworld.Wait(t, "it arrives", func() bool { return len(build2.texts("agent1")) == 1 })
	testworld.Equal(t, build2.texts("agent1")[0], "agent1@build1: with the new key")
	testworld.EqualList(t, build1.texts("agent1"), []string{"agent1@laptop: before it left", "agent1@laptop: the team's document is at the server"}, "what build1 got")
}
