package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/internal/testworld"
	"netsky/link/server"
	"netsky/link/wire"
)

// Every call that wire.Allowed lists works.
func TestAllowed(t *testing.T) {
	w := newWorld(t, server.Local)
	w.serve()
	ctx, laptop, build := ctxOf(t), w.js("laptop"), w.js("build1")

	// Mail.
	m := &nats.Msg{Subject: wire.MailSubject("build1", "laptop"), Data: []byte("hello"), Header: nats.Header{nats.MsgIdHdr: {"1"}}}
	for i := range 2 {
		f := testworld.Got(build.PublishMsgAsync(m, jetstream.WithExpectStream(wire.MailStream("build1"))))(t)
		select {
		case ack := <-f.Ok():
			testworld.Equal(t, ack.Duplicate, i == 1, "a repetition")
		case err := <-f.Err():
			t.Fatal(err)
		}
	}
	for range 5 {
		testworld.Got(build.Publish(ctx, m.Subject, m.Data))(t)
	}
	s := testworld.Got(build.Stream(ctx, wire.MailStream("build1")))(t)
	info := testworld.Got(s.Info(ctx, jetstream.WithSubjectFilter(">")))(t)
	testworld.Equal(t, info.State.Subjects[m.Subject], 6, "messages that wait")
	c := testworld.Got(laptop.Consumer(ctx, wire.MailStream("build1"), "laptop"))(t)
	testworld.Got(c.Info(ctx))(t)
	batch := testworld.Got(c.Fetch(3))(t)
	for got := range batch.Messages() {
		testworld.Equal(t, got.Subject(), m.Subject, "subject")
		testworld.Must(t, got.InProgress())
		testworld.Must(t, got.DoubleAck(ctx))
	}
	got := testworld.Got(c.Next())(t)
	testworld.Must(t, got.Nak())
	got = testworld.Got(c.Next())(t)
	testworld.Must(t, got.Term())
	it := testworld.Got(c.Messages(jetstream.PullMaxMessages(1)))(t)
	testworld.Must(t, testworld.Got(it.Next())(t).Ack())
	it.Stop()
	seen := make(chan bool, 10)
	consuming := testworld.Got(c.Consume(func(m jetstream.Msg) { m.Ack(); seen <- true }))(t)
	<-seen
	consuming.Stop()

	// Files.
	f := testworld.Got(wire.PutFile(ctx, build, "build1", "laptop", "f1", strings.NewReader(strings.Repeat("x", 1<<20)), 2<<20))(t)
	var out bytes.Buffer
	testworld.Must(t, wire.GetFile(ctx, laptop.Conn(), "build1", "laptop", f, &out, 2<<20))
	testworld.Must(t, wire.DropFile(ctx, build, "build1", "laptop", f.ID))

	// What hosts say of themselves.
	told := testworld.Got(laptop.Conn().SubscribeSync(wire.Told(wire.Hosts, ">")))(t)
	testworld.Must(t, laptop.Conn().Flush())
	hosts := testworld.Got(build.KeyValue(ctx, wire.Hosts))(t)
	testworld.Got(hosts.Put(ctx, wire.StateKey("build1"), []byte("up")))(t)
	testworld.Got(hosts.Put(ctx, wire.NeedsKey("build1"), []byte("a yes")))(t)
	testworld.Got(hosts.Get(ctx, wire.StateKey("build1")))(t)
	testworld.Equal(t, string(testworld.Got(told.NextMsg(time.Minute))(t).Data), "up", "what was told")
	all := testworld.Got(laptop.KeyValue(ctx, wire.Hosts))(t)
	testworld.Equal(t, string(testworld.Got(all.Get(ctx, wire.NeedsKey("build1")))(t).Value()), "a yes", "needs")
	testworld.Must(t, hosts.Delete(ctx, wire.StateKey("build1")))
	testworld.ErrorIs(t, testworld.Err(all.Get(ctx, wire.StateKey("build1"))), jetstream.ErrKeyNotFound, "state")

	// The team document.
	told = testworld.Got(build.Conn().SubscribeSync(wire.Told(wire.Team, wire.TeamKey)))(t)
	testworld.Must(t, build.Conn().Flush())
	testworld.Got(testworld.Got(laptop.KeyValue(ctx, wire.Team))(t).Put(ctx, wire.TeamKey, []byte("doc")))(t)
	testworld.Equal(t, string(testworld.Got(told.NextMsg(time.Minute))(t).Data), "doc", "what was told")
	testworld.Equal(t, string(testworld.Got(testworld.Got(build.KeyValue(ctx, wire.Team))(t).Get(ctx, wire.TeamKey))(t).Value()), "doc", "document")

	// Deeds, and who joins.
	testworld.Got(build.Conn().Subscribe(wire.DeedSubject("build1", "*"), func(m *nats.Msg) { m.Respond([]byte(m.Subject)) }))(t)
	testworld.Got(laptop.Conn().Subscribe(wire.JoinSubject+".>", func(m *nats.Msg) { m.Respond(m.Data) }))(t)
	testworld.Must(t, errors.Join(build.Conn().Flush(), laptop.Conn().Flush()))
	deed := wire.DeedSubject("build1", "laptop")
	testworld.Equal(t, string(testworld.Got(laptop.Conn().Request(deed, nil, time.Minute))(t).Data), deed, "deed")
	join := testworld.Got(nats.Connect(w.ready().Address, nats.UserInfo(wire.JoinUser, wire.JoinPassword), nats.CustomInboxPrefix(wire.JoinInbox+".1"), nats.Timeout(time.Minute)))(t)
	defer join.Close()
	testworld.Equal(t, string(testworld.Got(join.Request(wire.JoinSubject+".hello", []byte("hi"), time.Minute))(t).Data), "hi", "join")
}

