package team_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/link/team"
)

// broker runs a server that lets everybody in.
func broker(t *testing.T) (connect func(...nats.Option) *nats.Conn) {
	t.Helper()
	s := testworld.Got(server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true}))(t)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not answer")
	}
	return func(o ...nats.Option) *nats.Conn {
		nc := testworld.Got(nats.Connect(s.ClientURL(), append(o, nats.Timeout(time.Minute))...))(t)
		t.Cleanup(nc.Close)
		return nc
	}
}

// registered makes an owner's host that answers at a server.
func registered(t *testing.T, connect func(...nats.Option) *nats.Conn, fingerprint string) home.Dir {
	t.Helper()
	h := founded(t)
	nc := connect()
	testworld.Got(team.NewRegistrar(h, func() string { return fingerprint }).Subscribe(nc))(t)
	testworld.Must(t, nc.Flush())
	return h
}

// applicant returns a host that joins, calls shown with its code, and confirms.
func applicant(h home.Dir, nc *nats.Conn, shown func(code string)) *team.Applicant {
	return &team.Applicant{
		Home: h, Name: "build1", Conn: nc, Server: team.Server{Address: "ssh:me@laptop"},
		Show:    func(code, _ string) { shown(code) },
		Confirm: func(string, string) (bool, error) { return true, nil },
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	connect := broker(t)
	owner, h := registered(t, connect, ""), testworld.Home(t)
	var q team.Request
	self := testworld.Got(applicant(h, connect(team.JoinOptions(team.Server{})...), func(code string) {
		list := testworld.Got(team.Requests(owner))(t)
		testworld.Len(t, list, 1)
		testworld.Equal(t, list[0].Code, code, "the owner sees the code")
		testworld.Equal(t, list[0].State, team.Pending)
		testworld.Fails(t, testworld.Err(team.Approve(owner, "0000-000", team.Worker)), "must be eight digits")
		testworld.Fails(t, testworld.Err(team.Approve(owner, other(code), team.Worker)), "no host with that code asks to join")
		testworld.Fails(t, testworld.Err(team.Approve(h, code, team.Worker)), "this host belongs to no team")
		q = testworld.Got(team.Approve(owner, strings.ReplaceAll(code, "-", " "), team.Worker))(t)
	}).Join(t.Context()))(t)
	key := testworld.Got(team.LoadKey(h))(t)
	testworld.Equal(t, q.Key, key.Public())
	testworld.Equal(t, q.Role, team.Worker)
	ownerKey := testworld.Got(team.LoadKey(owner))(t)
	made := testworld.Got(team.Load(owner))(t)
	testworld.Equal(t, self, team.Self{Name: "build1", Team: made.ID, Owner: "laptop", OwnerKey: ownerKey.Public(), Server: team.Server{Address: "ssh:me@laptop"}, Protocol: 1})
	testworld.EqualList(t, testworld.Got(team.Load(h))(t).Hosts, made.Hosts)
	testworld.Equal(t, h.Mark(team.AskedFile).Exists(), false, "the request is still there")
	testworld.Fails(t, testworld.Err(applicant(h, connect(), nil).Join(t.Context())), "is in a team already, that of laptop, as build1")
	testworld.Fails(t, testworld.Err(team.Reject(owner, q.Code)), "was approved already")
	testworld.Got(team.Approve(owner, q.Code, team.Worker))(t)
	for name, want := range map[string]string{"bui1d1": "build1", "lap-top": "laptop", "build2": ""} {
		a := applicant(testworld.Home(t), connect(team.JoinOptions(team.Server{})...), func(code string) {
			list := testworld.Got(team.Requests(owner))(t)
			q := list[slices.IndexFunc(list, func(q team.Request) bool { return q.Code == code })]
			testworld.Equal(t, q.Like, want, name)
			testworld.Equal(t, strings.Contains(q.Caution(), "looks like that of "+want), want != "", name)
			testworld.Got(team.Reject(owner, code))(t)
		})
		a.Name = name
		testworld.Fails(t, testworld.Err(a.Join(t.Context())), "")
	}
	testworld.Got(team.Remove(owner, "build1"))(t)
	testworld.Fails(t, testworld.Err(team.Approve(owner, q.Code, team.Worker)), "build1: its key was removed from the team")
}

// other is a code that differs.
func other(code string) string {
	return code[:8] + string('0'+(code[8]-'0'+1)%10)
}

func TestJoinRefused(t *testing.T) {
	t.Parallel()
	connect := broker(t)
	owner := registered(t, connect, "")
	join := func(h home.Dir, name string) error {
		a := applicant(h, connect(team.JoinOptions(team.Server{})...), func(code string) { testworld.Got(team.Reject(owner, code))(t) })
		a.Name = name
		return testworld.Err(a.Join(t.Context()))
	}
	h := testworld.Home(t)
	testworld.ErrorIs(t, join(h, "build1"), team.ErrRejected)
	testworld.Fails(t, join(h, "build1"), "the owner has rejected it; it can ask again at")
	testworld.ErrorIs(t, testworld.Err(team.LoadSelf(h)), team.ErrNone)

	testworld.Fails(t, join(testworld.Home(t), "laptop"), "is the name of another host of the team")
	list := testworld.Got(team.Requests(owner))(t)
	testworld.Len(t, list, 2) // the oldest first
	testworld.Equal(t, list[1].State, team.Refused, "the owner is told")
	testworld.Contains(t, list[1].Reason, "is the name of another host")
	testworld.Fails(t, testworld.Err(team.Approve(owner, list[1].Code, team.Owner)), "no host with that code")

	member(t, owner, "build3")
	back := testworld.Home(t)
	testworld.Fails(t, join(back, "build3"), "is the name of another host of the team")
	testworld.Got(team.Remove(owner, "build3"))(t)
	testworld.ErrorIs(t, join(back, "build3"), team.ErrRejected) // it was asked about, as nothing else is against it

	gone := member(t, owner, "build2")
	testworld.Got(team.Remove(owner, "build2"))(t)
	testworld.Must(t, gone.Remove(team.SelfFile))
	testworld.Fails(t, join(gone, "build2"), "its key was removed from the team")
	testworld.Fails(t, join(testworld.Home(t), "Build 3"), "its name must be")

	alone := broker(t)
	a := applicant(testworld.Home(t), alone(), nil)
	testworld.Fails(t, testworld.Err(a.Join(t.Context())), "the owner's host does not answer at this server")
}

// A request that nobody has answered in time is over, on both sides.
func TestJoinOver(t *testing.T) {
	t.Parallel()
	connect := broker(t)
	owner, h := registered(t, connect, ""), testworld.Home(t)
	a := applicant(h, connect(), func(string) {
		q := testworld.Got(team.Requests(owner))(t)[0]
		q.At = q.At.Add(-team.JoinWithin - time.Second)
		testworld.Must(t, owner.Save(team.JoinDir+"/"+q.Key+".json", q, true))
		testworld.Len(t, testworld.Got(team.Requests(owner))(t), 0)
		testworld.Fails(t, testworld.Err(team.Approve(owner, q.Code, team.Worker)), "no host with that code")
	})
	testworld.Fails(t, testworld.Err(a.Join(t.Context())), "the owner did not approve it within 10 minutes")
	testworld.Equal(t, h.Mark(team.AskedFile).Exists(), false, "the request is still there")
}

// A host that enters another team while it waits stays in that.
func TestJoinElsewhere(t *testing.T) {
	t.Parallel()
	connect := broker(t)
	owner, h := registered(t, connect, ""), testworld.Home(t)
	var made team.Team
	a := applicant(h, connect(), func(code string) {
		made = testworld.Got(team.Found(h, "build1", team.Server{}))(t)
		testworld.Got(team.Approve(owner, code, team.Worker))(t)
	})
	testworld.Fails(t, testworld.Err(a.Join(t.Context())), "this host is in a team already, that of build1")
	testworld.Equal(t, testworld.Got(team.Load(h))(t).ID, made.ID)
}

// Who is killed between any two steps of a join, and joins again, is let in by one approval.
func TestJoinKilled(t *testing.T) {
	t.Parallel()
	connect := broker(t)
	owner, h := registered(t, connect, ""), testworld.Home(t)
	ctx, stop := context.WithCancelCause(t.Context())
	code := ""
	a := applicant(h, connect(), func(c string) { code = c; stop(context.Canceled) })
	testworld.ErrorIs(t, testworld.Err(a.Join(ctx)), context.Canceled)
	pending := testworld.Got(team.Requests(owner))(t)[0]
	asked := testworld.Got(os.ReadFile(h.Path(team.AskedFile)))(t)

	testworld.Got(team.Approve(owner, code, team.Worker))(t)
	// The owner's verb was killed between the team document and the request.
	testworld.Must(t, owner.Save(team.JoinDir+"/"+pending.Key+".json", pending, true))
	a.Show = func(again, _ string) {
		testworld.Equal(t, again, code, "the code of the same request")
		testworld.Got(team.Approve(owner, code, team.Worker))(t)
	}
	admitted := testworld.Got(team.Load(owner))(t).Serial
	self := testworld.Got(a.Join(t.Context()))(t)
	testworld.Equal(t, testworld.Got(team.Load(owner))(t).Serial, admitted, "it was admitted once")

	a.Show = func(string, string) { t.Error("the owner is asked again") }
	for _, left := range [][]string{{}, {team.TeamFile}} {
		testworld.Must(t, h.WriteFile(team.AskedFile, asked, true))
		for _, file := range []string{team.SelfFile, team.TeamFile} {
			if len(left) == 0 || file != left[0] {
				testworld.Must(t, h.Remove(file))
			}
		}
		testworld.Equal(t, testworld.Got(a.Join(t.Context()))(t), self, "with %q", left)
	}
	// Only the key is left: that is another request, of a host that is in the team.
	for _, file := range []string{team.SelfFile, team.TeamFile, team.AskedFile} {
		testworld.Must(t, h.Remove(file))
	}
	a.Show = func(again, _ string) {
		if again == code {
			t.Error("the same code for another request")
		}
		testworld.Got(team.Approve(owner, again, team.Worker))(t)
	}
	testworld.Equal(t, testworld.Got(a.Join(t.Context()))(t), self)
	testworld.Len(t, testworld.Got(team.Load(owner))(t).Hosts, 2)

	testworld.Must(t, errors.Join(h.Remove(team.SelfFile), h.WriteFile(team.AskedFile, []byte("{"), false)))
	testworld.Equal(t, testworld.Got(a.Join(t.Context()))(t), self, "with a damaged request")
}

// say asks as a host does that this package did not write.
func say(t *testing.T, nc *nats.Conn, subject string, v any) (answer map[string]any) {
	t.Helper()
	m := testworld.Got(nc.Request(subject, testworld.Got(json.Marshal(v))(t), time.Minute))(t)
	testworld.Must(t, json.Unmarshal(m.Data, &answer))
	return answer
}

type object = map[string]any

func digest(parts ...string) []byte {
	parts[0] = "netsky join 1 " + parts[0]
	data, _ := json.Marshal(parts)
	sum := sha256.Sum256(data)
	return sum[:]
}

// TestJoinSaid is what is said on the wire, and what of it counts once.
func TestJoinSaid(t *testing.T) {
	t.Parallel()
	connect := broker(t)
	owner, nc := registered(t, connect, ""), connect()
	pair := testworld.Got(nkeys.CreateUser())(t)
	key, nonce := testworld.Got(pair.PublicKey())(t), make([]byte, 32)
	rand.Read(nonce)
	commit := digest("commit", hex.EncodeToString(nonce), key, "build1", "")
	hello := object{"protocol": 1, "name": "build1", "commit": commit}
	offered := say(t, nc, "netsky.join.hello", hello)
	offer, _ := offered["offer"].(object)
	testworld.Equal(t, say(t, nc, "netsky.join.hello", hello)["offer"].(object)["nonce"], offer["nonce"], "a hello repeated")

	reveal := func(key string, nonce []byte, by nkeys.KeyPair) object {
		var theirs struct{ Nonce []byte }
		testworld.Must(t, json.Unmarshal(testworld.Got(json.Marshal(offer))(t), &theirs))
		id := hex.EncodeToString(digest("all", offer["team"].(string), "laptop", offer["owner_key"].(string), key, "build1", hex.EncodeToString(theirs.Nonce), hex.EncodeToString(nonce), ""))
		sig := testworld.Got(by.Sign([]byte("netsky join 1\n" + id)))(t)
		return object{"protocol": 1, "commit": commit, "key": key, "nonce": nonce, "signature": sig}
	}
	own := reveal(key, nonce, pair)
	testworld.Equal(t, say(t, nc, "netsky.join.reveal", own)["state"], any("pending"))
	testworld.Len(t, testworld.Got(team.Requests(owner))(t), 1)
	testworld.Equal(t, say(t, nc, "netsky.join.reveal", own)["state"], any("unknown"), "a reveal replayed")

	mallory := testworld.Got(nkeys.CreateUser())(t)
	hers, another := testworld.Got(mallory.PublicKey())(t), make([]byte, 32)
	for _, tt := range []struct {
		what, key string
		nonce     []byte
		by        nkeys.KeyPair
	}{{"another key", hers, nonce, mallory}, {"another number", key, another, pair}, {"a key that she does not have", key, nonce, mallory}} {
		offer = say(t, nc, "netsky.join.hello", hello)["offer"].(object)
		r := reveal(tt.key, tt.nonce, tt.by)
		testworld.Contains(t, fmt.Sprint(say(t, nc, "netsky.join.reveal", r)["refused"]), "is not what the host had committed itself to", tt.what)
		testworld.Equal(t, say(t, nc, "netsky.join.reveal", r)["state"], any("unknown"), "%s: a second try", tt.what)
	}
	for text, want := range map[string]string{
		`{"protocol":1,"name":"a b","commit":""}`: "name", `{"protocol":1,"name":"b","commit":"AAAA"}`: "commitment of 3 bytes", `{`: "is not understood",
		`{"protocol":1,"name":"` + strings.Repeat("b", 5000) + `"}`:                           "larger than",
		`{"protocol":1,"name":"b","commit":"` + strings.Repeat("A", 43) + `=","pinned":true}`: "somebody may be between you and it",
	} {
		m := testworld.Got(nc.Request("netsky.join.hello", []byte(text), time.Minute))(t)
		testworld.Contains(t, string(m.Data), want)
	}
}

// Who is between both hosts, as a server can be, and plays each to the other: the codes differ,
// the owner can't approve the one that the joining host shows, and an approval that the owner
// has not given is not believed.
func TestJoinInTheMiddle(t *testing.T) {
	t.Parallel()
	real, hers := broker(t), broker(t)
	owner, mallory := registered(t, real, ""), registered(t, hers, "")
	victim := testworld.Home(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	a := applicant(victim, hers(), func(code string) {
		testworld.ErrorIs(t, testworld.Err(applicant(testworld.Home(t), real(), func(another string) {
			if another == code {
				t.Error("both hosts show the same code")
			}
			testworld.Fails(t, testworld.Err(team.Approve(owner, code, team.Worker)), "no host with that code")
			stop()
		}).Join(ctx)), context.Canceled)
		testworld.Got(team.Approve(mallory, code, team.Owner))(t)
	})
	a.Confirm = func(string, string) (bool, error) { return false, nil } // as the owner has typed it in vain
	testworld.ErrorIs(t, testworld.Err(a.Join(t.Context())), team.ErrUnconfirmed)
	testworld.ErrorIs(t, testworld.Err(team.LoadSelf(victim)), team.ErrNone)
}

// Who passes on what both say, but for one key or number, is found before there is a code.
func TestJoinRelayed(t *testing.T) {
	t.Parallel()
	real := broker(t)
	owner, up := registered(t, real, "aa"), real()
	for what, swap := range map[string]func(subject string, v object){
		"the owner's key": func(_ string, v object) {
			if o, ok := v["offer"].(object); ok {
				o["owner_key"] = public(t)
			}
		},
		"the owner's number": func(_ string, v object) {
			if o, ok := v["offer"].(object); ok {
				o["nonce"] = make([]byte, 32)
			}
		},
		"the name": func(subject string, v object) {
			if subject == "netsky.join.hello" && v["name"] != nil {
				v["name"] = "build7"
			}
		},
		"the certificate": func(string, object) {},
	} {
		through := broker(t)
		relay := through()
		swapped := func(subject string, data []byte) []byte {
			var v object
			_ = json.Unmarshal(data, &v)
			swap(subject, v)
			data, _ = json.Marshal(v)
			return data
		}
		testworld.Got(relay.Subscribe("netsky.join.*", func(m *nats.Msg) {
			if said, err := up.Request(m.Subject, swapped(m.Subject, m.Data), time.Minute); err == nil {
				_ = m.Respond(swapped(m.Subject, said.Data))
			}
		}))(t)
		testworld.Must(t, relay.Flush())
		a := applicant(testworld.Home(t), through(), func(string) { t.Errorf("%s: a code was shown", what) })
		if what == "the certificate" {
			a.Server.Fingerprint = "bb"
		}
		testworld.Fails(t, testworld.Err(a.Join(t.Context())), "somebody may be between you and the owner's host", what)
	}
	testworld.Len(t, testworld.Got(team.Requests(owner))(t), 0)
	a := applicant(testworld.Home(t), real(), func(code string) { testworld.Got(team.Approve(owner, code, team.Worker))(t) })
	a.Server.Fingerprint = "aa"
	testworld.Equal(t, testworld.Got(a.Join(t.Context()))(t).Server.Fingerprint, "aa")
}

func TestJoinFlood(t *testing.T) {
	t.Parallel()
	connect := broker(t)
	owner, nc := registered(t, connect, ""), connect()
	offers, commit := 0, make([]byte, 32)
	for range 50 {
		rand.Read(commit)
		if _, ok := say(t, nc, "netsky.join.hello", object{"protocol": 1, "name": "b", "commit": commit})["offer"]; ok {
			offers++
		}
	}
	testworld.Equal(t, offers <= 20, true, "%d offers to whoever tries numbers", offers)
	testworld.Len(t, testworld.Got(team.Requests(owner))(t), 0)
}

// An old or a new netsky on the other side: who has to update is said.
func TestJoinProtocol(t *testing.T) {
	t.Parallel()
	connect := broker(t)
	owner, nc := registered(t, connect, ""), connect()
	testworld.Equal(t, say(t, nc, "netsky.join.hello", object{"protocol": 2, "hello": "world"})["protocol"], any(1.0))
	testworld.Len(t, testworld.Got(team.Requests(owner))(t), 0)
	for text, want := range map[string]string{`{"protocol":2,"offer":7}`: "protocol 2, and this netsky 1", `{"protocol":0}`: "protocol 0, and this netsky 1"} {
		connect := broker(t)
		there := connect()
		testworld.Got(there.Subscribe("netsky.join.hello", func(m *nats.Msg) { _ = m.Respond([]byte(text)) }))(t)
		testworld.Must(t, there.Flush())
		a := applicant(testworld.Home(t), connect(), nil)
		testworld.Fails(t, testworld.Err(a.Join(t.Context())), want)
	}
}

func FuzzRegistrar(f *testing.F) {
	f.Add("hello", []byte(`{"protocol":1,"name":"b","commit":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`))
	f.Add("reveal", []byte(`{"protocol":1,"commit":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","key":"U","nonce":"","signature":""}`))
	f.Add("wait", []byte(`{"protocol":1,"key":"../../../key","request":"x"}`))
	h := testworld.Home(f)
	testworld.Got(team.Found(h, "laptop", team.Server{}))(&testing.T{})
	g := team.NewRegistrar(h, func() string { return "" })
	f.Fuzz(func(t *testing.T, what string, data []byte) {
		g.Handle(&nats.Msg{Subject: team.JoinSubject + "." + what, Data: data, Reply: "x"})
		testworld.Len(t, testworld.Got(team.Requests(h))(t), 0)
	})
}
