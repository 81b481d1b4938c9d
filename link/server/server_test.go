package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/link/server"
	"netsky/link/team"
	"netsky/link/wire"
)

// A host that is removed is cut off, and its key opens nothing; the others notice nothing,
// and what it has sent is still fetched. One that is admitted is let in.
func TestRemoved(t *testing.T) {
	w := newWorld(t, server.Local)
	w.serve()
	ctx, laptop := ctxOf(t), w.js("laptop")
	it := testworld.Got(testworld.Got(laptop.Consumer(ctx, wire.MailStream("build2"), "laptop"))(t).Messages())(t)
	defer it.Stop()
	closed := make(chan bool, 1)
	removed := w.dial("build1", nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { closed <- true }))
	testworld.Got(testworld.Got(jetstream.New(removed))(t).Publish(ctx, wire.MailSubject("build1", "laptop"), []byte("last words")))(t)
	testworld.Got(team.Remove(w.home, "build1"))(t)
	select {
	case <-closed:
	case <-ctx.Done():
		t.Fatal("its connection was kept")
	}
	stolen := testworld.Got(team.LoadKey(w.homes["build1"]))(t)
	if nc, err := nats.Connect(w.ready().Address, stolen.SignIn()); err == nil {
		nc.Close()
		t.Error("its key still signs in")
	}
	var last jetstream.Msg
	testworld.Wait(t, "its mail", func() bool { // while the server takes the team over, nobody may be there to answer
		c, err := laptop.Consumer(ctx, wire.MailStream("build1"), "laptop")
		if err == nil {
			last, err = c.Next()
		}
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			t.Fatal(err)
		}
		return err == nil
	})
	testworld.Equal(t, string(last.Data()), "last words", "its mail")
	testworld.Equal(t, laptop.Conn().Stats().Reconnects, 0, "connections of another host that were cut")

	w.homes["build3"] = testworld.Home(t)
	key := testworld.Got(team.MakeKey(w.homes["build3"]))(t)
	testworld.Got(team.Admit(w.home, team.Host{Name: "build3", Key: key.Public(), Role: team.Worker, Added: time.Now()}))(t)
	testworld.Wait(t, "a new host is let in", func() bool {
		nc, err := nats.Connect(w.ready().Address, key.SignIn(), nats.CustomInboxPrefix(wire.Inbox("build3")))
		if err != nil {
			return false
		}
		defer nc.Close()
		js := testworld.Got(jetstream.New(nc))(t)
		_, err = js.Publish(ctx, wire.MailSubject("build3", "laptop"), []byte("first words"))
		return err == nil
	})
	testworld.Got(w.js("build2").Publish(ctx, wire.MailSubject("build2", "laptop"), []byte("as ever")))(t)
	testworld.Equal(t, string(testworld.Got(it.Next(jetstream.NextContext(ctx)))(t).Data()), "as ever", "who waited for mail before")
}

// What was acknowledged is there after the server was killed, once.
func TestKilled(t *testing.T) {
	w := newWorld(t, server.Local)
	ctx, sent := ctxOf(t), 0
	for round := range 4 {
		cmd := w.apart()
		address := w.ready().Address
		js := testworld.Got(jetstream.New(w.dial("build1", nats.NoReconnect())))(t)
		for kill := sent + 10 + round; ; { // the one that was sent last may be there or not: it is sent again
			m := &nats.Msg{Subject: wire.MailSubject("build1", "laptop"), Data: fmt.Append(nil, sent), Header: nats.Header{nats.MsgIdHdr: {fmt.Sprint(sent)}}}
			short, cancel := context.WithTimeout(ctx, time.Second)
			_, err := js.PublishMsg(short, m)
			cancel()
			if err != nil {
				if sent >= kill || ctx.Err() != nil {
					break
				}
				continue // the machine is slow
			}
			if sent++; sent == kill { // while the next ones are on their way
				go cmd.Process.Kill()
			}
		}
		testworld.Wait(t, "the server is gone", func() bool { _, serving := server.Look(w.home); return !serving })
		if round > 0 {
			testworld.Equal(t, w.address, address, "the address")
		}
		w.address = address
	}
	w.apart()
	c := testworld.Got(w.js("laptop").Consumer(ctx, wire.MailStream("build1"), "laptop"))(t)
	info := testworld.Got(c.Info(ctx))(t)
	if n := int(info.NumPending); n != sent && n != sent+1 || sent == 0 {
		t.Fatalf("%d were acknowledged, %d are there", sent, n)
	}
	batch := testworld.Got(c.FetchNoWait(sent))(t)
	n := 0
	for m := range batch.Messages() {
		testworld.Equal(t, string(m.Data()), fmt.Sprint(n), "message")
		n++
	}
	testworld.Equal(t, n, sent, "messages")
}

