// Package link carries mail between this host and the others of its team.
//
// The directories are the truth, and a link carries copies: what is for another host waits in
// a mailbox of that address, is published, and is filed once the server has it; what comes in
// is acknowledged once it is in its mailbox. A crash at any step repeats the step, which has
// one effect, as a message is known by its id.
//
// A deed ([Deeds]) is no mail: nothing keeps it, and it is done while somebody waits or not at
// all. The host that is to do it hands out a random number, which counts for one deed that
// comes within 15 s, by its own clocks. The request with that number bears the signature of
// the host that asks. So one that was recorded or held up is refused, now and later, and no
// clock is compared with another host's. The host that asks then fetches what the deed says,
// from the byte on that it has, as an interrupted connection may come back; a deed of which
// nobody has asked for 45 s ends, and all end with the link. Questions that a deed asks are not
// answered: it is refused, and can be done at a terminal of that host.
package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/bus"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/link/ssh"
	"netsky/link/team"
	"netsky/link/wire"
)

// Options configure a link.
type Options struct {
	Home home.Dir
	Bus  *bus.Bus
	SSH  ssh.Client
	Log  *slog.Logger
	// Version is that of this netsky; Agents and Needs return what the owner's host is told of
	// the agents here and of what needs the owner, as JSON. nil: nothing.
	Version       string
	Agents, Needs func(ctx context.Context) (jsontext.Value, error)
	// Entries returns what it is told of the log here, and TakeEntries records what another host has told of its own:
	// those after the one that was recorded last, which it returns. nil: nothing.
	Entries     func(ctx context.Context) (jsontext.Value, error)
	TakeEntries func(ctx context.Context, from Host, told jsontext.Value) (last int64, err error)
	Renew       time.Duration // how often it is told anew what has not changed; 0: DefaultRenew
	// Deeds are what hosts ask each other to do; nil: nothing.
	Deeds *Deeds
}

// DefaultRenew is how often a host tells anew what has not changed.
const DefaultRenew = 40 * time.Second

const (
	lookEvery = time.Second // for a team that was joined or has changed, and for new addresses
	firstWait = time.Second // after a failure; then twice the one before
	mostWait  = 15 * time.Second
	teamEvery = 2 * time.Minute // the team's document is asked for, whatever was told
)

// aliveEvery is how often a connection by ssh is asked whether it lives.
const aliveEvery = 5 * time.Second

// Run carries mail as long as the home belongs to a team, until ctx ends. A home without a
// team costs a look for two files each second.
func Run(ctx context.Context, o Options) error {
	o.Renew, o.SSH.Alive = cmp.Or(o.Renew, DefaultRenew), cmp.Or(o.SSH.Alive, aliveEvery)
	p := &report{home: o.Home, log: o.Log}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return keepTunnels(ctx, o, p) })
	g.Go(func() error { return runSessions(ctx, o, p) })
	return g.Wait()
}

// runSessions runs one session after the other.
func runSessions(ctx context.Context, o Options, p *report) error {
	for wait := firstWait; ; {
		began := time.Now()
		s := session{Options: o, report: p}
		err := s.run(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, team.ErrNone), errors.Is(err, errChanged):
			wait = lookEvery
		default:
			if time.Since(began) > time.Minute {
				wait = firstWait
			}
			o.Log.Warn("link", "error", err, "again in", wait.String())
		}
		if err := proc.Sleep(ctx, proc.Tick(wait)); err != nil {
			return err
		}
		wait = min(2*wait, mostWait)
	}
}

// errChanged ends a session whose team is another now.
var errChanged = errors.New("the team has changed")

// A session is the link as long as the team stays as it is.
type session struct {
	Options
	self team.Self
	team team.Team
	key  team.Key
	nc   *nats.Conn
	js   jetstream.JetStream
	gone atomic.Bool // the owner's host says that it has removed this one
	*report
}

