package link_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	"netsky/link/team"
	"netsky/link/wire"
)

// A thief has a host's key and speaks as it to a server that refuses nothing.
type thief struct {
	*host
	key team.Key
	js  jetstream.JetStream
}

// steal ends a host and returns who has its key.
func (w *world) steal(h *host) thief {
	w.Helper()
	h.stop()
	return thief{h, testworld.Got(team.LoadKey(h.home))(w), w.as(h)}
}

// signed is a message with that body.
func (a thief) signed(subject, id string, body []byte) *nats.Msg {
	a.Helper()
	m := &nats.Msg{Subject: subject, Data: body}
	testworld.Must(a, wire.Sign(a.key, m, id))
	return m
}

// mail is a message from an agent here to one on another host.
func (a thief) mail(to agent.ID, edit func(e *envelope.Envelope)) *nats.Msg {
	a.Helper()
	e := envelope.Envelope{ID: fmt.Sprint("m-", time.Now().UnixNano()), From: "agent1", To: to, Text: "evil", Time: time.Now(), RequiresAck: true}
	if edit != nil {
		edit(&e)
	}
	return a.signed(wire.MailSubject(a.name, to.Host()), e.ID, testworld.Got(e.MarshalJSON())(a))
}

func (a thief) publish(m *nats.Msg) {
	a.Helper()
	testworld.Got(a.js.PublishMsg(a.Context(), m))(a)
}

// With its key a host can write as its own agents, and as nobody else, whatever the server lets through.
func TestForgedMail(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build2 := w.hosts[0], w.hosts[2]
	evil := w.steal(w.hosts[1])
	laptop.send(agent.Owner, "agent1@build1", "for build1")
	taken := wire.MailSubject("build2", "laptop")
	build2.send("agent1", "agent0@laptop", "honest")
	testworld.Wait(t, "the honest one arrives", func() bool { return len(laptop.texts("agent0")) == 1 })

	as := func(from agent.ID) func(*envelope.Envelope) {
		return func(e *envelope.Envelope) { e.From = from }
	}
	elsewhere := evil.mail("agent0@laptop", nil)
	elsewhere.Subject = taken
	old := evil.mail("agent0@laptop", func(e *envelope.Envelope) { e.Text = "once" })
	other := evil.mail("agent0@laptop", nil)
	other.Header.Del(wire.SignatureHeader)
	for _, m := range []*nats.Msg{
		elsewhere, // as another host, with its own signature
		evil.signed(taken, "m-1", evil.mail("agent0@laptop", nil).Data),
		evil.mail("agent0@laptop", as("agent1@build2")), evil.mail("agent0@laptop", as("owner@laptop")), evil.mail("agent0@laptop", as("agent0@laptop")),
		evil.signed(wire.MailSubject("build1", "laptop"), "m-2", evil.mail("agent1@build2", nil).Data), // to another host than its subject says
		other, // not signed
		evil.signed(wire.MailSubject("build1", "laptop"), "m-3", []byte(`{"id":"m-3","from":"agent1","from":"owner","to":"agent0@laptop","text":"evil","ts":"2026-11-20T12:00:00Z"}`)),
		evil.signed(wire.MailSubject("build1", "laptop"), "m-4", []byte(`{"id":"m-4","from":"agent1","FROM":"owner","to":"agent0@laptop","text":"evil","ts":"2026-11-20T12:00:00Z"}`)),
		evil.signed(wire.MailSubject("build1", "laptop"), "m-5", []byte(`{"id":"m-5","from":"agent1","to":"agent0@laptop","text":"evil","ts":"2026-11-20T12:00:00Z","x":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`)),
		evil.mail("owner@laptop", nil), // which no clone may
		evil.mail("agent1@laptop", func(e *envelope.Envelope) { e.Kind = envelope.KindShutdown }),
		evil.mail("agent1@laptop", func(e *envelope.Envelope) { e.Kind, e.InReplyTo = envelope.KindCancel, "m-1" }),
		old, old,
	} {
		m.Header.Set("Netsky-Again", "1")
		evil.publish(m)
	}
	for range 3 { // without the server's memory of the last two minutes
		again := *old
		again.Header = nats.Header{"Netsky-Again": {"1"}}
		for _, name := range []string{nats.MsgIdHdr, wire.ProtocolHeader, wire.SignatureHeader} {
			again.Header[name] = old.Header[name]
		}
		w.end()
		w.serve()
		testworld.Wait(t, "it is sent again", func() bool { return testworld.Err(evil.js.PublishMsg(t.Context(), &again)) == nil })
	}
	evil.publish(evil.mail("agent0@laptop", func(e *envelope.Envelope) { e.Text = "the last" }))
	testworld.Wait(t, "the last one arrives", func() bool { return len(laptop.texts("agent0")) >= 3 })
	testworld.EqualList(t, laptop.texts("agent0"), []string{"agent1@build2: honest", "agent1@build1: once", "agent1@build1: the last"}, "mail of agent0")
	testworld.Len(t, laptop.texts("agent1"), 0, "mail of agent1")
	testworld.Len(t, laptop.texts(agent.Owner), 0, "mail of the owner")
	build2.send("agent1", "agent0@laptop", "still")
	testworld.Wait(t, "others are heard", func() bool { return len(laptop.texts("agent0")) == 4 })
}

