package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"netsky/home"
)

const (
	codeLife      = 5 * time.Minute // of a link
	maxCodes      = 32              // the oldest is dropped
	challengeLife = 30 * time.Second

	logEvery = 10 * time.Second // the least time between two log entries about wrong secrets
	maxWrong = 30               // wrong secrets a minute; more are answered 429
)

// secrets makes and checks all secrets.
//
// The token is the home's. A browser's key is derived from the token, the browser's id
// and the address; its cookie and its tabs' passes are derived from start, which ends
// with the server.
type secrets struct {
	start  [32]byte
	cookie string // its name
	now    func() time.Time

	mu    sync.Mutex // guards the fields below
	token string
	codes []code // oldest first

	wrong      int // since wrongSince
	wrongSince time.Time
	unlogged   int // of them
	logged     time.Time
}

type code struct {
	sum [32]byte
	end time.Time
}

func newSecrets(o Options) *secrets {
	home := sha256.Sum256([]byte(o.Home.Root()))
	s := &secrets{token: o.Token, now: o.Now, cookie: "netsky-" + hex.EncodeToString(home[:4])}
	if o.TLS != nil {
		s.cookie = "__Host-" + s.cookie // no other host, and no site without TLS, can set it
	}
	rand.Read(s.start[:]) // never fails: crypto/rand ends the program instead
	return s
}

func (s *secrets) isToken(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return same(text, s.token)
}

// key is the secret that a browser and this home share at one address. It differs
// between addresses, so that the answers of one server can't be relayed to another.
func (s *secrets) key(id string, r *http.Request) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return mac([]byte(s.token), "netsky browser", id, place(r))
}

// place returns the address at which the request arrived.
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

// mac returns the HMAC of words, none of which contains a line feed.
func mac(key []byte, words ...string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(strings.Join(words, "\n")))
	return m.Sum(nil)
}

// pass returns "ID.MAC", by which this server recognises the browser: as a cookie or as
// a tab's pass.
func (s *secrets) pass(kind, id string) string {
	return id + "." + hex.EncodeToString(mac(s.start[:], kind, id))
}

// passed returns the id in a pass, and whether this server has issued it.
func (s *secrets) passed(kind, pass string) (id string, ok bool) {
	id, _, found := strings.Cut(pass, ".")
	return id, found && isID(id) && same(pass, s.pass(kind, id))
}

// random returns n random bytes in hex.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b)
}

func isID(text string) bool { return len(text) == 16 && isHex(text) }

func isHex(text string) bool { return text != "" && strings.Trim(text, "0123456789abcdef") == "" }

// newCode returns the code of a link. It is valid for one browser, for codeLife.
func (s *secrets) newCode() (text string, end time.Time) {
	text = random(16)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.codes) == maxCodes {
		s.codes = s.codes[1:]
	}
	end = s.now().Add(codeLife)
	s.codes = append(s.codes, code{sha256.Sum256([]byte(text)), end})
	return text, end
}

// useCode reports whether the code was valid, and invalidates it.
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

// renew replaces the token, and invalidates all links.
func (s *secrets) renew(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.codes = token, nil
}

// challenge returns the challenge for a tab. It needs no stored state.
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

// count counts a wrong secret. log is how many there were since the last log entry, 0
// if it is too early for another; over reports whether there are too many.
func (s *secrets) count() (log int, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.wrongSince) >= time.Minute {
		s.wrong, s.wrongSince = 0, now
	}
	s.wrong++
	s.unlogged++
	if now.Sub(s.logged) >= logEvery {
		log, s.unlogged, s.logged = s.unlogged, 0, now
	}
	return log, s.wrong > maxWrong
}

const (
	tokenFile  = home.RunDir + "/token"
	tokenBytes = 32
	minToken   = 32 // characters
)

// Token returns the home's token, from the file run/token, which only its user can
// read. If the file is missing or too short, or others could have read it, Token makes
// a new one.
func Token(home home.Dir) (string, error) {
	data, err := home.ReadFile(tokenFile, 4096)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("dashboard: %w", err)
	}
	if t := strings.TrimSpace(string(data)); len(t) >= minToken && private(home.Path(tokenFile)) {
		return t, nil
	}
	t := random(tokenBytes)
	if err := home.WriteFile(tokenFile, []byte(t+"\n"), false); err != nil {
		return "", fmt.Errorf("dashboard: %w", err)
	}
	return t, nil
}

func private(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Perm()&0o077 == 0
}

// newToken replaces the home's token.
func newToken(home home.Dir) (string, error) {
	if err := home.Remove(tokenFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("dashboard: %w", err)
	}
	return Token(home)
}

// same compares two secrets in constant time, whatever their lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return hmac.Equal(x[:], y[:])
}
