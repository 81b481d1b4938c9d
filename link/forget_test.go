package link_test

import (
	"os"
	"testing"

	"netsky/internal/testworld"
	"netsky/link"
)

// Nothing that the link of one team has kept is there for the next.
func TestForget(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	laptop.send("agent0", "agent1@build1", "x")
	testworld.Wait(t, "the record of what was sent", func() bool {
		_, err := os.Stat(laptop.home.Path("state/link/sent.json"))
		return err == nil && len(build1.texts("agent1")) == 1
	})
	laptop.stop()
	testworld.Must(t, link.Forget(laptop.home))
	for _, entry := range testworld.Got(os.ReadDir(laptop.home.Path("state/link")))(t) {
		switch entry.Name() {
		case "key", "self.json", "team.json", "join", "hosts", "server":
		default:
			t.Errorf("%s is still there", entry.Name())
		}
	}
	testworld.Must(t, link.Forget(laptop.home), "again")
}
