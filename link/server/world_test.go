package server_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/link/server"
	"netsky/link/team"
	"netsky/link/wire"
)

// serveHome has a process of this test serve a home instead.
const serveHome = "NETSKY_TEST_SERVE"

func TestMain(m *testing.M) {
	dir := os.Getenv(serveHome)
	if dir == "" {
		os.Exit(m.Run())
	}
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	ctx, end := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	h, err := home.At(dir)
	if err == nil {
		s := server.Server{Home: h, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
		err = s.Serve(ctx)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// command serves a home in a process of its own.
func command(h home.Dir) (argv, env []string) {
	return []string{os.Args[0]}, append(os.Environ(), serveHome+"="+h.Root())
}

// A world is a team of the owner's host laptop, which serves, and the workers build1 and build2.
type world struct {
	testing.TB
	home  home.Dir
	homes map[string]home.Dir

	address string // of the server, when it last ran
}

func newWorld(t testing.TB, listen string) world {
	t.Helper()
	w := world{TB: t, home: testworld.Home(t), homes: map[string]home.Dir{}}
	testworld.Got(team.Found(w.home, "laptop", team.Server{}))(t)
	w.homes["laptop"] = w.home
	for _, name := range []string{"build1", "build2"} {
		w.homes[name] = testworld.Home(t)
		key := testworld.Got(team.MakeKey(w.homes[name]))(t)
		testworld.Got(team.Admit(w.home, team.Host{Name: name, Key: key.Public(), Role: team.Worker, Added: time.Now()}))(t)
	}
	testworld.Must(t, server.Settings{Listen: listen}.Save(w.home))
	return w
}

// small are limits that a test can reach.
func small() wire.Limits {
	l := wire.DefaultLimits()
	l.MailBytes, l.FileBytes = 4<<20, 4<<20
	return l
}

// serve serves the team until the test ends, or the returned function is called.
func (w world) serve() (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		s := server.Server{Home: w.home, Limits: small(), Log: slog.New(slog.DiscardHandler)}
		ended <- s.Serve(ctx)
	}()
	over := false
	stop = func() {
		if over {
			return
		}
		over = true
		cancel()
		testworld.Must(w, <-ended)
	}
	w.Cleanup(stop)
	w.ready()
	return stop
}

func (w world) ready() server.State {
	w.Helper()
	var s server.State
	testworld.WaitOr(w, func() (serving bool) {
		s, serving = server.Look(w.home)
		return serving
	}, func() string { return "the server is not ready: " + s.Error })
	return s
}

// dial connects a host.
func (w world) dial(name string, more ...nats.Option) *nats.Conn {
	w.Helper()
	s := w.ready()
	key := testworld.Got(team.LoadKey(w.homes[name]))(w)
	o := []nats.Option{
		key.SignIn(), nats.CustomInboxPrefix(wire.Inbox(name)), nats.Timeout(time.Minute), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}
	if s.Fingerprint != "" {
		o = append(o, nats.Secure(pinned(s.Fingerprint)))
	}
	nc, err := nats.Connect(s.Address, append(o, more...)...)
	testworld.Must(w, err)
	w.Cleanup(nc.Close)
	return nc
}

func (w world) js(name string) jetstream.JetStream {
	w.Helper()
	return testworld.Got(jetstream.New(w.dial(name)))(w)
}

func ctxOf(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// apart serves the team in a process of its own.
func (w world) apart() *exec.Cmd {
	w.Helper()
	argv, env := command(w.home)
	cmd := exec.Command(argv[0])
	cmd.Env = env
	_ = testworld.Got(cmd.StdinPipe())(w) // it ends with this
	testworld.Must(w, cmd.Start())
	ended := make(chan bool)
	go func() { cmd.Wait(); close(ended) }()
	w.Cleanup(func() { cmd.Process.Kill(); <-ended })
	w.ready()
	return cmd
}

// pinned accepts the certificate with a fingerprint.
func pinned(fingerprint string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(c tls.ConnectionState) error {
		if sum := sha256.Sum256(c.PeerCertificates[0].Raw); hex.EncodeToString(sum[:]) != fingerprint {
			return errOther
		}
		return nil
	}}
}

var errOther = errors.New("another certificate")