// run connects and carries until something ends it.
func (s *session) run(ctx context.Context) (err error) {
	if s.self, err = team.LoadSelf(s.Home); err != nil {
		return err
	}
	if s.team, err = team.Load(s.Home); err != nil {
		return err
	}
	if s.key, err = team.LoadKey(s.Home); err != nil {
		return err
	}
	for _, h := range s.team.Hosts {
		if h.Name != s.self.Name {
			if err := s.Bus.Link(h.Name); err != nil {
				return err
			}
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	s.begin(s.self.Name, s.self.Server.Address)
	g.Go(func() error { return s.report.keep(ctx) })
	g.Go(func() error { return s.tunnel(ctx) })
	g.Go(func() error { return s.watchTeam(ctx) })
	g.Go(func() error { return s.standing(ctx) })
	g.Go(func() error { return s.carry(ctx) })
	return g.Wait()
}

// carry connects, and carries mail both ways while it is connected.
func (s *session) carry(ctx context.Context) error {
	s.trouble("mail for hosts that have left", quiet(ctx, turnBack(ctx, s.Bus, s.team)))
	if _, is := s.team.Holder(s.key.Public()); !is {
		s.connected(s.removed())
		<-ctx.Done()
		return ctx.Err()
	}
	nc, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	s.nc = nc
	if s.js, err = jetstream.New(nc, jetstream.WithPublishAsyncTimeout(2*ackTime)); err != nil {
		return err
	}
	if s.self.IsOwner() {
		if _, err := team.NewRegistrar(s.Home, s.way().Fingerprint).Subscribe(nc); err != nil {
			return err
		}
	}
	if err := s.provision(ctx); err != nil {
		return err
	}
	if err := s.single(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		s.trouble("mail of hosts that have left", quiet(ctx, s.untaken(ctx)))
		return newOutbound(s).run(ctx)
	})
	g.Go(func() error { return s.shareTeam(ctx) })
	g.Go(func() error { return s.tell(ctx) })
	g.Go(func() error { return s.hear(ctx) })
	g.Go(func() error { return s.deeds(ctx) })
	for _, h := range s.team.Hosts {
		if h.Name != s.self.Name {
			g.Go(func() error { return newInbound(s, h).run(ctx) })
		}
	}
	return g.Wait()
}

// watchTeam ends the session when the team or this host's place in it changes.
func (s *session) watchTeam(ctx context.Context) error {
	seen := ""
	for {
		if err := proc.Sleep(ctx, proc.Tick(lookEvery)); err != nil {
			return err
		}
		files := stamps(s.Home, team.SelfFile, team.TeamFile)
		if files == seen {
			continue
		}
		self, err := team.LoadSelf(s.Home)
		if err != nil {
			return err
		}
		if t, err := team.Load(s.Home); err != nil {
			return err
		} else if t.Serial != s.team.Serial || self != s.self {
			return errChanged
		}
		seen = files
	}
}

// stamps returns what changes when one of the files is written.
func stamps(h home.Dir, files ...string) string {
	var b strings.Builder
	for _, file := range files {
		if info, err := os.Lstat(h.Path(file)); err == nil {
			fmt.Fprintln(&b, info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}

// repeat runs do until ctx ends, and again after each end of it: as soon as there is a new connection, or after a
// pause, which is longer after each error in a row. What is wrong is reported.
func (s *session) repeat(ctx context.Context, about string, do func(context.Context) error) error {
	again := s.nc.StatusChanged(nats.CONNECTED)
	defer s.nc.RemoveStatusListener(again)
	for wait := firstWait; ; {
		began := time.Now()
		err := do(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.trouble(about, err); err == nil || time.Since(began) > mostWait {
			wait = firstWait
		}
		wait, _ = rest(ctx, wait, again)
	}
}

// rest waits until there is a new connection, but not longer than that, and returns how long to wait the next time,
// and whether there is one.
func rest(ctx context.Context, wait time.Duration, again <-chan nats.Status) (next time.Duration, renewed bool) {
	select {
	case <-ctx.Done():
	case <-again:
		return firstWait, true
	case <-time.After(wait):
	}
	return min(2*wait, mostWait), false
}

// shareTeam keeps the team document the same on all hosts: the owner's host publishes it,
// the others take it.
func (s *session) shareTeam(ctx context.Context) error {
	return s.repeat(ctx, "team", s.shareTeamOnce)
}

func (s *session) shareTeamOnce(ctx context.Context) error {
	again := s.nc.StatusChanged(nats.CONNECTED)
	defer s.nc.RemoveStatusListener(again)
	kv, err := s.js.KeyValue(ctx, wire.Team)
	if err != nil {
		return err
	}
	take := func(data []byte) error {
		_, newer, err := team.Accept(s.Home, data)
		if newer {
			s.Log.Info("link", "team", "a newer document")
		}
		return err
	}
	if s.self.IsOwner() {
		if v, err := kv.Get(ctx, wire.TeamKey); err == nil {
			_ = take(v.Value()) // its own, from before this home was restored from a copy; what is not is replaced
		}
		_, data, err := team.Document(s.Home)
		if err != nil {
			return err
		}
		if _, err := kv.Put(ctx, wire.TeamKey, data); err != nil {
			return err
		}
		s.trouble("team", nil)
		select {
		case <-ctx.Done(): // a change begins another session
			return ctx.Err()
		case <-again: // to a server that has lost it, perhaps
			return s.provision(ctx)
		}
	}
	told := make(chan *nats.Msg, 8)
	sub, err := s.nc.ChanSubscribe(wire.Told(wire.Team, wire.TeamKey), told)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	v, err := kv.Get(ctx, wire.TeamKey)
	if err == nil {
		err = take(v.Value())
	}
	if err != nil {
		return err
	}
	s.trouble("team", nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-told:
			if err := take(m.Data); err != nil {
				return err
			}
		case <-again: // it may have changed meanwhile
			return nil
		case <-time.After(proc.Tick(teamEvery)): // or what was told was lost
			return nil
		}
	}
}

// provision makes the streams and buckets at a server that is not netsky's, which knows nothing
// of a team; the owner's host does. A cluster keeps three copies of them.
func (s *session) provision(ctx context.Context) error {
	if at := s.self.Server.Address; !s.self.IsOwner() || !strings.HasPrefix(at, byNATS) && !strings.HasPrefix(at, byTLS) {
		return nil
	}
	var hosts []string
	for _, h := range s.team.Hosts {
		hosts = append(hosts, h.Name)
	}
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		limits := wire.DefaultLimits()
		if s.nc.ConnectedClusterName() != "" {
			limits.Replicas = 3
		}
		err := copies(wire.Provision(ctx, s.js, hosts, limits))
		s.trouble("streams", err)
		if err == nil {
			return nil
		}
		if err := proc.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

const (
	pingEvery = 10 * time.Second // a connection on which one is not answered before the next is given up
	pingsOut  = 1
	reconnect = time.Second
)

// connect returns a connection that makes itself anew whenever it is lost.
func (s *session) connect(ctx context.Context) (*nats.Conn, error) {
	lost := func(_ *nats.Conn, err error) {
		if err == nil {
			err = errors.New("the connection was closed")
		}
		s.connected(s.explain(err))
	}
	up := func(*nats.Conn) {
		s.gone.Store(false)
		s.connected(nil)
	}
	options := append(SignIn(s.self, s.key),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(reconnect), nats.ReconnectJitter(reconnect/2, reconnect/2),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut), nats.ReconnectBufSize(-1), nats.IgnoreAuthErrorAbort(),
		nats.ConnectHandler(up), nats.ReconnectHandler(up),
		nats.DisconnectErrHandler(lost), nats.ReconnectErrHandler(lost),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.Log.Warn("link", "error", err) }),
	)
	return s.way().Connect(ctx, options...)
}

func (s *session) way() Way { return Way{Home: s.Home, SSH: s.SSH, Server: s.self.Server} }

// tunnel keeps the way to the server up.
func (s *session) tunnel(ctx context.Context) error {
	return s.way().Hold(ctx, s.isConnected, func(st ssh.State) { s.tunnelled(st) })
}