// Files come with their own message alone, under no other name, and none stays of what is refused.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop := w.hosts[0]
	evil := w.steal(w.hosts[1])
	type file struct {
		Name string    `json:"name"`
		File wire.File `json:"file"`
	}
	with := func(id string, to agent.ID, hops int, files ...file) *nats.Msg {
		return evil.mail(to, func(e *envelope.Envelope) {
			e.ID, e.Hops = id, hops
			for _, f := range files {
				e.Attachments = append(e.Attachments, f.Name)
			}
			e.Extra = map[string]json.RawMessage{"link_files": testworld.Got(json.Marshal(files))(t)}
		})
	}
	put := func(id, to, name, text string) file {
		id = envelope.Digest("agent1", to, id, name)
		return file{name, testworld.Got(wire.PutFile(t.Context(), evil.js, "build1", "laptop", id, strings.NewReader(text), 100))(t)}
	}
	good := put("m-1", "agent0@laptop", "attach/a", "text")
	evil.publish(with("m-1", "agent0@laptop", 0, good, good))
	for i, name := range []string{"attach/../../../x", "../x", "/etc/passwd", "attach/.x", "attach/a/b", "attach/"} {
		f := good
		f.Name = name
		evil.publish(with(fmt.Sprint("m-2", i), "agent0@laptop", 0, f))
	}
	evil.publish(with("m-3", "agent0@laptop", 0, good)) // that of another message
	for i, id := range []string{"../../../x", "a.b", ">", "*", "", strings.Repeat("x", 300)} {
		f := good
		f.File.ID = id
		evil.publish(with(fmt.Sprint("m-4", i), "agent0@laptop", 0, f))
	}
	evil.publish(with("m-5", "agent9@laptop", 0, put("m-5", "agent9@laptop", "attach/a", "for nobody")))
	evil.publish(with("m-6", "agent0@laptop", 17, put("m-6", "agent0@laptop", "attach/a", "too many hops")))
	evil.publish(with("m-7", "agent0@laptop", 0))
	testworld.Wait(t, "all has arrived", func() bool { return len(laptop.texts("agent0")) == 15 })
	got := testworld.Got(laptop.bus.List("agent0", bus.Inbox, 0))(t)
	for i, e := range got[1:] {
		testworld.Len(t, e.Envelope.Attachments, 0, "files of message %d", i+1)
	}
	testworld.Len(t, got[0].Envelope.Attachments, 2, "names of the first's")
	var there []string
	testworld.Must(t, filepath.WalkDir(laptop.home.Path(home.Channels), func(name string, d os.DirEntry, err error) error {
		if data, _ := os.ReadFile(name); bytes.Contains(data, []byte("for nobody")) || bytes.Contains(data, []byte("too many hops")) || string(data) == "text" {
			there = append(there, name)
		}
		return err
	}))
	testworld.EqualList(t, there, []string{laptop.home.Path(home.Mailbox("agent0"), got[0].Envelope.Attachments[0])}, "files")
}

