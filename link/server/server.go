// Package server keeps what crosses between the hosts of a team until they have it: a NATS
// server with JetStream, in a process of its own. [Keeper] starts that from the daemon, and
// [Server.Serve] is what runs in it.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/link/team"
	"netsky/link/wire"
)

const (
	readyWithin = time.Minute // a large store is read first
	lookEvery   = clockStep   // whatever the system has told; one wake for both
	pollEvery   = time.Second // if the system can't tell what changes
	needs       = 16 << 20    // bytes of disk, to start
)

// A Server serves the team of a home.
type Server struct {
	Home   home.Dir
	Limits wire.Limits // the zero value: wire.DefaultLimits
	Log    *slog.Logger

	settings Settings
	admin    nkeys.KeyPair // provisions, from this process only
	nats     *server.Server
	js       jetstream.JetStream
	fatal    chan error // what the server could not continue with; room for one
}

// Serve serves until ctx ends, or the home no longer serves as it did when this began: then
// it returns nil too. Its error is in [StateFile] as well.
func (s *Server) Serve(ctx context.Context) error {
	lock, err := s.Home.Lock(home.LinkServerLock)
	if err != nil {
		return fmt.Errorf("link server: %w", err)
	}
	defer lock.Unlock()
	if err = s.serve(ctx); err != nil && ctx.Err() == nil {
		_ = State{Error: err.Error(), Next: advice.Of(err)}.save(s.Home) // a full disk, perhaps; whoever runs this has the error
		return fmt.Errorf("link server: %w", err)
	}
	return s.Home.Remove(StateFile)
}

func (s *Server) serve(ctx context.Context) (err error) {
	if s.Limits == (wire.Limits{}) {
		s.Limits = wire.DefaultLimits()
	}
	if s.settings, err = Load(s.Home); err != nil {
		return err
	}
	if err := home.Room(s.Home.Root(), needs); err != nil {
		return advice.With(err, "free some space; the daemon then starts the server by itself")
	}
	if err := s.choose(); err != nil {
		return err
	}
	files := s.files()
	t, err := team.Load(s.Home)
	if err != nil {
		return err
	}
	if s.admin, err = nkeys.CreateUser(); err != nil {
		return err
	}
	o, state, err := s.options(t)
	if err != nil {
		return err
	}
	if err := s.start(ctx, o); err != nil {
		return err
	}
	defer s.nats.WaitForShutdown()
	defer s.nats.Shutdown()
	nc, err := s.connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := s.provision(ctx, t); err != nil {
		return err
	}
	if err := state.save(s.Home); err != nil {
		return err
	}
	s.Log.Info("ready", "address", state.Address, "team", t.ID, "hosts", len(t.Hosts))
	return s.follow(ctx, files)
}

// choose takes a free port the first time, and keeps it: hosts know the address.
func (s *Server) choose() error {
	host, port := s.settings.address()
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return advice.With(fmt.Errorf("listen: %w", err), "end the program that listens there, or choose another address with `netsky link serve --listen`")
	}
	defer l.Close()
	if port != 0 {
		return nil
	}
	s.settings.Port = l.Addr().(*net.TCPAddr).Port
	return s.settings.Save(s.Home)
}

// options returns those of the server for a team, and what it says of itself with them.
func (s *Server) options(t team.Team) (*server.Options, State, error) {
	public, err := s.admin.PublicKey()
	if err != nil {
		return nil, State{}, err
	}
	text, err := configure(t, public)
	if err != nil {
		return nil, State{}, err
	}
	o := &server.Options{}
	if err := o.ProcessConfigString(string(text)); err != nil {
		return nil, State{}, err
	}
	o.ServerName, o.StoreDir, o.JetStream, o.SyncAlways = "netsky", s.Home.Path(storeDir), true, true
	o.JetStreamMaxStore, o.JetStreamMaxMemory = 1<<50, 64<<20 // the streams' own limits count
	o.NoSigs, o.DisableJetStreamBanner = true, true
	o.MaxPayload, o.MaxConn, o.MaxPending = s.Limits.Message, 1024, 16<<20
	o.WriteDeadline, o.PingInterval, o.MaxPingsOut, o.AuthTimeout = 10*time.Second, 20*time.Second, 2, 5
	o.Host, o.Port = s.settings.address()
	state := State{Address: "nats://" + net.JoinHostPort(o.Host, strconv.Itoa(o.Port))}
	if s.settings.local() {
		return o, state, nil
	}
	c, fingerprint, err := certificate(s.Home)
	if err != nil {
		return nil, State{}, err
	}
	o.TLSConfig, o.TLSTimeout = &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS13}, 5
	return o, State{Address: "tls" + state.Address[len("nats"):], Fingerprint: fingerprint}, nil
}