// A stopped reader is cut off once too much waits for it; others go on.
func TestSlow(t *testing.T) {
	w := newWorld(t, server.Local)
	w.serve()
	ctx := ctxOf(t)
	gate := &gated{}
	slow := w.dial("laptop", nats.SetCustomDialer(gate), nats.NoReconnect())
	testworld.Got(slow.SubscribeSync(wire.Told(wire.Hosts, ">")))(t)
	testworld.Must(t, slow.Flush())
	gate.Lock()
	hosts := testworld.Got(w.js("build1").KeyValue(ctx, wire.Hosts))(t)
	state := make([]byte, 200<<10)
	for range 250 { // 50 MB
		testworld.Got(hosts.Put(ctx, wire.StateKey("build1"), state))(t)
	}
	gate.Unlock()
	testworld.Wait(t, "it is cut off", slow.IsClosed)
}

// A gated dialer makes connections that read nothing while it is locked.
type gated struct{ sync.Mutex }

type gatedConn struct {
	net.Conn
	gate *gated
}

func (g *gated) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	if err == nil {
		err = c.(*net.TCPConn).SetReadBuffer(64 << 10)
	}
	return gatedConn{c, g}, err
}

func (c gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.Lock()
	defer c.gate.Unlock()
	return n, err
}

// A host that floods fills its own stream; what is too large ends its connection.
func TestHostFloods(t *testing.T) {
	w := newWorld(t, server.Local)
	w.serve()
	ctx, evil, other := ctxOf(t), w.js("build1"), w.js("build2")
	full := 0
	for range 64 {
		if _, err := evil.Publish(ctx, wire.MailSubject("build1", "laptop"), make([]byte, 1<<20)); err != nil {
			full++
		}
	}
	if full < 60 {
		t.Errorf("of 64 MB only %d were refused", full)
	}
	testworld.Got(other.Publish(ctx, wire.MailSubject("build2", "laptop"), make([]byte, 1<<20)))(t)
	testworld.Got(w.js("laptop").Publish(ctx, wire.MailSubject("laptop", "build1"), make([]byte, 1<<20)))(t)
	if err := evil.Conn().Publish(wire.MailSubject("build1", "laptop"), make([]byte, 8<<20)); err == nil {
		t.Error("8 MB were taken")
	}
}

// On an address that others reach there is TLS, with a certificate that is kept.
func TestTLS(t *testing.T) {
	w := newWorld(t, "0.0.0.0:0")
	stop := w.serve()
	first := w.ready()
	if !strings.HasPrefix(first.Address, "tls://0.0.0.0:") || len(first.Fingerprint) != 64 {
		t.Fatalf("state: %+v", first)
	}
	kept := w.dial("build1")
	out := make(chan bool, 1)
	w.dial("build2", nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { out <- true }))
	testworld.Got(team.Remove(w.home, "build2"))(t)
	select {
	case <-out:
	case <-ctxOf(t).Done():
		t.Fatal("who was removed is still connected")
	}
	testworld.Must(t, kept.Flush())
	testworld.Equal(t, kept.Stats().Reconnects, 0, "connections that were cut")
	key := testworld.Got(team.LoadKey(w.homes["build1"]))(t)
	_, err := nats.Connect(first.Address, key.SignIn(), nats.Secure(pinned(strings.Repeat("0", 64))))
	testworld.ErrorIs(t, err, errOther, "another certificate")
	if _, err := nats.Connect(strings.Replace(first.Address, "tls://", "nats://", 1), key.SignIn()); err == nil {
		t.Error("without TLS it was let in")
	}
	stop()
	w.serve()
	again := w.ready()
	testworld.Equal(t, again.Address+again.Fingerprint, first.Address+first.Fingerprint, "after a restart")
}

