package wire

import (
	"encoding/base64"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"

	"netsky/link/team"
)

// SignAs signs a message as a netsky of another protocol does.
func SignAs(t *testing.T, key team.Key, m *nats.Msg, protocol int) *nats.Msg {
	t.Helper()
	signature, err := key.Sign(signed(m.Subject, m.Header.Get(nats.MsgIdHdr), protocol, m.Data))
	if err != nil {
		t.Fatal(err)
	}
	m.Header.Set(ProtocolHeader, strconv.Itoa(protocol))
	m.Header.Set(SignatureHeader, base64.RawStdEncoding.EncodeToString(signature))
	return m
}