// publishes are what a worker, build1, may not publish, whatever it holds.
var publishes = []string{
	// As another, or what is the owner's.
	"netsky.mail.build2.laptop", "netsky.mail.*.laptop", "netsky.file.build2.laptop.f.0", "$KV.netsky-hosts.build2.state", "$KV.netsky-hosts.build1.more",
	"$KV.netsky-team.doc", "netsky.told.netsky-team.doc", "netsky.told.netsky-hosts.build2.state", "_INBOX_laptop.x", "_INBOX_JOIN.x", "netsky.join.hello",
	"netsky.deed.build2.build1", "netsky.deed.build2.laptop", "netsky.deed.laptop.build2",
	// Consumers of another's mail, or of any.
	"$JS.API.CONSUMER.CREATE.NETSKY-MAIL-laptop", "$JS.API.CONSUMER.CREATE.NETSKY-MAIL-laptop.build1", "$JS.API.CONSUMER.CREATE.NETSKY-MAIL-laptop.x.netsky.mail.laptop.build2",
	"$JS.API.CONSUMER.CREATE.NETSKY-MAIL-laptop.build1.netsky.mail.laptop.>", "$JS.API.CONSUMER.CREATE.NETSKY-MAIL-laptop.build1.netsky.mail.laptop.build1",
	"$JS.API.CONSUMER.DURABLE.CREATE.NETSKY-MAIL-laptop.x", "$JS.API.CONSUMER.DELETE.NETSKY-MAIL-laptop.build1", "$JS.API.CONSUMER.DELETE.NETSKY-MAIL-laptop.build2",
	"$JS.API.CONSUMER.PAUSE.NETSKY-MAIL-laptop.build2", "$JS.API.CONSUMER.RESET.NETSKY-MAIL-laptop.build1", "$JS.API.CONSUMER.UNPIN.NETSKY-MAIL-laptop.build2",
	"$JS.API.CONSUMER.NAMES.NETSKY-MAIL-laptop", "$JS.API.CONSUMER.LIST.NETSKY-MAIL-laptop", "$JS.API.CONSUMER.INFO.NETSKY-MAIL-laptop.build2",
	"$JS.API.CONSUMER.LEADER.STEPDOWN.NETSKY-MAIL-laptop.build2",
	// Another's mail, files and keys by other ways.
	"$JS.API.CONSUMER.MSG.NEXT.NETSKY-MAIL-laptop.build2", "$JS.ACK.NETSKY-MAIL-laptop.build2.1.1.1.1.0", "$JS.ACK._.x.NETSKY-MAIL-laptop.build2.1.1.1.1.0.x",
	"$JS.ACK.NETSKY-MAIL-laptop.build2.build1.1.1.1.0", "$JS.API.STREAM.MSG.GET.NETSKY-MAIL-laptop", "$JS.API.STREAM.MSG.DELETE.NETSKY-MAIL-laptop",
	"$JS.API.DIRECT.GET.NETSKY-MAIL-laptop", "$JS.API.DIRECT.GET.NETSKY-MAIL-laptop.netsky.mail.laptop.build1", "$JS.API.DIRECT.GET.NETSKY-FILES-laptop",
	"$JS.API.DIRECT.GET.NETSKY-FILES-laptop.netsky.file.laptop.build2.f.0", "$JS.API.DIRECT.GET.NETSKY-FILES-laptop.netsky.file.laptop.*.f.0", "$JS.API.DIRECT.GET.NETSKY-FILES-laptop.netsky.file.>",
	"$JS.API.DIRECT.GET.KV_netsky-hosts", "$JS.API.DIRECT.GET.KV_netsky-hosts.$KV.netsky-hosts.build2.state", "$JS.API.DIRECT.GET.KV_netsky-hosts.$KV.netsky-hosts.>",
	// Streams.
	"$JS.API.STREAM.CREATE.X", "$JS.API.STREAM.UPDATE.NETSKY-MAIL-build1", "$JS.API.STREAM.DELETE.NETSKY-MAIL-build1", "$JS.API.STREAM.DELETE.NETSKY-MAIL-laptop",
	"$JS.API.STREAM.PURGE.NETSKY-MAIL-build1", "$JS.API.STREAM.PURGE.NETSKY-MAIL-laptop", "$JS.API.STREAM.PURGE.NETSKY-FILES-laptop", "$JS.API.STREAM.PURGE.KV_netsky-hosts",
	"$JS.API.STREAM.INFO.NETSKY-MAIL-laptop", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.STREAM.SNAPSHOT.NETSKY-MAIL-laptop", "$JS.API.STREAM.RESTORE.X",
	"$JS.API.INFO", "$JS.API.META.LEADER.STEPDOWN", "$JS.API.ACCOUNT.PURGE.STREAMS", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.STREAMS.CONNZ", "$SYS.REQ.USER.INFO", "_R_.x.y", "anything",
}

