package link_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/link/team"
	"netsky/link/wire"
)

// At a server that knows nothing of the team, the owner's host makes what mail needs.
func TestForeignServer(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	laptop.stop()
	build1.stop()
	nc := testworld.Got(nats.Connect("nats://"+w.at, w.admin.SignIn(), nats.Timeout(time.Minute)))(t)
	defer nc.Close()
	js := testworld.Got(jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute)))(t)
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

// What is too large for such a server keeps nothing back that is behind it, and its sender is told.
func TestForeignServerSmall(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	w.end()
	w.most = 64 << 10
	w.serve()
	laptop.send(agent.Root, "agent1@build1", strings.Repeat("x", 80_000))
	laptop.send(agent.Root, "agent1@build1", "behind it")
	testworld.Wait(t, "what is behind it arrives", func() bool { return len(build1.texts("agent1")) == 1 })
	testworld.Wait(t, "its sender is told", func() bool { return len(laptop.texts(agent.Root)) == 1 })
	testworld.Contains(t, laptop.texts(agent.Root)[0], "too large for another host", "at most 61440 cross")
}

// One that has lost all that it had, as a container without a volume does when it is started again, gets it again.
func TestForeignServerEmptied(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	laptop.send(agent.Owner, "agent1@build1", "before")
	testworld.Wait(t, "it arrives", func() bool { return len(build1.texts("agent1")) == 1 })
	w.end()
	w.store, w.bare = t.TempDir(), true
	w.serve()
	laptop.send(agent.Owner, "agent1@build1", "afterwards")
	build1.send("agent1", "agent0@laptop", "back")
	testworld.Wait(t, "mail arrives", func() bool { return len(build1.texts("agent1")) == 2 && len(laptop.texts("agent0")) == 1 })
	testworld.Wait(t, "the team's document is there", func() bool {
		kv, err := w.adminJS().KeyValue(t.Context(), wire.Team)
		if err != nil {
			return false
		}
		_, err = kv.Get(t.Context(), wire.TeamKey)
		return err == nil
	})
}

// mustForeign returns the owner's host of a team at a NATS server.
func mustForeign(t *testing.T, address string) *host {
	t.Helper()
	h := &host{TB: t, name: "laptop", home: testworld.FastHome(t)}
	h.bus = testworld.Bus(t, h.home, agent.Owner)
	testworld.Got(team.Found(h.home, h.name, team.Server{Address: address}))(t)
	h.link()
	return h
}

// mustNode starts a NATS server, as a node of a cluster if it has a name.
func mustNode(t *testing.T, name string, edit func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{ServerName: name, Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
	edit(o)
	s := testworld.Got(server.NewServer(o))(t)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

// A server that asks nobody for a key says no more than that; what to do about it is said here.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	h := mustForeign(t, mustNode(t, "", func(*server.Options) {}).ClientURL())
	key := testworld.Got(team.LoadKey(h.home))(t)
	testworld.Wait(t, "it is said", func() bool {
		return strings.HasPrefix(h.down(), "the NATS server knows no keys: have its administrator add the user { nkey: "+key.Public()+" }")
	})
}

// Two nodes can't keep three copies.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	cluster := server.ClusterOpts{Name: "two", Host: "127.0.0.1", Port: -1}
	one := mustNode(t, "one", func(o *server.Options) {
		o.Cluster, o.AlwaysEnableNonce = cluster, true
		o.Routes = server.RoutesFromStr("nats://127.0.0.1:1")
	})
	mustNode(t, "two", func(o *server.Options) {
		o.Cluster, o.Routes = cluster, server.RoutesFromStr("nats://"+one.ClusterAddr().String())
	})
	h := mustForeign(t, one.ClientURL())
	testworld.WaitOr(t, func() bool {
		return strings.Contains(h.trouble("streams"), "a team on a NATS cluster needs three nodes with JetStream")
	}, func() string { return h.down() + h.trouble("streams") })
}
