package link_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/team"
	"netsky/link/wire"
)

// adminJS is the server's administrator.
func (w *world) adminJS() jetstream.JetStream {
	w.Helper()
	nc := testworld.Got(nats.Connect("nats://"+w.at, w.admin.SignIn()))(w)
	w.Cleanup(nc.Close)
	return testworld.Got(jetstream.New(nc))(w)
}

// limit changes the stream of a host's mail.
func (w *world) limit(host string, edit func(*jetstream.StreamConfig)) {
	w.Helper()
	js := w.adminJS()
	c := testworld.Got(js.Stream(w.Context(), wire.MailStream(host)))(w).CachedInfo().Config
	edit(&c)
	testworld.Got(js.UpdateStream(w.Context(), c))(w)
}

// down is why the host's link is not connected, "" if it is.
func (h *host) down() string {
	r, _ := link.LoadReport(h.home)
	return r.Why
}

// What a resend that was cut off has not sent again is sent by the next.
func TestResendCutOff(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	send := func(n int) {
		build1.send("agent1", "agent0@laptop", fmt.Sprint(n))
		testworld.Wait(t, "the server has it", func() bool { return build1.waiting("agent0@laptop") == 0 })
	}
	send(0)
	testworld.Wait(t, "the first has arrived", func() bool { return len(laptop.texts("agent0")) == 1 })
	w.end()
	copied := t.TempDir()
	testworld.Must(t, os.CopyFS(copied, os.DirFS(w.store)))
	w.serve()
	laptop.stop()
	send(1)
	send(2)
	build1.stop()
	w.end()
	w.store = copied
	w.serve()
	w.limit("build1", func(c *jetstream.StreamConfig) { c.MaxMsgs = 2 }) // of the three that are sent again
	build1.link()
	testworld.Wait(t, "it is cut off", func() bool {
		return strings.HasPrefix(build1.trouble("mail out"), "send again what the server has lost: ")
	})
	build1.stop()
	w.limit("build1", func(c *jetstream.StreamConfig) { c.MaxMsgs = -1 })
	build1.link()
	laptop.link()
	send(3)
	want := []string{"agent1@build1: 0", "agent1@build1: 1", "agent1@build1: 2", "agent1@build1: 3"}
	testworld.Wait(t, "all has arrived", func() bool { return len(laptop.texts("agent0")) >= len(want) })
	testworld.EqualList(t, laptop.texts("agent0"), want, "once, in order")
}

// A host for which the server keeps no more holds up no other's mail, not even while what the server has lost is
// sent again.
func TestResendReceiverFull(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build1, build2 := w.hosts[0], w.hosts[1], w.hosts[2]
	send := func(to string, n int) { build1.send("agent1", agent.ID("agent0@"+to), fmt.Sprint(n)) }
	away := func(host string) { // and nothing waits to be sent to it
		testworld.Wait(t, "the server has it", func() bool { return build1.waiting(agent.ID("agent0@"+host)) == 0 })
	}
	send("laptop", 0)
	testworld.Wait(t, "the first has arrived", func() bool { return len(laptop.texts("agent0")) == 1 })
	away("laptop")
	w.end()
	copied := t.TempDir()
	testworld.Must(t, os.CopyFS(copied, os.DirFS(w.store)))
	w.serve()
	laptop.stop()
	build2.stop()
	for n := 1; n <= 4; n++ {
		send("laptop", n)
		send("build2", n)
	}
	away("laptop")
	away("build2")
	build1.stop()
	w.end()
	w.store = copied
	w.serve()
	w.limit("build1", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 2 })
	build2.link()
	build1.link()
	send("laptop", 5)
	send("build2", 5)
	texts := func(last, first int) (list []string) {
		for n := first; n <= last; n++ {
			list = append(list, fmt.Sprint("agent1@build1: ", n))
		}
		return list
	}
	testworld.Wait(t, "that of the other arrives", func() bool { return len(build2.texts("agent0")) >= 5 })
	testworld.EqualList(t, build2.texts("agent0"), texts(5, 1), "once, in order")
	testworld.Contains(t, build1.trouble("mail for laptop"), "keeps no more for laptop")
	testworld.Equal(t, build1.trouble("mail out"), "")
	record := build1.home.Path("state/link/sent.json")
	testworld.Contains(t, string(testworld.Got(os.ReadFile(record))(t)), `"lost":true`)
	build1.stop()
	build1.link()
	send("build2", 6)
	testworld.Wait(t, "the other's arrives after a restart, too", func() bool { return len(build2.texts("agent0")) >= 6 })
	laptop.link()
	send("laptop", 6)
	testworld.Wait(t, "all has arrived", func() bool { return len(laptop.texts("agent0")) >= 7 })
	testworld.EqualList(t, laptop.texts("agent0"), texts(6, 0), "once, in order")
	testworld.EqualList(t, build2.texts("agent0"), texts(6, 1), "once, in order")
	testworld.Wait(t, "nothing is lost any more", func() bool {
		return !strings.Contains(string(testworld.Got(os.ReadFile(record))(t)), `"lost"`) && build1.trouble("mail for laptop") == ""
	})
}

