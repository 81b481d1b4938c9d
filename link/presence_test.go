package link_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/team"
	"netsky/link/wire"
)

// tells has a host tell what is in the two values.
func (h *host) tells(agents, needs string) (a, n *atomic.Value) {
	a, n = new(atomic.Value), new(atomic.Value)
	a.Store(agents)
	n.Store(needs)
	h.stop()
	h.agents = func(context.Context) (jsontext.Value, error) { return jsontext.Value(a.Load().(string)), nil }
	h.needs = func(context.Context) (jsontext.Value, error) { return jsontext.Value(n.Load().(string)), nil }
	h.link()
	return a, n
}

// heard returns what the host was told by another.
func (h *host) heard(name string) link.Host {
	h.Helper()
	for _, one := range testworld.Got(link.Hosts(h.home))(h) {
		if one.Name == name {
			return one
		}
	}
	h.Fatalf("%s: is not among the hosts", name)
	return link.Host{}
}

func (h *host) trouble(about string) string {
	r, _ := link.LoadReport(h.home)
	return r.Troubles[about].What
}

// as connects as a host.
func (w *world) as(h *host) jetstream.JetStream {
	w.Helper()
	return testworld.Got(jetstream.New(w.dial(h), jetstream.WithDefaultTimeout(time.Minute)))(w)
}

// The owner's host hears what each host tells of itself, and nobody else does.
func TestHeard(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build1, build2 := w.hosts[0], w.hosts[1], w.hosts[2]
	build1.stop()
	build1.entries = func(context.Context) (jsontext.Value, error) { return jsontext.Value(`[7]`), nil }
	agents, needs := build1.tells(`["a"]`, `["n"]`)
	taken := make(chan string, 100)
	laptop.stop()
	laptop.takes = func(_ context.Context, from link.Host, told jsontext.Value) (int64, error) {
		taken <- fmt.Sprintf("%s after %d: %s", from.Name, from.Last, told)
		return 7, nil
	}
	laptop.link()
	is := func(a, n string) {
		t.Helper()
		testworld.Wait(t, "what build1 tells: "+a+n, func() bool {
			h := laptop.heard("build1")
			return string(h.State.Agents) == a && string(h.Needs) == n
		})
	}
	is(`["a"]`, `["n"]`)
	h := laptop.heard("build1")
	testworld.Equal(t, h.State.Version+" "+h.State.Name+" "+h.State.Instance, "v1 build1 "+testworld.Got(team.Instance(build1.home))(t), "its state")
	testworld.Equal(t, h.Behind.Round(time.Minute), 0, "how far its clock is behind")
	if !h.Up(h.Seen) || h.Up(h.Seen.Add(link.Fresh)) || h.Up(h.Seen.Add(-link.Fresh)) {
		t.Error("a host is up for a while after it has told something")
	}
	agents.Store(`["b"]`)
	is(`["b"]`, `["n"]`)
	testworld.Equal(t, <-taken, `build1 after 0: [7]`, "what it tells of its log")
	testworld.Equal(t, <-taken, `build1 after 7: [7]`, "told again, it comes after what is recorded")
	w.end()
	needs.Store(`[]`)
	w.serve()
	is(`["b"]`, `[]`)
	testworld.Wait(t, "build2", func() bool { return laptop.heard("build2").Up(time.Now()) })
	if list := testworld.Got(link.Hosts(build2.home))(t); len(list) > 0 {
		t.Errorf("a worker is told of %v", list)
	}
	if list, err := link.Hosts(testworld.FastHome(t)); len(list) > 0 || err != nil {
		t.Errorf("a home without a team has %v, %v", list, err)
	}

	testworld.Got(team.Remove(laptop.home, "build1"))(t)
	testworld.Wait(t, "what build1 has told is removed", func() bool {
		_, err := os.Lstat(laptop.home.Path(link.Heard, "build1.json"))
		return os.IsNotExist(err)
	})
}

