package server

import (
	"strings"

	"github.com/go-json-experiment/json"

	"netsky/link/team"
	"netsky/link/wire"
)

// The accounts beside one for each host, which has the host's name.
const (
	streamsAccount = "STREAMS" // keeps all streams
	joinAccount    = "JOIN"    // of hosts that have yet to join
)

// What follows is the server's configuration of who may do what, in its own terms.
type access struct {
	Accounts map[string]*account `json:"accounts"`
}

type account struct {
	Limits    *limits `json:"limits,omitzero"`
	JetStream string  `json:"jetstream,omitzero"` // "enabled"
	Users     []user  `json:"users"`
	Exports   []port  `json:"exports,omitzero"`
	Imports   []port  `json:"imports,omitzero"`
}

// limits bound what one host can do to the server.
type limits struct {
	Connections int `json:"max_connections"`
	Subs        int `json:"max_subscriptions"`
	Payload     int `json:"max_payload,omitzero"`
}

type user struct {
	Nkey        string       `json:"nkey,omitzero"`
	Kinds       []string     `json:"allowed_connection_types,omitzero"`
	User        string       `json:"user,omitzero"`
	Password    string       `json:"password,omitzero"`
	Permissions *permissions `json:"permissions,omitzero"`
}

type permissions struct {
	Publish   []string  `json:"publish"`
	Subscribe []string  `json:"subscribe"`
	Responses responses `json:"allow_responses"`
}

type responses struct {
	Max     int    `json:"max"`
	Expires string `json:"expires"`
}

// A port exports or imports a subject: a service has requests and replies, a stream is told.
type port struct {
	Service   any    `json:"service,omitzero"`
	Stream    any    `json:"stream,omitzero"`
	Response  string `json:"response_type,omitzero"`
	Threshold string `json:"response_threshold,omitzero"`
}

type source struct {
	Account string `json:"account"`
	Subject string `json:"subject"`
}

// Within these times whoever asked has to be answered: the server keeps in memory that they wait, some
// 800 bytes each, for up to twice as long. Whoever joins needs no key, and may ask any number of times, as may a
// host. Hosts ask for mail for 10 s each time.
const (
	answerWithin = "30s"
	joinWithin   = "10s"
	mailWithin   = "20s"
	takenWithin  = "2s"
)

// noJetStream is what an account without JetStream must import. Otherwise the server answers
// its requests beside those that are imported, with a refusal.
const noJetStream = "$JS.API.INFO"

// joinHash is the bcrypt hash of wire.JoinPassword. Without one the server warns of a secret in the open.
const joinHash = "$2a$04$J6tcPyu6uvP5xrm2LqduGuEQXMjhefz6UMJt/V4alzGpv7CuwBxCy"

// configure returns the configuration for a team. Each host has an account of its own, whose
// only way out is what it imports there: so the subject of a reply, which a host chooses
// freely, never leads to what is another's. The key admin is that of who provisions; only
// this process can use it.
func configure(t team.Team, admin string) ([]byte, error) {
	all := map[string]*account{
		streamsAccount: {
			JetStream: "enabled", Users: []user{{Nkey: admin, Kinds: []string{"IN_PROCESS"}}},
			Exports: []port{
				{Service: "$JS.API.CONSUMER.MSG.NEXT.*.*", Response: "stream", Threshold: mailWithin},
				{Service: "$JS.ACK.>", Threshold: takenWithin}, {Stream: wire.Told("*", ">")},
			},
		},
	}
	for _, subject := range []string{
		wire.MailSubject("*", "*"), wire.FileSubject("*", "*", "*", "*"), "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.PURGE.*",
		"$JS.API.CONSUMER.INFO.*.*", "$JS.API.DIRECT.GET.>", noJetStream, "$KV.>",
	} {
		all[streamsAccount].Exports = append(all[streamsAccount].Exports, port{Service: subject, Threshold: answerWithin})
	}
	for _, h := range t.Hosts {
		pub, sub := wire.Allowed(h.Name, h.Role == team.Owner, h.Name == t.Owner)
		a := &account{Limits: &limits{Connections: 16, Subs: 1000}, Users: []user{{Nkey: h.Key, Permissions: &permissions{pub, sub, responses{1, answerWithin}}}}}
		a.take(t, append(pub, noJetStream))
		a.give(sub)
		all[h.Name] = a
	}
	pub, sub := wire.AllowedJoining()
	a := &account{Limits: &limits{Connections: 64, Subs: 8, Payload: 16 << 10}, Users: []user{{User: wire.JoinUser, Password: joinHash, Permissions: &permissions{pub, sub, responses{1, answerWithin}}}}}
	a.take(t, pub)
	all[joinAccount] = a
	return json.Marshal(access{all})
}

// take imports what an account may publish to.
func (a *account) take(t team.Team, publish []string) {
	for _, subject := range publish {
		switch {
		case strings.HasPrefix(subject, wire.JoinSubject+"."):
			a.Imports = append(a.Imports, port{Service: source{t.Owner, subject}})
		case strings.HasPrefix(subject, "netsky.mail."): // to hosts of the team alone: the server keeps each subject in memory
			for _, h := range t.Hosts {
				a.Imports = append(a.Imports, port{Service: source{streamsAccount, strings.TrimSuffix(subject, "*") + h.Name}})
			}
		case strings.HasPrefix(subject, wire.DeedSubject("*", "")):
			from := strings.TrimPrefix(subject, wire.DeedSubject("*", ""))
			for _, h := range t.Hosts {
				if h.Name != from {
					a.Imports = append(a.Imports, port{Service: source{h.Name, wire.DeedSubject(h.Name, from)}})
				}
			}
		default:
			a.Imports = append(a.Imports, port{Service: source{streamsAccount, subject}})
		}
	}
}

// give makes an account hear what it may subscribe to.
func (a *account) give(subscribe []string) {
	for _, subject := range subscribe {
		switch {
		case strings.HasPrefix(subject, "_INBOX"):
		case strings.HasPrefix(subject, "netsky.told."):
			a.Imports = append(a.Imports, port{Stream: source{streamsAccount, subject}})
		case strings.HasPrefix(subject, wire.JoinSubject+"."):
			a.Exports = append(a.Exports, port{Service: subject, Threshold: joinWithin})
		default:
			a.Exports = append(a.Exports, port{Service: subject, Threshold: answerWithin})
		}
	}
}