// What is filed is on record before: so a daemon that is killed then knows what a server that
// was restored has lost.
func TestFiledOnRecord(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop := w.hosts[0]
	record := laptop.home.Path("state/link/sent.json")
	laptop.send(agent.Owner, "agent1@build1", "0")
	testworld.Wait(t, "it is filed", func() bool { return laptop.waiting("agent1@build1") == 0 })
	testworld.Contains(t, string(testworld.Got(os.ReadFile(record))(t)), `"last":1`)
	testworld.Must(t, os.Remove(record))
	testworld.Must(t, os.Mkdir(record, 0o700)) // it can't be written
	laptop.send(agent.Owner, "agent1@build1", "1")
	testworld.Wait(t, "that is said", func() bool { return laptop.trouble("filing what was sent") != "" })
	testworld.Equal(t, laptop.waiting("agent1@build1"), 1, "messages that are not filed")
	testworld.Must(t, os.Remove(record))
	testworld.Wait(t, "it is filed", func() bool { return laptop.waiting("agent1@build1") == 0 })
	testworld.Wait(t, "nothing is wrong", func() bool { return laptop.trouble("filing what was sent") == "" })
}

// How long a message counts is by the clock of whoever has it: those of its sender, its receiver
// and the server may differ by an hour.
func TestClocks(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		now := func() time.Time { return time.Now().Add(off) }
		laptop.stop()
		laptop.bus = bus.New(laptop.home, bus.Options{Now: now})
		laptop.link()
		e := envelope.Envelope{From: agent.Owner, To: "agent1@build1", Text: fmt.Sprint(off), Time: now(), Expires: now().Add(10 * time.Minute)}
		testworld.Must(t, testworld.Err(laptop.bus.Send(t.Context(), e)))
		var got []bus.Entry
		testworld.Wait(t, "it arrives", func() bool {
			got = testworld.Got(build1.bus.List("agent1", bus.Inbox, 0))(t)
			return len(got) > 0 && got[len(got)-1].Envelope.Text == e.Text
		})
		last := got[len(got)-1].Envelope
		left := time.Until(last.Expires)
		testworld.Equal(t, left > 5*time.Minute && left <= 10*time.Minute, true, "it counts for %v more", left)
		testworld.Equal(t, len(last.Extra), 0, "extra fields")
	}
}

// A host that was removed is told so.
func TestRemovedHost(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	laptop.send(agent.Root, "agent1@build1", "it arrives")
	testworld.Wait(t, "it arrives", func() bool { return len(build1.texts("agent1")) == 1 })
	build1.stop()
	laptop.send(agent.Root, "agent1@build1", "it waits at the server")
	testworld.Wait(t, "the server has it", func() bool { return laptop.waiting("agent1@build1") == 0 })
	laptop.stop()
	e := envelope.Envelope{ID: "m-left", From: "agent0", To: "agent1@laptop", Text: "it is not taken", Time: time.Now()}
	w.publishAs(build1, &nats.Msg{Subject: wire.MailSubject("build1", "laptop"), Data: testworld.Got(e.MarshalJSON())(t)}, wire.Protocol)
	w.end()
	laptop.link()
	laptop.send(agent.Root, "agent1@build1", "it waits here")
	testworld.Got(team.Remove(laptop.home, "build1"))(t)
	w.serve()
	testworld.Wait(t, "its sender is told", func() bool { return len(laptop.texts(agent.Root)) == 1 })
	testworld.Contains(t, laptop.texts(agent.Root)[0], "not delivered to agent1@build1: build1 is in the team no more")
	_, err := laptop.bus.Send(t.Context(), envelope.Envelope{From: agent.Root, To: "agent1@build1", Text: "more", Time: time.Now()})
	testworld.ErrorIs(t, err, bus.ErrNoLink, "mail for it")
	testworld.Wait(t, "the owner is told what it had sent", func() bool { return len(laptop.texts(agent.Owner)) == 1 })
	testworld.Contains(t, laptop.texts(agent.Owner)[0], "build1 was removed from the team before this host had taken all of its mail: 1 that it had sent here")
	testworld.Equal(t, len(laptop.texts("agent1")), 0, "messages of its that have arrived")
	build1.link()
	testworld.Wait(t, "it is told", func() bool {
		return strings.HasPrefix(build1.down(), "laptop has removed this host from the team: `netsky link leave`")
	})
}