// A host that takes nothing keeps back what is for it, and nothing that is for others; once it takes some, it gets
// the rest, in order.
func TestTakesNothing(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build2 := w.hosts[0], w.hosts[2]
	evil := w.steal(w.hosts[1])
	testworld.Wait(t, "the streams are made", func() bool { return laptop.state("build2").Name != "" })
	nc := testworld.Got(nats.Connect("nats://"+w.at, w.admin.SignIn()))(t)
	defer nc.Close()
	admin := testworld.Got(jetstream.New(nc))(t)
	c := testworld.Got(admin.Stream(t.Context(), wire.MailStream("laptop")))(t).CachedInfo().Config
	testworld.Equal(t, c.MaxMsgsPerSubject, wire.MaxWaiting, "most that waits for one host")
	c.MaxMsgsPerSubject = 10
	testworld.Got(admin.UpdateStream(t.Context(), c))(t)
	var want []string
	send := func(n int) {
		for range n {
			laptop.send(agent.Owner, "agent1@build1", fmt.Sprint(len(want)))
			want = append(want, fmt.Sprint("owner@laptop: ", len(want)))
		}
	}
	send(20)
	testworld.Wait(t, "what waits is reported", func() bool { return strings.Contains(laptop.trouble("mail for build1"), "keeps no more for build1") })
	laptop.send(agent.Owner, "agent1@build2", "for build2")
	testworld.Wait(t, "mail for another arrives", func() bool { return len(build2.texts("agent1")) == 1 })
	send(5)
	testworld.Equal(t, laptop.waiting("agent1@build1") >= 15, true, "it waits here")
	evil.link()
	testworld.Wait(t, "all arrives", func() bool { return len(evil.texts("agent1")) >= len(want) })
	testworld.EqualList(t, evil.texts("agent1"), want, "once, in order")
	testworld.Wait(t, "nothing is reported", func() bool { return laptop.trouble("mail for build1") == "" && laptop.trouble("mail out") == "" })
}

// A host writes answers nowhere but where hosts take them: the subject for an answer is chosen by whoever asks, and a
// server that keeps nobody apart takes from this host what it would not from them.
func TestAnswersElsewhere(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	evil := w.steal(w.hosts[1])
	nc := evil.js.Conn()
	deed := evil.signed(wire.DeedSubject("laptop", "build1"), "m-1", []byte(`{"op":"hello"}`))
	inboxes := map[string]string{wire.JoinSubject + ".hello": wire.JoinInbox, deed.Subject: wire.Inbox("build1")}
	for subject, inbox := range inboxes {
		all := testworld.Got(nc.SubscribeSync("*.answer"))(t)
		testworld.Wait(t, "an answer", func() bool {
			for _, reply := range []string{wire.MailStream("x"), "$JS", "evil", inbox} {
				testworld.Must(t, nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply + ".answer", Header: deed.Header, Data: deed.Data}))
			}
			m, err := all.NextMsg(time.Second)
			if err != nil {
				return false
			}
			from := slices.Collect(maps.Values(inboxes)) // the other subject's answers may still come
			testworld.Equal(t, slices.Contains(from, strings.TrimSuffix(m.Subject, ".answer")), true, m.Subject, "is where hosts take answers")
			return m.Subject == inbox+".answer"
		})
		testworld.Must(t, all.Unsubscribe())
	}
}

// Of what a brake keeps back no more is in memory than a few messages; the rest waits at the server, and comes once it
// may.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build2 := w.hosts[0], w.hosts[2]
	evil := w.steal(w.hosts[1])
	laptop.stop()
	full := func(do func(path string) error) { // as many as may wait for agent1
		for i := range 1000 {
			testworld.Must(t, do(laptop.home.Path(fmt.Sprintf("channels/agent/agent1/inbox/%d.json", i))))
		}
	}
	full(func(path string) error { return os.WriteFile(path, []byte(`{"from":"owner","text":"x"}`), 0o600) })
	laptop.link()
	text := strings.Repeat("x", 1_000_000)
	for range 30 {
		evil.publish(evil.mail("agent1@laptop", func(e *envelope.Envelope) { e.Text = text }))
	}
	nc := testworld.Got(nats.Connect("nats://"+w.at, w.admin.SignIn()))(t)
	defer nc.Close()
	mail := testworld.Got(testworld.Got(jetstream.New(nc))(t).Consumer(t.Context(), wire.MailStream("build1"), "laptop"))(t)
	taken := func() int { return testworld.Got(mail.Info(t.Context()))(t).NumAckPending }
	testworld.Wait(t, "some are kept back", func() bool { return taken() > 8 })
	for i := range 3 {
		build2.send("agent1", "agent0@laptop", "honest")
		testworld.Wait(t, "another is heard", func() bool { return len(laptop.texts("agent0")) == i+1 })
	}
	if n := taken(); n > 20 {
		t.Errorf("%d MB are kept back", n)
	}
	full(os.Remove)
	testworld.Wait(t, "all arrives", func() bool { return testworld.Got(laptop.bus.Count("agent1", bus.Inbox))(t) == 30 && taken() == 0 })
}