// start starts the server and waits until it answers.
func (s *Server) start(ctx context.Context, o *server.Options) (err error) {
	slowClock()
	if s.nats, err = server.NewServer(o); err != nil {
		return err
	}
	s.fatal = make(chan error, 1)
	s.nats.SetLoggerV2(&natsLog{log: s.Log, fatal: s.fatal}, false, false, false)
	ready := make(chan bool, 1)
	go func() {
		s.nats.Start()
		ready <- s.nats.ReadyForConnections(readyWithin)
	}()
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-s.fatal:
	case ok := <-ready:
		if ok {
			forgetWarnings(s.nats, time.Minute)
			return nil
		}
		err = fmt.Errorf("it did not answer within %v", readyWithin)
	}
	s.nats.Shutdown()
	return err
}

// connect signs in as the one who provisions.
func (s *Server) connect() (*nats.Conn, error) {
	public, err := s.admin.PublicKey()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect("", nats.InProcessServer(s.nats), nats.Nkey(public, s.admin.Sign), nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	s.js, err = jetstream.New(nc)
	return nc, err
}

func (s *Server) provision(ctx context.Context, t team.Team) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	var hosts []string
	for _, h := range t.Hosts {
		hosts = append(hosts, h.Name)
	}
	return wire.Provision(ctx, s.js, hosts, s.Limits)
}

// follow takes over each later team document, until ctx ends.
func (s *Server) follow(ctx context.Context, had [2]os.FileInfo) error {
	var changes chan fsnotify.Event
	var lost chan error // changes, perhaps
	every := lookEvery
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		changes, lost = watcher.Events, watcher.Errors
		err = watcher.Add(s.Home.Path(path.Dir(team.TeamFile))) // where the settings are, too
	}
	if err != nil {
		s.Log.Warn("watch", "error", err, "looks every", pollEvery.String())
		every = pollEvery
	}
	for wait := time.Duration(0); ; wait = proc.Tick(every) { // at once, for what changed before it was watched
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.fatal:
			return err
		case <-changes:
		case <-lost:
		case <-time.After(wait):
		}
		if !s.nats.JetStreamEnabled() {
			return advice.With(errors.Join(errors.New("the store has stopped"), home.Room(s.Home.Root(), needs)), "the daemon's log says why; if the disk is full, free some space")
		}
		files := s.files()
		switch {
		case !same(files[0], had[0]):
			return nil
		case same(files[1], had[1]):
			continue
		}
		next, err := team.Load(s.Home)
		if errors.Is(err, team.ErrNone) {
			return err
		}
		if err != nil {
			s.Log.Warn("team", "error", err) // it is read again
			continue
		}
		had = files
		if err := s.reload(ctx, next); err != nil {
			return err
		}
	}
}

// reload lets in the hosts of a team, and nobody else: connections of others end.
func (s *Server) reload(ctx context.Context, t team.Team) (err error) {
	for range 2 { // what an account imports that the first makes is connected by the second
		o, _, oerr := s.options(t)
		if err = oerr; err == nil {
			err = s.nats.ReloadOptions(o)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = s.provision(ctx, t)
	}
	s.Log.Info("team", "serial", t.Serial, "hosts", len(t.Hosts), "error", err)
	return err
}

// files returns what is known of the files that the server follows; nil of one that is not there.
func (s *Server) files() (list [2]os.FileInfo) {
	for i, rel := range []string{SettingsFile, team.TeamFile} {
		if info, err := os.Lstat(s.Home.Path(rel)); err == nil {
			list[i] = info
		}
	}
	return list
}

// same reports whether a file was not replaced.
func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// natsLog writes what the server has to say to a log, but not each line of a flood, as of
// strangers who try to sign in.
type natsLog struct {
	log   *slog.Logger
	fatal chan error

	mu     sync.Mutex
	minute time.Time // what began
	lines  int       // in it
}

const linesAMinute = 30

func (l *natsLog) say(level slog.Level, format string, v []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.minute) > time.Minute {
		l.minute, l.lines = now, 0
	}
	if l.lines++; l.lines <= linesAMinute {
		l.log.Log(context.Background(), level, "nats", "what", fmt.Sprintf(format, v...))
	}
}

func (l *natsLog) Warnf(format string, v ...any) { l.say(slog.LevelWarn, format, v) }

// Errorf also ends the server when a stream could not be written, as on a full disk: until
// it is started again it would take nothing, whatever space there is by then.
func (l *natsLog) Errorf(format string, v ...any) {
	l.say(slog.LevelError, format, v)
	if strings.Contains(format, "ritical write error") {
		l.end(advice.With(fmt.Errorf(format, v...), "if the disk is full, free some space: the daemon then starts the server by itself"))
	}
}

func (l *natsLog) Fatalf(format string, v ...any) { l.end(fmt.Errorf(format, v...)) }

func (l *natsLog) end(err error) {
	select {
	case l.fatal <- err:
	default: // it is the first that counts
	}
}

func (*natsLog) Noticef(string, ...any) {}
func (*natsLog) Debugf(string, ...any)  {}
func (*natsLog) Tracef(string, ...any)  {}