// What the stream has no room for waits here, which is said, and is sent once there is some.
func TestStreamFull(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build1, build2 := w.hosts[0], w.hosts[1], w.hosts[2]
	testworld.Wait(t, "laptop has made the streams", func() bool { return laptop.state("build1").Name != "" })
	w.limit("build1", func(c *jetstream.StreamConfig) { c.MaxBytes = 16 << 10 })
	build2.stop()
	var want []string
	for i := range 20 {
		text := fmt.Sprint(i, strings.Repeat(" ", 2000), ".")
		build1.send("agent1", "agent1@build2", text)
		want = append(want, "agent1@build1: "+text)
	}
	testworld.Wait(t, "it is said", func() bool {
		return strings.HasPrefix(build1.trouble("mail out"), "the server keeps no more of this host until others have taken some")
	})
	laptop.send("agent0", "agent1@build1", "another host has room")
	testworld.Wait(t, "it arrives", func() bool { return len(build1.texts("agent1")) == 1 })
	build2.link()
	testworld.Wait(t, "all arrives", func() bool { return len(build2.texts("agent1")) >= len(want) })
	testworld.EqualList(t, build2.texts("agent1"), want, "once, in order")
	testworld.Wait(t, "nothing is wrong", func() bool { return build1.trouble("mail out") == "" })
}

// Mail of a later protocol stays at the server until this host has been updated, and what is
// behind it, in order. A kind that this netsky does not know is a message.
func TestLaterProtocol(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build1, build2 := w.hosts[0], w.hosts[1], w.hosts[2]
	e := envelope.Envelope{From: "agent1", To: "agent0@laptop", Text: "of a kind to come", Time: time.Now(), Kind: "song"}
	testworld.Must(t, testworld.Err(build1.bus.Send(t.Context(), e)))
	testworld.Wait(t, "it arrives", func() bool { return len(laptop.texts("agent0")) == 1 })
	build1.stop()
	e.ID, e.Kind, e.Text = "m-later", "", "of a protocol to come"
	m := &nats.Msg{Subject: wire.MailSubject("build1", "laptop"), Data: testworld.Got(e.MarshalJSON())(t)}
	w.publishAs(build1, m, wire.Protocol+1)
	build1.link()
	build1.send("agent1", "agent0@laptop", "behind it")
	build2.send("agent1", "agent0@laptop", "of another host")
	testworld.Wait(t, "that of others arrives", func() bool { return len(laptop.texts("agent0")) == 2 })
	about := "mail from build1"
	testworld.Wait(t, "it is said", func() bool {
		return laptop.trouble(about) == "is of protocol 2, and this netsky speaks 1: update this one"
	})
	testworld.Wait(t, "what is behind it is sent", func() bool { return build1.waiting("agent0@laptop") == 0 })
	info := testworld.Got(testworld.Got(w.adminJS().Stream(t.Context(), wire.MailStream("build1")))(t).Info(t.Context()))(t)
	testworld.Equal(t, info.State.Msgs, 2, "messages that the server keeps")
	testworld.EqualList(t, laptop.texts("agent0"), []string{"agent1@build1: of a kind to come", "agent1@build2: of another host"}, "what has arrived")
}

// publishAs publishes a message of a host as a netsky of another protocol does.
func (w *world) publishAs(h *host, m *nats.Msg, protocol int) {
	w.Helper()
	id := "later"
	signed := binary.BigEndian.AppendUint16([]byte("netsky link\x00"), uint16(protocol))
	for _, part := range []string{m.Subject, id} {
		signed = append(binary.BigEndian.AppendUint32(signed, uint32(len(part))), part...)
	}
	key := testworld.Got(team.LoadKey(h.home))(w)
	signature := testworld.Got(key.Sign(append(signed, m.Data...)))(w)
	m.Header = nats.Header{nats.MsgIdHdr: {id}, wire.ProtocolHeader: {fmt.Sprint(protocol)}, wire.SignatureHeader: {base64.RawStdEncoding.EncodeToString(signature)}}
	testworld.Got(w.as(h).PublishMsg(w.Context(), m))(w)
}