// What a host has not signed, or is no JSON, is not shown.
func TestHeardForged(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build1, build2 := w.hosts[0], w.hosts[1], w.hosts[2]
	build1.tells(`["a"]`, `["n"]`)
	testworld.Wait(t, "build1 is heard", func() bool { return laptop.heard("build1").Needs != nil && laptop.heard("build1").State.Agents != nil })
	build1.stop()
	states := testworld.Got(wire.States(t.Context(), w.adminJS()))(t)
	testworld.Wait(t, "all that build1 has told is heard", func() bool {
		return !slices.ContainsFunc([]string{wire.StateKey("build1"), wire.NeedsKey("build1"), wire.LogKey("build1")}, func(key string) bool {
			m, err := wire.GetState(t.Context(), states, key)
			return err == nil && laptop.heard("build1").IDs[key] != m.Header.Get(nats.MsgIdHdr)
		})
	})
	was := laptop.heard("build1")
	put := func(as *host, id, text, trouble string) {
		t.Helper()
		key := testworld.Got(team.LoadKey(as.home))(t)
		testworld.Must(t, wire.PutState(t.Context(), w.as(as), key, wire.NeedsKey("build1"), id, []byte(text)))
		testworld.Wait(t, trouble, func() bool { return laptop.trouble("what build1 tells") == trouble })
		h := laptop.heard("build1")
		testworld.Equal(t, string(h.Needs), `["n"]`, "what is shown")
		testworld.Equal(t, h.Seen, was.Seen, "when it was seen")
	}
	put(build2, "1", `["forged"]`, "build1.needs: "+wire.ErrForged.Error())
	put(build1, "2", `{`, "build1.needs: is no JSON")

	// A clock that is wrong shows in no age. What laptop has asked for before it was told does not say when that was.
	js, key := w.as(build1), testworld.Got(team.LoadKey(build1.home))(t)
	testworld.Wait(t, "what build1 tells an hour ahead", func() bool {
		testworld.Must(t, wire.PutState(t.Context(), js, key, wire.NeedsKey("build1"), fmt.Sprint("build1.needs ", time.Now().Add(time.Hour).UnixNano()), []byte(`[1]`)))
		return laptop.heard("build1").Behind.Round(time.Minute) == -time.Hour
	})
	if h := laptop.heard("build1"); !h.Up(time.Now()) {
		t.Errorf("it was seen at %v", h.Seen)
	}
}

// A copy of a home, which has the same key and name, is found by both.
func TestCopiedHome(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	build1 := w.hosts[1]
	copied := &host{TB: t, name: "copy", home: testworld.FastHome(t)}
	copied.bus, copied.stop = testworld.Bus(t, copied.home, agent.Owner, agent.Root, "agent1"), func() {}
	for _, file := range []string{team.KeyFile, team.SelfFile, team.TeamFile} {
		testworld.Must(t, copied.home.WriteFile(file, testworld.Got(os.ReadFile(build1.home.Path(file)))(t), true))
	}
	one, _ := build1.tells("[]", "[]")
	two, _ := copied.tells("[]", "[]")
	n := 0
	testworld.Wait(t, "both are told", func() bool {
		n++ // each tells something new
		one.Store(fmt.Sprint("[", n, "]"))
		two.Store(fmt.Sprint("[", n, "]"))
		return build1.trouble("this home") != "" && copied.trouble("this home") != ""
	})
	testworld.Contains(t, build1.trouble("this home"), "another home on the team's server is build1 too", "its report")
}

// A host that tells something all the time is heard once a second, and its last word counts.
func TestHeardFlood(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop := w.hosts[0]
	evil := w.steal(w.hosts[1])
	tell := func(i int) {
		testworld.Must(t, wire.PutState(t.Context(), evil.js, evil.key, wire.NeedsKey("build1"), fmt.Sprint("build1.needs ", time.Now().UnixNano()), fmt.Appendf(nil, "[%d]", i)))
	}
	heard := func(i int) {
		t.Helper()
		testworld.Wait(t, "what it tells", func() bool { return string(laptop.heard("build1").Needs) == fmt.Sprintf("[%d]", i) })
	}
	tell(0)
	heard(0)
	f := testworld.Got(fsnotify.NewBufferedWatcher(10_000))(t)
	defer f.Close()
	testworld.Must(t, f.Add(laptop.home.Path(link.Heard)))
	begin := time.Now()
	for i := range 300 {
		tell(i)
	}
	heard(299)
	most, n := int(3*time.Since(begin)/(2*time.Second))+3, 0 // each second, and each other second as laptop asks for it
	for len(f.Events) > 0 {
		if e := <-f.Events; e.Op.Has(fsnotify.Create) && e.Name == laptop.home.Path(link.Heard, "build1.json") {
			n++
		}
	}
	if n > most {
		t.Errorf("it was written down %d times, want at most %d", n, most)
	}
}
