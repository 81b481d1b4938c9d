package link_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/team"
	"netsky/link/wire"
)

// A did is what a host in a test has done for others.
type did struct {
	mu   sync.Mutex
	list []string
}

func (d *did) do(_ context.Context, from, deed string, request []byte, w io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, fmt.Sprint(from, ": ", deed, " ", string(request)))
	fmt.Fprint(w, "done")
}

func (d *did) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.list...)
}

// mustDeeds returns a world of laptop, build1 and build2, whose hosts hear what is asked of them.
func mustDeeds(t *testing.T, prepare func(laptop, build1 *host)) (w *world, laptop, build1 *host) {
	t.Helper()
	w = mustWorld(t, "laptop", "build1", "build2")
	laptop, build1 = w.hosts[0], w.hosts[1]
	laptop.stop()
	build1.stop()
	prepare(laptop, build1)
	laptop.link()
	build1.link()
	spy := w.dial(w.hosts[2])
	testworld.Wait(t, "build1 hears", func() bool {
		_, err := spy.RequestMsg(by(t, laptop, wire.DeedSubject("build1", "laptop"), `{"op":"hello"}`), 2*time.Second) // one may go to its last connection
		return err == nil
	})
	testworld.Wait(t, "laptop can ask", func() bool {
		return strings.Contains(laptop.deed.Ask(t.Context(), "nobody", "x", nil, io.Discard).Error(), "no host of the team")
	})
	return w, laptop, build1
}

// dial connects as a host that does not keep to what others do.
func (w *world) dial(h *host) *nats.Conn {
	w.Helper()
	nc := testworld.Got(nats.Connect("nats://"+w.at, testworld.Got(team.LoadKey(h.home))(w).SignIn(), nats.CustomInboxPrefix(wire.Inbox(h.name)), nats.Timeout(time.Minute)))(w)
	w.Cleanup(nc.Close)
	return nc
}

// by returns a request for a deed as a host signs it.
func by(t *testing.T, h *host, subject, body string) *nats.Msg {
	t.Helper()
	m := &nats.Msg{Subject: subject, Data: []byte(body)}
	testworld.Must(t, wire.Sign(testworld.Got(team.LoadKey(h.home))(t), m, fmt.Sprint(time.Now().UnixNano())))
	return m
}

// reply sends a message and returns the answer to it.
func reply(t *testing.T, nc *nats.Conn, m *nats.Msg) (v struct {
	Number, Refused string
	Lost            bool
}) {
	t.Helper()
	var r *nats.Msg
	var err error
	testworld.WaitOr(t, func() bool {
		r, err = nc.RequestMsg(m, 10*time.Second)
		return err == nil
	}, func() string { return fmt.Sprintf("an answer to %s: %v", m.Data, err) })
	testworld.Must(t, json.Unmarshal(r.Data, &v))
	return v
}

func TestDeeds(t *testing.T) {
	t.Parallel()
	var done did
	big := strings.Repeat("x", 3<<20)
	_, laptop, build1 := mustDeeds(t, func(laptop, build1 *host) {
		laptop.deed.Do = done.do
		build1.deed.Do = func(ctx context.Context, from, deed string, request []byte, w io.Writer) {
			done.do(ctx, from, deed, request, w)
			if deed == "peek" {
				for s := big; s != ""; s = s[1<<20:] {
					io.WriteString(w, s[:1<<20])
				}
			}
		}
	})
	var out bytes.Buffer
	testworld.Must(t, laptop.deed.Ask(t.Context(), "build1", "peek", []byte(`{"agent":"agent1"}`), &out))
	testworld.Equal(t, out.String() == "done"+big, true, "all that was said has arrived")
	testworld.Must(t, laptop.deed.Ask(t.Context(), "build1", "peek", []byte(`{"agent":"agent1"}`), io.Discard))
	testworld.Equal(t, build1.looks.Load(), 1, "lines of the log for two looks, one after the other")
	testworld.Must(t, laptop.deed.Ask(t.Context(), "build1", "large", []byte(`"`+strings.Repeat("x", link.MaxDeed-2)+`"`), io.Discard))
	err := laptop.deed.Ask(t.Context(), "build1", "large", make([]byte, 4<<20), io.Discard)
	testworld.ErrorIs(t, err, link.ErrUndone)
	testworld.Contains(t, err.Error(), "4194304 bytes")
	for host, why := range map[string]string{"nobody": "no host of the team", "laptop": "is this host"} {
		err := laptop.deed.Ask(t.Context(), host, "down", []byte("{}"), io.Discard)
		testworld.ErrorIs(t, err, link.ErrUndone)
		testworld.Contains(t, err.Error(), why)
	}
	err = build1.deed.Ask(t.Context(), "laptop", "down", []byte("{}"), io.Discard)
	testworld.Contains(t, err.Error(), "build1 has the role worker")
	testworld.Equal(t, len(done.all()), 3, "deeds")

	laptop.stop()
	err = laptop.deed.Ask(t.Context(), "build1", "down", []byte("{}"), io.Discard)
	testworld.ErrorIs(t, err, link.ErrUndone)
	laptop.link()
	build1.stop()
	testworld.Wait(t, "laptop finds build1 gone", func() bool {
		err := laptop.deed.Ask(t.Context(), "build1", "down", []byte("{}"), io.Discard)
		return err != nil && strings.Contains(err.Error(), "build1: is not connected to the team's server; nothing was done")
	})
}

