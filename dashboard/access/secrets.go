package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	codeLife      = 5 * time.Minute // of a link
	maxCodes      = 32              // the oldest gives way
	challengeLife = 30 * time.Second

	logEvery = 10 * time.Second // how often wrong secrets are logged
	maxWrong = 30               // wrong secrets in a minute that are told that they are wrong
)

// secrets knows the secrets, and who has them.
//
// The token is the home's. A browser's key is made of the token, the browser's
// id and the address; what it is known by to this server (its cookie, and what its
// tabs show) is made of start, which dies with the server.
type secrets struct {
	start  [32]byte
	cookie string // its name
	now    func() time.Time

	mu    sync.Mutex // guards what follows
	token string
	codes []code // oldest first

	wrong      int // secrets, since wrongSince
	wrongSince time.Time
	unsaid     int // of them, not in the log
	said       time.Time
}

type code struct {
	sum [32]byte
	end time.Time
}

func newSecrets(o Options) *secrets {
	home := sha256.Sum256([]byte(o.Home.Root()))
	s := &secrets{token: o.Token, now: o.Now, cookie: "netsky-" + hex.EncodeToString(home[:4])}
	if o.TLS != nil {
		s.cookie = "__Host-" + s.cookie // no other host, and nobody without TLS, can set it
	}
	rand.Read(s.start[:]) // never fails: crypto/rand ends the program instead
	return s
}

func (s *secrets) isToken(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return same(text, s.token)
}

// key is what a browser and this home share at one address. A server at another
// has other keys: nobody between can carry one's answers to the other.
func (s *secrets) key(id string, r *http.Request) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return mac([]byte(s.token), "netsky browser", id, place(r))
}

// place is where the request came in.
func place(r *http.Request) string {
	switch tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); {
	case !ok:
		return ""
	case tcp.IP.IsLoopback():
		return tcp.String()
	default:
		return strconv.Itoa(tcp.Port)
	}
}

// mac is an HMAC of words of which none holds the end of a line.
func mac(key []byte, words ...string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(strings.Join(words, "\n")))
	return m.Sum(nil)
}

// pass is "ID.MAC": what the browser with that id is known by to this server, in
// a cookie or in a tab.
func (s *secrets) pass(kind, id string) string {
	return id + "." + hex.EncodeToString(mac(s.start[:], kind, id))
}

// passed is the id in a pass that this server has given out.
func (s *secrets) passed(kind, pass string) (id string, ok bool) {
	id, _, found := strings.Cut(pass, ".")
	return id, found && isID(id) && same(pass, s.pass(kind, id))
}

func newID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

func isID(text string) bool { return len(text) == 16 && isHex(text) }

func isHex(text string) bool { return text != "" && strings.Trim(text, "0123456789abcdef") == "" }

// newCode is the code of a link. It is good for one browser, for codeLife.
func (s *secrets) newCode() (text string, end time.Time) {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	text = hex.EncodeToString(b[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.codes) == maxCodes {
		s.codes = s.codes[1:]
	}
	end = s.now().Add(codeLife)
	s.codes = append(s.codes, code{sha256.Sum256([]byte(text)), end})
	return text, end
}

// useCode reports whether the code was good, which it is not any more.
func (s *secrets) useCode(text string) (good bool) {
	sum := sha256.Sum256([]byte(text))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.codes {
		if hmac.Equal(c.sum[:], sum[:]) {
			s.codes = append(s.codes[:i:i], s.codes[i+1:]...)
			return s.now().Before(c.end)
		}
	}
	return false
}

// renew replaces the token; no link is good any more.
func (s *secrets) renew(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.codes = token, nil
}

// challenge is what a tab has to answer; nobody has to remember it.
func (s *secrets) challenge(id, nonce string) string {
	now := strconv.FormatInt(s.now().UnixMilli(), 10)
	return now + "." + hex.EncodeToString(mac(s.start[:], "challenge", id, nonce, now))
}

func (s *secrets) challenged(id, nonce, text string) bool {
	at, _, _ := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !same(text, at+"."+hex.EncodeToString(mac(s.start[:], "challenge", id, nonce, at))) {
		return false
	}
	age := s.now().Sub(time.UnixMilli(ms))
	return age >= -time.Second && age < challengeLife
}

// count counts a wrong secret. log is how many there were since the log said so
// last, 0 if it is not to say it again yet; over is that they are too many.
func (s *secrets) count() (log int, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.wrongSince) >= time.Minute {
		s.wrong, s.wrongSince = 0, now
	}
	s.wrong++
	s.unsaid++
	if now.Sub(s.said) >= logEvery {
		log, s.unsaid, s.said = s.unsaid, 0, now
	}
	return log, s.wrong > maxWrong
}
