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
