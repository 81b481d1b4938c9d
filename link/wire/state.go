package wire

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/link/team"
)

// PutState replaces the value of one of a host's keys in the bucket Hosts, signed by the
// host. The id is another each time.
func PutState(ctx context.Context, js jetstream.JetStream, key team.Key, name, id string, value []byte) error {
	m := &nats.Msg{Subject: keySubject(Hosts, name), Data: value}
	if err := Sign(key, m, id); err != nil {
		return err
	}
	_, err := js.PublishMsg(ctx, m)
	return err
}

// States returns the stream of the bucket Hosts.
func States(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
	return js.Stream(ctx, "KV_"+Hosts)
}

// GetState returns the value of a host's key, to be given to VerifyState. The error matches
// [jetstream.ErrMsgNotFound] if there is none.
func GetState(ctx context.Context, states jetstream.Stream, name string) (*nats.Msg, error) {
	raw, err := states.GetLastMsgForSubject(ctx, keySubject(Hosts, name))
	if err != nil {
		return nil, err
	}
	return &nats.Msg{Subject: Told(Hosts, name), Header: raw.Header, Data: raw.Data}, nil
}

// StateOf returns the host and the key that a message of GetState, or one published below
// Told, is about.
func StateOf(m *nats.Msg) (host, name string) {
	name = strings.TrimPrefix(m.Subject, Told(Hosts, ""))
	host, _, _ = strings.Cut(name, ".")
	return host, name
}

// VerifyState is Verify for such a message.
func VerifyState(public string, m *nats.Msg) error {
	_, name := StateOf(m)
	return Verify(public, &nats.Msg{Subject: keySubject(Hosts, name), Header: m.Header, Data: m.Data})
}
