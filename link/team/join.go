package team

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"netsky/agent"
)

// A host joins by a commitment and a short code, as devices are paired: it commits itself to
// its key and a number (hello), hears the team and the owner's key and number (offer), and
// only then says its own (reveal). The code is made of all of that, by each side for itself.
// So neither side, nor anybody between them, can choose it: who swaps a key has one try in
// 100,000,000 that both sides show the same code.
const (
	JoinUser     = "join" // who has no key yet signs in as this, with JoinPassword, which is no secret
	JoinPassword = "join"
	JoinSubject  = "netsky.join" // and one more token
	JoinInbox    = "_INBOX_JOIN" // answers go to JoinInbox.RANDOM.>

	helloSubject  = JoinSubject + ".hello"
	revealSubject = JoinSubject + ".reveal"
	waitSubject   = JoinSubject + ".wait"
)

const (
	// JoinWithin is how long a request waits for the owner.
	JoinWithin = 10 * time.Minute
	nonceSize  = 32
	maxJoin    = 4 << 10 // bytes of what a host says to join
)

// JoinOptions are the options of a connection on which a host joins.
func JoinOptions(s Server) []nats.Option {
	list := []nats.Option{nats.CustomInboxPrefix(JoinInbox + "." + rand.Text())}
	if s.Creds == "" {
		list = append(list, nats.UserInfo(JoinUser, JoinPassword))
	}
	return list
}

// IsInbox reports whether an answer may be sent to a subject, which whoever asks has chosen: where
// clients take answers, or what netsky's server makes of that. At a server that keeps nobody apart
// this host may write what others may not, to remove a stream perhaps.
func IsInbox(reply string) bool {
	return strings.HasPrefix(reply, "_INBOX") || strings.HasPrefix(reply, "_R_.")
}

// A protocol is what all of them begin with.
type protocol struct {
	Protocol int `json:"protocol"`
}

// A hello is the first that a host says.
type hello struct {
	Protocol int    `json:"protocol"`
	Name     string `json:"name"`
	Commit   []byte `json:"commit"`
	// Pinned is whether the host reaches the server under a certificate that no authority
	// vouches for: it then is in the code.
	Pinned bool `json:"pinned,omitzero"`
}

// An offer is the answer.
type offer struct {
	Team     string `json:"team"`
	Owner    string `json:"owner"`
	OwnerKey string `json:"owner_key"`
	Nonce    []byte `json:"nonce"`
}

// A reveal is what the commitment was to.
type reveal struct {
	Protocol  int    `json:"protocol"`
	Commit    []byte `json:"commit"`
	Key       string `json:"key"`
	Nonce     []byte `json:"nonce"`
	Signature []byte `json:"signature"`
}

// A wait asks what became of a request.
type wait struct {
	Protocol int    `json:"protocol"`
	Key      string `json:"key"`
	Request  string `json:"request"` // "": of a host that was in the team
}

// An answer is what the owner's host says to each.
type answer struct {
	Protocol int    `json:"protocol"`
	Refused  string `json:"refused,omitzero"`
	Offer    offer  `json:"offer,omitzero"`
	State    State  `json:"state,omitzero"`
	Document []byte `json:"document,omitzero"` // once approved: the team document, signed
}

// A transcript is all that both sides have said, and the certificate of the server.
type transcript struct {
	offer
	Key, Name, Fingerprint string
	NonceW                 []byte // of the host that joins
}

// hash is of a list of texts, none of which can pass for two.
func hash(about string, parts ...string) []byte {
	data, _ := json.Marshal(append([]string{"netsky join 1 " + about}, parts...)) // strings of valid UTF-8
	sum := sha256.Sum256(data)
	return sum[:]
}

func commitment(nonce []byte, key, name, fingerprint string) []byte {
	return hash("commit", hex.EncodeToString(nonce), key, name, fingerprint)
}

func (t transcript) sum() []byte {
	return hash("all", t.Team, t.Owner, t.OwnerKey, t.Key, t.Name, hex.EncodeToString(t.Nonce), hex.EncodeToString(t.NonceW), t.Fingerprint)
}

// id names the request.
func (t transcript) id() string { return hex.EncodeToString(t.sum()) }

// code is what people compare: 1234-5678.
func (t transcript) code() string {
	n := binary.BigEndian.Uint64(t.sum()) % 1e8
	return fmt.Sprintf("%04d-%04d", n/1e4, n%1e4)
}

// proof is what a host signs to show that the key is its own.
func (t transcript) proof() []byte { return []byte("netsky join 1\n" + t.id()) }

// ParseCode returns a code as it is shown: 1234-5678.
func ParseCode(s string) (string, error) {
	digits := strings.NewReplacer("-", "", " ", "").Replace(s)
	if len(digits) != 8 || strings.Trim(digits, "0123456789") != "" {
		return "", fmt.Errorf("code %.20q: must be eight digits, such as 1234-5678", s)
	}
	return digits[:4] + "-" + digits[4:], nil
}

func newNonce() []byte {
	nonce := make([]byte, nonceSize)
	rand.Read(nonce)
	return nonce
}

func (o offer) check() error {
	switch {
	case !isTeam(o.Team):
		return fmt.Errorf("team %.40q", o.Team)
	case !agent.IsHost(o.Owner):
		return fmt.Errorf("owner %.40q", o.Owner)
	case !isKey(o.OwnerKey):
		return fmt.Errorf("owner's key %.60q", o.OwnerKey)
	case len(o.Nonce) != nonceSize:
		return fmt.Errorf("a nonce of %d bytes", len(o.Nonce))
	}
	return nil
}

// opens reports whether the reveal is what was committed to, by who has the key.
func (r reveal) opens(t transcript) bool {
	if len(r.Nonce) != nonceSize || !isKey(r.Key) {
		return false
	}
	commit := commitment(r.Nonce, r.Key, t.Name, t.Fingerprint)
	return subtle.ConstantTimeCompare(commit, r.Commit) == 1 && Signed(r.Key, t.proof(), r.Signature)
}

// readJoin reads what was said, of whatever version. What it holds is not checked.
func readJoin[T any](data []byte, limit int) (v T, err error) {
	if len(data) > limit {
		return v, fmt.Errorf("%d bytes: larger than %d", len(data), limit)
	}
	return v, json.Unmarshal(data, &v)
}

// plain is a text of another host in one line.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return string([]rune(s)[:min(300, len([]rune(s)))])
}