var subscribes = []string{
	">", "*.>", "_INBOX.>", "_INBOX_laptop.>", "_INBOX_JOIN.>", "_R_.>", "netsky.>", "netsky.mail.>", "netsky.mail.*.build1", "netsky.file.>", "netsky.join.>", "netsky.told.>",
	"netsky.told.netsky-hosts.>", "netsky.told.*.doc", "netsky.deed.laptop.*", "netsky.deed.>", "$JS.>", "$JS.API.>", "$JS.EVENT.>", "$JS.ACK.>", "$KV.>", "$SYS.>", "_GR_.>",
}

// What a host may not do is refused.
func TestRefused(t *testing.T) {
	w := newWorld(t, server.Local)
	w.serve()
	evil := w.dial("build1")
	refused := func(what string, err error) {
		t.Helper()
		err = errors.Join(err, evil.Flush())
		if last := evil.LastError(); err != nil || !errors.Is(last, nats.ErrPermissionViolation) || !strings.Contains(last.Error(), `"`+strings.TrimPrefix(what, "sub ")+`"`) {
			t.Errorf("%s: %v, %v", what, err, last)
		}
	}
	for _, subject := range publishes {
		refused(subject, evil.PublishRequest(subject, wire.Inbox("build1")+".x", nil))
	}
	for _, subject := range subscribes {
		refused("sub "+subject, testworld.Err(evil.SubscribeSync(subject)))
	}
	join := testworld.Got(nats.Connect(w.ready().Address, nats.UserInfo(wire.JoinUser, wire.JoinPassword), nats.Timeout(time.Minute), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})))(t)
	defer join.Close()
	for _, subject := range append(publishes, "netsky.mail.build1.laptop", "netsky.deed.laptop.build1") {
		if strings.HasPrefix(subject, wire.JoinSubject) {
			continue
		}
		testworld.Must(t, errors.Join(join.Publish(subject, nil), join.Flush()))
		if last := join.LastError(); !errors.Is(last, nats.ErrPermissionViolation) || !strings.Contains(last.Error(), `"`+subject+`"`) {
			t.Errorf("one who joins: %s: %v", subject, last)
		}
	}
	for name, o := range map[string]nats.Option{
		"nobody": nats.Name("x"), "the wrong password": nats.UserInfo(wire.JoinUser, "x"), "the system": nats.UserInfo("admin", "s3cr3t!"),
	} {
		if nc, err := nats.Connect(w.ready().Address, o); err == nil {
			nc.Close()
			t.Errorf("%s was let in", name)
		}
	}
}

