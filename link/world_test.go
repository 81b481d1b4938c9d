package link_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/ssh"
	"netsky/link/team"
	"netsky/link/wire"
)

// A host is one of a team in a test: a home with agents' mailboxes, and its link.
type host struct {
	testing.TB
	name    string
	home    home.Dir
	bus     *bus.Bus
	deed    link.Deeds
	stop    func()
	environ []string

	looks atomic.Int32 // lines of the log that tell of one

	agents, needs, entries func(context.Context) (jsontext.Value, error)
	takes                  func(context.Context, link.Host, jsontext.Value) (int64, error)
}

// A world is a team whose hosts share a server.
type world struct {
	testing.TB
	store string
	at    string // the server's address; "": any
	bare  bool   // it has no streams but those that it finds
	most  int32  // its max_payload; 0: NATS's own
	admin team.Key
	hosts []*host
	end   func()
}

// mustWorld returns a team of hosts that have agent0 and agent1; the first is the owner's.
func mustWorld(tb testing.TB, names ...string) *world {
	tb.Helper()
	return mustWorldIn(tb, testworld.FastHome, names...)
}

func mustWorldIn(tb testing.TB, makeHome func(testing.TB) home.Dir, names ...string) *world {
	tb.Helper()
	w := &world{TB: tb, store: tb.TempDir()}
	for _, name := range names {
		h := makeHome(tb)
		w.hosts = append(w.hosts, &host{TB: tb, name: name, home: h, bus: testworld.Bus(tb, h, agent.Owner, agent.Root, "agent1")})
	}
	owner := w.hosts[0].home
	testworld.Got(team.Found(owner, names[0], team.Server{}))(tb)
	keys := make(map[string]string)
	for _, h := range w.hosts[1:] {
		k := testworld.Got(team.MakeKey(h.home))(tb)
		keys[h.name] = k.Public()
		testworld.Got(team.Admit(owner, team.Host{Name: h.name, Key: k.Public(), Role: team.Worker}))(tb)
	}
	w.serve()
	tb.Cleanup(func() { w.end() })
	self := testworld.Got(team.LoadSelf(owner))(tb)
	for _, h := range w.hosts {
		self.Name, self.Server.Address = h.name, "nats://"+w.at
		testworld.Must(tb, h.home.WriteFile(team.TeamFile, testworld.Got(os.ReadFile(owner.Path(team.TeamFile)))(tb), true))
		testworld.Must(tb, h.home.Save(team.SelfFile, self, true))
		h.link()
	}
	for _, h := range w.hosts {
		testworld.Wait(tb, "mail can be sent", func() bool { return len(testworld.Got(h.bus.Linked())(tb)) == len(names)-1 })
	}
	return w
}

// serve starts the server, where the one before it was.
func (w *world) serve() {
	w.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: w.store, SyncAlways: true, NoSigs: true, NoLog: true, MaxPayload: w.most}
	if w.at != "" {
		fmt.Sscanf(w.at, "127.0.0.1:%d", &o.Port)
	}
	t := testworld.Got(team.Load(w.hosts[0].home))(w)
	w.admin = testworld.Got(team.MakeKey(testworld.FastHome(w)))(w)
	o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: w.admin.Public()})
	o.Users = append(o.Users, &server.User{Username: team.JoinUser, Password: team.JoinPassword})
	var names []string
	for _, h := range t.Hosts {
		names = append(names, h.Name)
		o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: h.Key})
	}
	s := testworld.Got(server.NewServer(o))(w)
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		w.Fatal("the server does not start")
	}
	w.at, w.end = s.Addr().String(), func() { s.Shutdown(); s.WaitForShutdown() }
	if w.bare {
		return
	}
	nc := testworld.Got(nats.Connect(s.ClientURL(), w.admin.SignIn(), nats.Timeout(time.Minute)))(w)
	defer nc.Close()
	testworld.Must(w, wire.Provision(w.Context(), testworld.Got(jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute)))(w), names, wire.DefaultLimits()))
}

// link starts the host's link.
func (h *host) link() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	log := slog.New(slog.NewTextHandler(testLog{h.TB, h.name, &h.looks}, nil))
	go func() {
		defer close(done)
		_ = link.Run(ctx, link.Options{SSH: ssh.Client{Home: h.home, Environ: h.environ}, Home: h.home, Bus: h.bus, Log: log, Version: "v1", Agents: h.agents, Needs: h.needs, Entries: h.entries, TakeEntries: h.takes, Deeds: &h.deed, Renew: 2 * time.Second})
	}()
	h.stop = func() { cancel(); <-done }
	h.Cleanup(func() { h.stop() })
}

type testLog struct {
	tb    testing.TB
	name  string
	looks *atomic.Int32
}

func (l testLog) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "deed=peek") {
		l.looks.Add(1)
	}
	if os.Getenv("LINK_LOG") != "" {
		fmt.Fprintf(os.Stderr, "%s %s", l.name, p)
	}
	return len(p), nil
}

// send sends a text from an agent.
func (h *host) send(from, to agent.ID, text string) string {
	h.Helper()
	r, err := h.bus.Send(h.Context(), envelope.Envelope{From: from, To: to, Text: text, Time: time.Now(), RequiresAck: true})
	testworld.Must(h, err, "send")
	return r.ID
}

// texts returns what an inbox holds, in order.
func (h *host) texts(id agent.ID) (list []string) {
	h.Helper()
	for _, e := range testworld.Got(h.bus.List(id, bus.Inbox, 0))(h) {
		list = append(list, string(e.Envelope.From)+": "+e.Envelope.Text)
	}
	return list
}

// waiting is what the host has for another that the server does not have yet.
func (h *host) waiting(id agent.ID) int {
	n := 0
	for _, p := range bus.Pending() {
		files, _ := filepath.Glob(h.home.Path(home.Mailbox(id), string(p), "*.json"))
		n += len(files)
	}
	return n
}

// state is what the host has heard of another.
func (h *host) state(name string) link.State {
	list, _ := link.Hosts(h.home)
	for _, one := range list {
		if one.Name == name {
			return one.State
		}
	}
	return link.State{}
}

// reachBy sets how the host reaches the server.
func (h *host) reachBy(address string) {
	h.Helper()
	self := testworld.Got(team.LoadSelf(h.home))(h)
	self.Server = team.Server{Address: address}
	testworld.Must(h, h.home.Save(team.SelfFile, self, true))
}
