package wire

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"netsky/link/team"
)

// ErrForged reports a message without a valid signature of the host that it names as its sender.
var ErrForged = errors.New("is not signed by the host that it names as its sender")

// A NewerError reports a message of a later protocol than this netsky speaks, with a valid
// signature. Its receiver keeps it until it has been updated.
type NewerError struct{ Protocol int }

func (e NewerError) Error() string {
	return fmt.Sprintf("is of protocol %d, and this netsky speaks %d: update this one", e.Protocol, Protocol)
}

// maxID is the longest id of a message, in bytes.
const maxID = 256

// Sign gives a message its id, by which the server and the receiver know a repetition, the
// protocol, and the signature of its sender over both, the subject and the body. No other
// header is signed.
func Sign(key team.Key, m *nats.Msg, id string) error {
	if id == "" || len(id) > maxID {
		return fmt.Errorf("the id of a message is %d bytes long; it must be 1 to %d", len(id), maxID)
	}
	signature, err := key.Sign(signed(m.Subject, id, Protocol, m.Data))
	if err != nil {
		return err
	}
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	m.Header.Set(nats.MsgIdHdr, id)
	m.Header.Set(ProtocolHeader, strconv.Itoa(Protocol))
	m.Header.Set(SignatureHeader, base64.RawStdEncoding.EncodeToString(signature))
	return nil
}

// Verify returns ErrForged unless a message was signed with the private key of a public one,
// and a NewerError if it was, but is of a later protocol. All protocols sign alike.
func Verify(public string, m *nats.Msg) error {
	id, protocol, signature := one(m, nats.MsgIdHdr), one(m, ProtocolHeader), one(m, SignatureHeader)
	number, err := strconv.ParseUint(protocol, 10, 16)
	raw, berr := base64.RawStdEncoding.Strict().DecodeString(signature)
	switch {
	case err != nil || berr != nil || id == "" || len(id) > maxID || strconv.FormatUint(number, 10) != protocol,
		!team.Signed(public, signed(m.Subject, id, int(number), m.Data), raw):
		return ErrForged
	case number > Protocol:
		return NewerError{int(number)}
	}
	return nil
}

// one returns the value of a header that is there once, "" otherwise.
func one(m *nats.Msg, name string) string {
	if list := m.Header[name]; len(list) == 1 && len(list[0]) <= maxID {
		return list[0]
	}
	return ""
}

// signed is what is signed of a message. Each part but the last has its length before it, so
// that no two messages have the same.
func signed(subject, id string, protocol int, body []byte) []byte {
	data := []byte("netsky link\x00")
	data = binary.BigEndian.AppendUint16(data, uint16(protocol))
	for _, part := range []string{subject, id} {
		data = binary.BigEndian.AppendUint32(data, uint32(len(part)))
		data = append(data, part...)
	}
	return append(data, body...)
}