// Whatever was recorded, forged or held up is not done.
func TestForeignDeeds(t *testing.T) {
	t.Parallel()
	var done did
	var ahead atomic.Int64 // of build1's clock
	w, laptop, build1 := mustDeeds(t, func(_, build1 *host) {
		build1.deed.Do = done.do
		build1.deed.Hurry(0, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	})
	subject := wire.DeedSubject("build1", "laptop")
	spy := w.dial(w.hosts[2])
	heard := make(chan *nats.Msg, 100)
	recorder := testworld.Got(spy.ChanSubscribe(subject, heard))(t)
	testworld.Must(t, spy.Flush())
	testworld.Must(t, laptop.deed.Ask(t.Context(), "build1", "down", []byte("{}"), io.Discard))
	testworld.Must(t, recorder.Unsubscribe())
	testworld.Must(t, spy.Flush())
	testworld.EqualList(t, done.all(), []string{"laptop: down {}"})

	// What a recorder hears does nothing, at once, an hour later, and to the next daemon.
	for _, then := range []func(){func() { ahead.Add(int64(time.Hour)) }, func() { build1.stop(); build1.link() }, func() {}} {
		for range len(heard) {
			m := <-heard
			heard <- m
			testworld.WaitOr(t, func() bool {
				_, err := spy.RequestMsg(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}, 2*time.Second)
				return err == nil
			}, func() string { return "an answer to " + string(m.Data) })
		}
		testworld.EqualList(t, done.all(), []string{"laptop: down {}"})
		then()
	}
	ahead.Store(0)

	// A number counts for 15 s, for one deed, of one host, that has begun before it was asked about.
	ask := func(body string, args ...any) *nats.Msg { return by(t, laptop, subject, fmt.Sprintf(body, args...)) }
	number := func() string { return reply(t, spy, ask(`{"op":"hello"}`)).Number }
	late := number()
	ahead.Store(int64(16 * time.Second))
	testworld.Contains(t, reply(t, spy, ask(`{"op":"do","number":%q,"deed":"late"}`, late)).Refused, "counts for 15s")
	late = number()
	ahead.Add(int64(2 * time.Second))
	testworld.Contains(t, reply(t, spy, ask(`{"op":"do","number":%q,"deed":"late","within_ms":1000}`, late)).Refused, "counts for 1s")
	unborn := number()
	testworld.Contains(t, reply(t, spy, ask(`{"op":"next","number":%q}`, unborn)).Refused, "not arrived")
	testworld.Contains(t, reply(t, spy, ask(`{"op":"do","number":%q,"deed":"late"}`, unborn)).Refused, "old one")
	testworld.Contains(t, reply(t, spy, ask(`{"op":"do","deed":"made up","number":"ABC"}`)).Refused, "old one")
	testworld.Equal(t, reply(t, spy, ask(`{"op":"next","number":"ABC"}`)).Lost, true)

	// A worker, and whoever signs with a key of another, at the subject of a host.
	build2 := w.hosts[2]
	testworld.Contains(t, reply(t, spy, by(t, build2, wire.DeedSubject("build1", "build2"), `{"op":"hello"}`)).Refused, "build2 has the role worker")
	for _, m := range []*nats.Msg{
		by(t, build2, subject, `{"op":"hello"}`), {Subject: subject, Data: []byte(`{"op":"hello"}`)},
		by(t, laptop, wire.DeedSubject("build1", "nobody"), `{"op":"hello"}`), by(t, laptop, subject, `{"op":`),
	} {
		m.Subject = strings.Replace(m.Subject, "nobody", "laptop", 1)
		if r, err := spy.RequestMsg(m, 200*time.Millisecond); err == nil {
			t.Errorf("%s was answered: %s", m.Data, r.Data)
		}
	}
	testworld.EqualList(t, done.all(), []string{"laptop: down {}"}, "all that was done")
	build1.stop()
}