// The server writes replies wherever whoever asks wants them, and looks at no permission. So
// a host has that only in its own account.
func TestRepliesElsewhere(t *testing.T) {
	w := newWorld(t, server.Local)
	w.serve()
	ctx, laptop, victim, evil := ctxOf(t), w.js("laptop"), w.js("build2"), w.js("build1")
	testworld.Got(testworld.Got(laptop.KeyValue(ctx, wire.Team))(t).Put(ctx, wire.TeamKey, []byte("doc")))(t)
	testworld.Got(testworld.Got(victim.KeyValue(ctx, wire.Hosts))(t).Put(ctx, wire.StateKey("build2"), []byte("up")))(t)
	for range 3 {
		testworld.Got(victim.Publish(ctx, wire.MailSubject("build2", "laptop"), []byte("{}")))(t)
		testworld.Got(laptop.Publish(ctx, wire.MailSubject("laptop", "build1"), []byte("{}")))(t)
	}
	testworld.Got(wire.PutFile(ctx, victim, "build2", "laptop", "f", strings.NewReader("{}"), 10))(t)
	testworld.Got(wire.PutFile(ctx, laptop, "laptop", "build1", "f", strings.NewReader("{}"), 10))(t)
	testworld.Got(wire.PutFile(ctx, laptop, "laptop", "build2", "f", strings.NewReader("secret"), 10))(t)
	testworld.Got(laptop.Publish(ctx, wire.MailSubject("laptop", "build2"), []byte("secret")))(t)
	deeds := testworld.Got(victim.Conn().SubscribeSync(wire.DeedSubject("build2", "*")))(t)
	testworld.Must(t, victim.Conn().Flush())
	look := func() string {
		var text strings.Builder
		for _, name := range []string{wire.MailStream("build2"), wire.FileStream("build2")} {
			info := testworld.Got(testworld.Got(victim.Stream(ctx, name))(t).Info(ctx))(t)
			fmt.Fprintln(&text, name, info.State.Msgs, info.State.LastSeq)
		}
		state := testworld.Got(testworld.Got(victim.KeyValue(ctx, wire.Hosts))(t).Get(ctx, wire.StateKey("build2")))(t)
		doc := testworld.Got(testworld.Got(victim.KeyValue(ctx, wire.Team))(t).Get(ctx, wire.TeamKey))(t)
		n, _, err := deeds.Pending()
		fmt.Fprintln(&text, string(state.Value()), state.Revision(), string(doc.Value()), doc.Revision(), n, err)
		return text.String()
	}
	before := look()
	for _, request := range []string{
		wire.MailSubject("build1", "laptop"), wire.FileSubject("build1", "laptop", "f", "0"), "$JS.API.STREAM.INFO.NETSKY-MAIL-build1", "$KV.netsky-hosts.build1.state",
		"$JS.API.CONSUMER.MSG.NEXT.NETSKY-MAIL-laptop.build1", "$JS.API.DIRECT.GET.NETSKY-FILES-laptop.netsky.file.laptop.build1.f.0", "$JS.API.DIRECT.GET.KV_netsky-team.$KV.netsky-team.doc",
		"$JS.API.STREAM.PURGE.NETSKY-FILES-build1", "$JS.ACK.NETSKY-MAIL-laptop.build1.1.1.1.1.0", "$JS.API.CONSUMER.INFO.NETSKY-MAIL-laptop.build1",
	} {
		for _, reply := range []string{
			"$JS.API.STREAM.PURGE.NETSKY-MAIL-build2", "$JS.API.STREAM.DELETE.NETSKY-MAIL-build2", "$JS.API.STREAM.DELETE.KV_netsky-team", "$JS.API.STREAM.PURGE.NETSKY-FILES-build2",
			wire.MailSubject("build2", "laptop"), "$KV.netsky-hosts.build2.state", "$KV.netsky-team.doc", wire.DeedSubject("build2", "laptop"), wire.DeedSubject("build2", "build1"),
		} {
			testworld.Must(t, evil.Conn().PublishRequest(request, reply, []byte("{}")))
		}
	}
	// Headers and bodies that have the server write, or give what is another's.
	for name, value := range map[string]string{
		"Nats-Trace-Dest": wire.MailSubject("build2", "laptop"), "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": wire.MailSubject("build2", "laptop"), "Nats-Rollup": "all", "Nats-TTL": "1",
		"Nats-Batch-Id": "x", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1", "Nats-Incr": "1", "Nats-Expected-Stream": wire.MailStream("build2"),
		"Nats-Expected-Last-Subject-Sequence-Subject": wire.MailSubject("build2", "laptop"), "Nats-Subject": wire.MailSubject("build2", "laptop"), "Nats-Stream": wire.MailStream("build2"),
		"KV-Operation": "PURGE", "Nats-Marker-Reason": "Purge",
	} {
		for _, subject := range []string{wire.MailSubject("build1", "laptop"), wire.FileSubject("build1", "laptop", "f", "0"), "$KV.netsky-hosts.build1.state"} {
			m := &nats.Msg{Subject: subject, Reply: wire.Inbox("build1") + ".x", Header: nats.Header{name: {value}, "Nats-Trace-Only": {"true"}}}
			testworld.Must(t, evil.Conn().PublishMsg(m))
			m.Header.Del("Nats-Trace-Only")
			testworld.Must(t, evil.Conn().PublishMsg(m))
		}
	}
	got := testworld.Got(evil.Conn().SubscribeSync(wire.Inbox("build1") + ".got"))(t)
	for subject, bodies := range map[string][]string{
		"$JS.API.DIRECT.GET.NETSKY-FILES-laptop.netsky.file.laptop.build1.f.0": {
			`{"last_by_subj":"netsky.file.laptop.build2.f.0"}`, `{"multi_last":[">"]}`, `{"seq":1}`, `{"batch":10,"seq":1}`, `{"next_by_subj":">"}`,
		},
		"$JS.API.DIRECT.GET.KV_netsky-hosts.netsky.file.laptop.build1.f.0": {`{"last_by_subj":"$KV.netsky-hosts.build2.state"}`, `{"multi_last":[">"]}`},
		"$JS.API.STREAM.INFO.NETSKY-MAIL-build1":                           {`{"subjects_filter":">","deleted_details":true}`},
		"$JS.API.STREAM.PURGE.NETSKY-FILES-build1":                         {`{"filter":"netsky.file.build2.>"}`, `{"filter":"netsky.mail.build2.>"}`},
		"$JS.ACK.NETSKY-MAIL-laptop.build1.1.1.1.1.0":                      {`+NXT {"batch":10}`, "+TERM", "-NAK"},
		"$JS.ACK.NETSKY-MAIL-build2.build1.1.1.1.1.0":                      {"+ACK", "+TERM"},
		"$JS.API.CONSUMER.MSG.NEXT.NETSKY-MAIL-laptop.build1":              {`{"batch":10,"no_wait":true,"group":"build2"}`, `10`},
	} {
		for _, body := range bodies {
			testworld.Must(t, evil.Conn().PublishRequest(subject, wire.Inbox("build1")+".got", []byte(body)))
		}
	}
	// Its requests are taken in order: once this one is answered, all are done.
	testworld.Got(testworld.Got(evil.Stream(ctx, wire.MailStream("build1")))(t).Info(ctx))(t)
	if after := look(); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	for {
		m, err := got.NextMsg(time.Second)
		if err != nil {
			break
		}
		for _, secret := range []string{"secret", "build2"} {
			if strings.Contains(string(m.Data), secret) || strings.Contains(m.Subject+m.Header.Get("Nats-Subject"), secret) {
				t.Errorf("it got %s %v %s", m.Subject, m.Header, m.Data)
			}
		}
	}
}

// What a host writes to no host of the team is not kept: there are names without end, and the server has each in memory.
func TestNamesWithoutEnd(t *testing.T) {
	w := newWorld(t, server.Local)
	w.serve()
	ctx, evil := ctxOf(t), w.js("build1")
	for _, to := range []string{"laptop", "build2"} {
		testworld.Got(evil.Publish(ctx, wire.MailSubject("build1", to), nil))(t)
	}
	for _, to := range []string{"build3", "x", "X1"} {
		if _, err := evil.Publish(ctx, wire.MailSubject("build1", to), nil); err == nil {
			t.Errorf("mail for %s was taken", to)
		}
	}
	s := testworld.Got(evil.Stream(ctx, wire.MailStream("build1")))(t)
	testworld.Equal(t, s.CachedInfo().State.Msgs, 2, "messages")
}
