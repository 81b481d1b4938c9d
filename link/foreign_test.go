package link_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/internal/testworld"
	"netsky/link/wire"
)

// At a server that knows nothing of the team, the owner's host makes what mail needs.
func TestForeignServer(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	laptop.stop()
	build1.stop()
	nc := testworld.Got(nats.Connect("nats://"+w.at, w.admin.SignIn()))(t)
	defer nc.Close()
	js := testworld.Got(jetstream.New(nc))(t)
	names := js.StreamNames(t.Context())
	for name := range names.Name() {
		testworld.Must(t, js.DeleteStream(t.Context(), name))
	}
	testworld.Must(t, names.Err())
	laptop.link()
	build1.link()
	build1.send("agent1", "agent0@laptop", "hello")
	testworld.Wait(t, "mail arrives", func() bool { return len(laptop.texts("agent0")) == 1 })
	s := testworld.Got(js.Stream(t.Context(), wire.MailStream("build1")))(t)
	testworld.Equal(t, s.CachedInfo().Config.Replicas, 1, "copies at a server that is no cluster")
}
