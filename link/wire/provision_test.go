package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/internal/testworld"
	"netsky/link/wire"
)

// withServer returns a client of a server in which all may do all, as one that a user names.
func withServer(t *testing.T) (context.Context, jetstream.JetStream) {
	t.Helper()
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
	testworld.Must(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not answer")
	}
	nc, err := nats.Connect("", nats.InProcessServer(s))
	testworld.Must(t, err)
	t.Cleanup(nc.Close)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx, testworld.Got(jetstream.New(nc))(t)
}

func limits() wire.Limits {
	l := wire.DefaultLimits()
	l.MailBytes, l.FileBytes = 4<<20, 4<<20
	return l
}

func TestProvision(t *testing.T) {
	ctx, js := withServer(t)
	l := limits()
	testworld.Must(t, wire.Provision(ctx, js, []string{"laptop", "build1", "build2"}, l))
	testworld.Got(js.Publish(ctx, wire.MailSubject("build1", "laptop"), []byte("hello")))(t)
	testworld.Got(js.Publish(ctx, wire.MailSubject("laptop", "build1"), []byte("hello")))(t)
	l.MailBytes = 8 << 20
	testworld.Must(t, wire.Provision(ctx, js, []string{"laptop", "build1", "build2"}, l))
	s := testworld.Got(js.Stream(ctx, wire.MailStream("build1")))(t)
	if c := s.CachedInfo(); c.Config.MaxBytes != 8<<20 || c.State.Msgs != 1 {
		t.Errorf("after a change of limits: at most %d bytes, %d messages", c.Config.MaxBytes, c.State.Msgs)
	}

	// build1 and build2 leave: what build1 has sent is still fetched.
	testworld.Must(t, wire.Provision(ctx, js, []string{"laptop"}, l))
	_, err := js.Consumer(ctx, wire.MailStream("laptop"), "build1")
	testworld.ErrorIs(t, err, jetstream.ErrConsumerNotFound, "mail for build1")
	_, err = js.Stream(ctx, wire.MailStream("build2"))
	testworld.ErrorIs(t, err, jetstream.ErrStreamNotFound, "mail of build2")
	c := testworld.Got(js.Consumer(ctx, wire.MailStream("build1"), "laptop"))(t)
	m := testworld.Got(c.Next())(t)
	testworld.Must(t, m.DoubleAck(ctx))
	testworld.Must(t, wire.Provision(ctx, js, []string{"laptop"}, l))
	_, err = js.Stream(ctx, wire.MailStream("build1"))
	testworld.ErrorIs(t, err, jetstream.ErrStreamNotFound, "mail of build1, once it was fetched")

	// It comes back and finds its mail.
	testworld.Must(t, wire.Provision(ctx, js, []string{"laptop", "build1"}, l))
	c = testworld.Got(js.Consumer(ctx, wire.MailStream("laptop"), "build1"))(t)
	testworld.Equal(t, c.CachedInfo().NumPending, 1, "mail that waits for build1")
}

// A host that floods fills only its own stream.
func TestFlood(t *testing.T) {
	ctx, js := withServer(t)
	testworld.Must(t, wire.Provision(ctx, js, []string{"laptop", "build1"}, limits()))
	full, text := false, make([]byte, 1<<20)
	for range 10 {
		_, err := js.Publish(ctx, wire.MailSubject("build1", "laptop"), text)
		full = full || err != nil
	}
	if !full {
		t.Error("10 MB fit into 4 MiB")
	}
	testworld.Got(js.Publish(ctx, wire.MailSubject("laptop", "build1"), text))(t)
	if _, err := js.Publish(ctx, wire.MailSubject("laptop", "build1"), make([]byte, wire.MaxMessage+1)); err == nil {
		t.Error("a message above the limit was taken")
	}
}

func TestFiles(t *testing.T) {
	ctx, js := withServer(t)
	testworld.Must(t, wire.Provision(ctx, js, []string{"laptop", "build1"}, limits()))
	for _, size := range []int{0, 1, 512 << 10, 1300 << 10} {
		text := strings.Repeat("x", size)
		f := testworld.Got(wire.PutFile(ctx, js, "laptop", "build1", "f1", strings.NewReader(text), 2<<20))(t)
		var got bytes.Buffer
		testworld.Must(t, wire.GetFile(ctx, js.Conn(), "laptop", "build1", f, &got, 2<<20))
		if got.String() != text {
			t.Errorf("%d bytes: got %d others", size, got.Len())
		}
	}
	_, err := wire.PutFile(ctx, js, "laptop", "build1", "f2", strings.NewReader("too long"), 7)
	if err == nil {
		t.Error("a file above the limit was put")
	}
	f := testworld.Got(wire.PutFile(ctx, js, "laptop", "build1", "f3", strings.NewReader("hello"), 10))(t)
	if err := wire.GetFile(ctx, js.Conn(), "laptop", "build1", f, io.Discard, 4); err == nil || errors.Is(err, wire.ErrFile) {
		t.Errorf("above the receiver's limit: %v", err)
	}
	for name, lie := range map[string]wire.File{
		"longer": {ID: f.ID, Size: 6, SHA256: f.SHA256}, "shorter": {ID: f.ID, Size: 4, SHA256: f.SHA256},
		"another": {ID: f.ID, Size: 5, SHA256: strings.Repeat("0", 64)}, "none": {ID: "f4", Size: 5, SHA256: f.SHA256},
	} {
		testworld.ErrorIs(t, wire.GetFile(ctx, js.Conn(), "laptop", "build1", lie, io.Discard, 10), wire.ErrFile, "%s", name)
	}
	testworld.Must(t, wire.DropFile(ctx, js, "laptop", "build1", f.ID))
	testworld.ErrorIs(t, wire.GetFile(ctx, js.Conn(), "laptop", "build1", f, io.Discard, 10), wire.ErrFile, "dropped")
}
