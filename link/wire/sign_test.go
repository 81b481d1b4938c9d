package wire_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"netsky/internal/testworld"
	"netsky/link/team"
	"netsky/link/wire"
)

func signed(t *testing.T, key team.Key) *nats.Msg {
	m := nats.NewMsg(wire.MailSubject("build1", "laptop"))
	m.Data = []byte("hello")
	testworld.Must(t, wire.Sign(key, m, "build1/laptop/1"))
	return m
}

func TestSign(t *testing.T) {
	key, other := testworld.Got(team.MakeKey(testworld.Home(t)))(t), testworld.Got(team.MakeKey(testworld.Home(t)))(t)
	testworld.Must(t, wire.Verify(key.Public(), signed(t, key)))
	for name, change := range map[string]func(m *nats.Msg){
		"another recipient":   func(m *nats.Msg) { m.Subject = wire.MailSubject("build1", "build2") },
		"another sender":      func(m *nats.Msg) { m.Subject = wire.MailSubject("build2", "laptop") },
		"another text":        func(m *nats.Msg) { m.Data = []byte("hellO") },
		"another id":          func(m *nats.Msg) { m.Header.Set(nats.MsgIdHdr, "build1/laptop/2") },
		"a later protocol":    func(m *nats.Msg) { m.Header.Set(wire.ProtocolHeader, "2") },
		"no protocol":         func(m *nats.Msg) { m.Header.Del(wire.ProtocolHeader) },
		"a protocol anew":     func(m *nats.Msg) { m.Header.Set(wire.ProtocolHeader, "01") },
		"no id":               func(m *nats.Msg) { m.Header.Del(nats.MsgIdHdr) },
		"two ids":             func(m *nats.Msg) { m.Header.Add(nats.MsgIdHdr, "build1/laptop/1") },
		"no signature":        func(m *nats.Msg) { m.Header.Del(wire.SignatureHeader) },
		"part of a signature": func(m *nats.Msg) { m.Header.Set(wire.SignatureHeader, m.Header.Get(wire.SignatureHeader)[:40]) },
		"no header":           func(m *nats.Msg) { m.Header = nil },
		"text moved to id":    func(m *nats.Msg) { m.Header.Set(nats.MsgIdHdr, "build1/laptop/1h"); m.Data = []byte("ello") },
		"another key":         func(m *nats.Msg) { testworld.Must(t, wire.Sign(other, m, "build1/laptop/1")) },
	} {
		m := signed(t, key)
		change(m)
		testworld.ErrorIs(t, wire.Verify(key.Public(), m), wire.ErrForged, "%s", name)
	}
	testworld.ErrorIs(t, wire.Verify("", signed(t, key)), wire.ErrForged, "no key")
}

// A message of a later netsky is told apart from a forged one, so that it can be kept.
func TestNewer(t *testing.T) {
	key := testworld.Got(team.MakeKey(testworld.Home(t)))(t)
	m := wire.SignAs(t, key, signed(t, key), 2)
	var newer wire.NewerError
	if err := wire.Verify(key.Public(), m); !errors.As(err, &newer) || newer.Protocol != 2 {
		t.Errorf("Verify: %v", err)
	}
	m.Data = append(m.Data, '!')
	testworld.ErrorIs(t, wire.Verify(key.Public(), m), wire.ErrForged, "a forged one of a later protocol")
}
