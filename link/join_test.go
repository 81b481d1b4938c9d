package link_test

import (
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