// What is at the server of before is sent again to the one that the team has moved to.
func TestMoved(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	build1.stop()
	laptop.send(agent.Owner, "agent1@build1", "0")
	testworld.Wait(t, "the server has it", func() bool { return laptop.waiting("agent1@build1") == 0 })
	t.Cleanup(w.end)
	w.at, w.store = "", t.TempDir()
	w.serve()
	for _, h := range w.hosts {
		testworld.Got(team.Reach(h.home, team.Server{Address: "nats://" + w.at}))(t)
	}
	build1.link()
	laptop.send(agent.Owner, "agent1@build1", "1")
	testworld.Wait(t, "all has arrived", func() bool { return len(build1.texts("agent1")) == 2 })
	testworld.EqualList(t, build1.texts("agent1"), []string{"owner@laptop: 0", "owner@laptop: 1"}, "in order")
}

// What was wrong with one mailbox is said as long as it is.
func TestMailboxAgain(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	lock := testworld.Got(laptop.home.WaitLock(t.Context(), home.ReceiverLock("agent1@build1"), nil))(t) // as if another took its mail
	laptop.send(agent.Owner, "agent1@build1", "it arrives")
	testworld.Wait(t, "it is said", func() bool { return laptop.trouble("mail for agent1@build1") != "" })
	testworld.Must(t, lock.Unlock())
	testworld.Wait(t, "it arrives", func() bool { return len(build1.texts("agent1")) == 1 })
	testworld.Wait(t, "nothing is wrong", func() bool { return laptop.trouble("mail for agent1@build1") == "" })
}

// What was lost on its way to a host arrives before what is newer.
func TestLostOnItsWay(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	js := w.adminJS()
	testworld.Wait(t, "laptop has made the streams", func() bool { return laptop.state("build1").Name != "" })
	c := testworld.Got(js.Consumer(t.Context(), wire.MailStream("build1"), "laptop"))(t)
	conf := c.CachedInfo().Config
	conf.AckWait = time.Second
	testworld.Got(js.UpdateConsumer(t.Context(), wire.MailStream("build1"), conf))(t)
	dead := testworld.Got(c.Fetch(1, jetstream.FetchMaxWait(time.Minute)))(t) // of a connection that is no more, in turn with the link's
	testworld.Wait(t, "both ask for mail", func() bool { return testworld.Got(c.Info(t.Context()))(t).NumWaiting == 2 })
	var want []string
	for i := range 6 {
		build1.send("agent1", "agent0@laptop", fmt.Sprint(i))
		want = append(want, fmt.Sprint("agent1@build1: ", i))
	}
	testworld.Equal(t, <-dead.Messages() != nil, true, "one is lost")
	testworld.Wait(t, "all arrives", func() bool { return len(laptop.texts("agent0")) >= len(want) })
	testworld.EqualList(t, laptop.texts("agent0"), want, "once, in order")
}

// How many questions a host asks before it takes what an earlier session of its had been given
// does not depend on how much that is.
func TestGivenBefore(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	js := w.adminJS()
	testworld.Wait(t, "laptop has made the streams", func() bool { return laptop.state("build1").Name != "" })
	build1.stop()
	const n = 300
	var want []string
	for i := range n {
		laptop.send(agent.Owner, "agent1@build1", fmt.Sprint(i))
		want = append(want, fmt.Sprint("owner@laptop: ", i))
	}
	testworld.Wait(t, "the server has it", func() bool { return laptop.waiting("agent1@build1") == 0 })
	c := testworld.Got(js.Consumer(t.Context(), wire.MailStream("laptop"), "build1"))(t)
	conf := c.CachedInfo().Config
	conf.AckWait = time.Second
	testworld.Got(js.UpdateConsumer(t.Context(), wire.MailStream("laptop"), conf))(t)
	given := 0
	for range testworld.Got(c.Fetch(n, jetstream.FetchMaxWait(time.Minute)))(t).Messages() {
		given++
	}
	testworld.Equal(t, given, n, "messages that the earlier session was given")
	asked := testworld.Got(js.Conn().SubscribeSync("$JS.API.CONSUMER.INFO." + wire.MailStream("laptop") + ".build1"))(t)
	testworld.Must(t, js.Conn().Flush())
	build1.link()
	testworld.Wait(t, "all arrives", func() bool { return len(build1.texts("agent1")) >= n })
	testworld.EqualList(t, build1.texts("agent1"), want, "once, in order")
	questions, _, err := asked.Pending()
	testworld.Must(t, err)
	testworld.Equal(t, questions < n/2, true, "it asked %d times", questions)
}