// What keeps a server from its work is said, and what to do.
func TestCannotServe(t *testing.T) {
	for name, breaks := range map[string]struct {
		how  func(w world)
		says string
	}{
		"port taken": {func(w world) {
			l := testworld.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
			t.Cleanup(func() { l.Close() })
			testworld.Must(t, server.Settings{Listen: l.Addr().String()}.Save(w.home))
		}, "listen: "},
		"settings damaged": {func(w world) {
			testworld.Must(t, os.WriteFile(w.home.Path(server.SettingsFile), []byte(`{"listen":"7"}`), 0o600))
		}, "must be an address and a port"},
		"store damaged": {func(w world) {
			testworld.Must(t, os.MkdirAll(w.home.Path("state/link/server"), 0o700))
			testworld.Must(t, os.WriteFile(w.home.Path("state/link/server/jetstream"), nil, 0o600))
		}, "JetStream"},
		"no team": {func(w world) { testworld.Must(t, os.Remove(w.home.Path(team.SelfFile))) }, team.ErrNone.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, server.Local)
			breaks.how(w)
			s := server.Server{Home: w.home, Log: slog.New(slog.DiscardHandler)}
			err := s.Serve(ctxOf(t))
			if err == nil || !strings.Contains(err.Error(), breaks.says) {
				t.Errorf("error: %v", err)
			}
			state, serving := server.Look(w.home)
			if serving || !strings.Contains(state.Error, breaks.says) || state.Next != advice.Of(err) {
				t.Errorf("state: %+v, %v", state, serving)
			}
		})
	}
}

// Two servers of a home don't run at once.
func TestTwo(t *testing.T) {
	w := newWorld(t, server.Local)
	w.serve()
	s := server.Server{Home: w.home, Log: slog.New(slog.DiscardHandler)}
	testworld.ErrorIs(t, s.Serve(ctxOf(t)), home.ErrLocked, "a second server")
	if _, serving := server.Look(w.home); !serving {
		t.Error("the first is no longer known")
	}
}

// The daemon's keeper serves as long as the home does, whatever ends the server.
func TestKeeper(t *testing.T) {
	w := newWorld(t, server.Local)
	argv, env := command(w.home)
	settings := testworld.Got(os.ReadFile(w.home.Path(server.SettingsFile)))(t)
	testworld.Must(t, os.Remove(w.home.Path(server.SettingsFile)))
	ctx, cancel := context.WithCancel(ctxOf(t))
	var log strings.Builder
	k := server.Keeper{Home: w.home, Command: argv, Environ: env, Log: slog.New(slog.NewTextHandler(&log, nil))}
	ended := make(chan bool)
	go func() {
		defer close(ended)
		_ = k.Run(ctx)
	}()
	testworld.Must(t, w.home.WriteFile(server.SettingsFile, settings, true))
	first := w.ready()
	testworld.Must(t, first.Signal(syscall.SIGKILL))
	testworld.Wait(t, "another server", func() bool { s, serving := server.Look(w.home); return serving && s.Process != first.Process })
	testworld.Equal(t, w.ready().Address, first.Address, "the address")

	testworld.Must(t, os.Remove(w.home.Path(server.SettingsFile)))
	testworld.Wait(t, "no server, and nothing that it has kept", func() bool {
		held, err := w.home.Locked(home.LinkServerLock)
		return err == nil && !held && !w.home.Mark("state/link/server/jetstream").Exists()
	})
	testworld.Must(t, w.home.WriteFile(server.SettingsFile, settings, true))
	last := w.ready()
	cancel()
	<-ended
	testworld.Equal(t, last.Alive(), false, "it outlives its keeper")
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "signal: killed") {
		t.Errorf("%d warnings, not that of the one that was killed:\n%s", n, &log)
	}
}

// A server ends with the daemon that has started it, and one that hangs is ended by the next.
func TestOrphan(t *testing.T) {
	w := newWorld(t, server.Local)
	argv, env := command(w.home)
	keep := func() (ended chan error, cancel func()) {
		ctx, cancel := context.WithCancel(ctxOf(t))
		ended = make(chan error, 1)
		k := server.Keeper{Home: w.home, Command: argv, Environ: env, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		go func() { ended <- k.Run(ctx) }()
		return ended, cancel
	}
	w.apart()
	hangs := w.ready()
	testworld.Must(t, hangs.Signal(syscall.SIGSTOP))
	ended, cancel := keep()
	testworld.Wait(t, "another server", func() bool { s, serving := server.Look(w.home); return serving && s.Process != hangs.Process })
	testworld.Equal(t, hangs.Alive(), false, "the one that hung lives")
	cancel()
	testworld.Must(t, <-ended)

	// One whose standard input ends.
	r, in, err := os.Pipe()
	testworld.Must(t, err)
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Env: env, Files: []*os.File{r, nil, nil}})
	testworld.Must(t, err)
	r.Close()
	self := testworld.Got(proc.Find(p.Pid))(t)
	t.Cleanup(func() { p.Kill(); p.Wait() })
	w.ready()
	in.Close()
	gone := make(chan bool)
	go func() { p.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("it outlives whoever started it")
	}
	testworld.Equal(t, self.Alive(), false, "alive")
	if list, _ := filepath.Glob(w.home.Path(server.StateFile)); len(list) > 0 {
		t.Error("it left its state")
	}
}