// Whoever answers for another host finds nobody who believes it.
func TestForgedAnswer(t *testing.T) {
	t.Parallel()
	w, laptop, build1 := mustDeeds(t, func(_, _ *host) {})
	build1.stop()
	spy := w.dial(w.hosts[2])
	testworld.Got(spy.Subscribe(wire.DeedSubject("build1", "laptop"), func(m *nats.Msg) {
		r := by(t, w.hosts[2], wire.DeedSubject("laptop", "build1")+".answer", `{"number":"X","end":true}`)
		testworld.Must(t, wire.Sign(testworld.Got(team.LoadKey(w.hosts[2].home))(t), r, m.Header.Get(nats.MsgIdHdr)))
		_ = m.RespondMsg(r)
	}))(t)
	testworld.Must(t, spy.Flush())
	testworld.Wait(t, "the forged answer is refused", func() bool {
		err := laptop.deed.Ask(t.Context(), "build1", "down", []byte("{}"), io.Discard)
		return err != nil && strings.Contains(err.Error(), "is not signed by the host")
	})
}

// A deed whose host is lost meanwhile may have been done, one whose connection comes back is followed to its end.
func TestBrokenDeeds(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan bool, 10), make(chan bool, 10)
	w, laptop, build1 := mustDeeds(t, func(laptop, build1 *host) {
		build1.deed.Do = func(ctx context.Context, _, _ string, _ []byte, w io.Writer) {
			fmt.Fprint(w, "begun ")
			begun <- true
			select {
			case <-finish:
				fmt.Fprint(w, "finished")
			case <-ctx.Done():
			}
			begun <- false
		}
	})
	var out bytes.Buffer
	asked := func(ctx context.Context) chan error {
		out.Reset()
		c := make(chan error, 1)
		go func() { c <- laptop.deed.Ask(ctx, "build1", "check", []byte("{}"), &out) }()
		select {
		case <-begun:
		case err := <-c:
			t.Fatalf("ended before it began: %v", err)
		}
		return c
	}
	err := asked(t.Context())
	w.end() // the server
	w.serve()
	finish <- true
	testworld.Must(t, <-err)
	testworld.Equal(t, out.String(), "begun finished")
	<-begun

	ctx, cancel := context.WithCancel(t.Context())
	err = asked(ctx)
	cancel() // Ctrl-C ends it there
	testworld.Equal(t, <-begun, false)
	testworld.ErrorIs(t, <-err, link.ErrUnknown)

	err = asked(t.Context())
	build1.stop() // its daemon ends, and another starts
	build1.link()
	testworld.ErrorIs(t, <-err, link.ErrUnknown)
	<-begun

	laptop.stop()
	laptop.deed.Hurry(time.Second, nil)
	laptop.link()
	testworld.Wait(t, "laptop can ask again", func() bool {
		e := laptop.deed.Ask(t.Context(), "nobody", "x", nil, io.Discard)
		return strings.Contains(e.Error(), "no host")
	})
	err = asked(t.Context())
	build1.stop() // and none does
	testworld.ErrorIs(t, <-err, link.ErrUnknown)
}

// A host does so many deeds at a time for one, whatever that asks, and begins others when these have ended.
func TestManyDeeds(t *testing.T) {
	t.Parallel()
	var running, most, all atomic.Int32
	finish := make(chan bool)
	w, laptop, _ := mustDeeds(t, func(_, build1 *host) {
		build1.deed.Do = func(ctx context.Context, _, _ string, _ []byte, w io.Writer) {
			for n := running.Add(1); n > most.Load(); {
				most.Store(n)
			}
			defer running.Add(-1)
			all.Add(1)
			<-finish
		}
	})
	errs := make(chan error, 40)
	for range 40 {
		go func() { errs <- laptop.deed.Ask(t.Context(), "build1", "check", []byte("{}"), io.Discard) }()
	}
	for range 36 {
		testworld.ErrorIs(t, <-errs, link.ErrUndone)
	}
	flood := w.dial(laptop)
	for range 2000 { // of numbers; those of deeds that run are kept
		m := by(t, laptop, wire.DeedSubject("build1", "laptop"), `{"op":"hello"}`)
		m.Reply = flood.NewInbox()
		testworld.Must(t, flood.PublishMsg(m))
	}
	testworld.Must(t, flood.Flush())
	close(finish)
	for range 4 {
		testworld.Must(t, <-errs)
	}
	testworld.Equal(t, most.Load(), 4, "at a time")
	testworld.Wait(t, "one more, once the flood is over", func() bool {
		err := laptop.deed.Ask(t.Context(), "build1", "check", []byte("{}"), io.Discard)
		return err == nil || !errors.Is(err, link.ErrUndone)
	})
	testworld.Equal(t, all.Load(), 5)
}
