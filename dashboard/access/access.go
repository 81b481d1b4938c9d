// Package access decides which requests the dashboard answers, and serves the listener
// on which they arrive.
//
// A Guard is the handler around all others. It answers /healthz and the requests that
// sign a browser in or out itself; every other request it passes on or refuses. Listen
// and Serve run it; Token keeps the secret that a script must present, Link makes the
// links by which browsers sign in, and Browsers, SignOut and Rotate manage the browsers
// that are signed in.
//
// # What it promises
//
// Every request is refused unless its Host is one of ours, no other user's process has
// sent it as far as the kernel reports, and it carries the token as a bearer or the
// cookie of a browser that is signed in; only /healthz needs neither and reveals
// nothing. What another site's page could cause is refused by Origin and
// Sec-Fetch-Site.
//
// A browser signs in with a code that is valid once, for minutes, and gets an id, a
// cookie, and a key: HMAC(token, id, address). The cookie is made with a secret of this
// Guard, so the next one does not accept it; it permits reading only, as cookies go to
// every server of the same host. A stream, a socket and a write also need the tab's
// pass, which POST /session gives: the tab sends its id and a nonce; the Guard proves
// by HMAC(key, nonce, challenge) that it knows the key; only then the tab proves the
// same, and gets a new cookie and its pass. The answers to the tab are proved in the
// same way, and the script shows no other. So a program that listens in place of a dead
// server receives nothing it can use, and an open tab continues with the next server at
// that address. A browser that signs in by the form has no key: it may write only if
// the kernel reports whose connection it is.
//
// Strangers can't keep the owner out: if there are too many connections, the oldest one
// that has not shown the token is closed, and some places are reserved for those that
// have.
//
// # What a crash leaves
//
// Two files, each written whole or not at all: the token, and state/dashboard.json (who
// is signed in and the last port; no secret). Browsers sign in again or prove
// themselves to the next Guard.
package access

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"netsky/home"
)

// Options configure a Guard. Home, Token, Log and Now are required.
type Options struct {
	Home  home.Dir
	Token string // from Token

	// Hosts are names, without port, that a browser may use in addition to those of the
	// loopback.
	Hosts []string
	// TLS, if set, encrypts the listener: Certificate makes it. Wide is the owner's
	// permission to serve an address other than the loopback without TLS.
	TLS  *tls.Config
	Wide bool

	// Peer reports which user's process has the other end of a connection within this
	// machine, if ok. If nil, the kernel is asked.
	Peer func(remote, local netip.AddrPort) (uid int, ok bool, err error)

	MaxConns int // simultaneous connections, a quarter of them reserved for those that have shown the token; 0 is 256
	Log      *slog.Logger
	Now      func() time.Time
}

const defaultConns = 256

// A Guard passes on the requests that may be answered.
type Guard struct {
	o       Options
	secrets *secrets
	state   *state
	next    http.Handler

	loopback bool // only this machine can reach it; set before it is served
}

// New returns a Guard in front of next.
func New(o Options, next http.Handler) (*Guard, error) {
	if o.Home.Root() == "" {
		return nil, errors.New("dashboard: Options.Home must be set")
	}
	if len(o.Token) < minToken {
		return nil, fmt.Errorf("dashboard: Options.Token must have at least %d characters", minToken)
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultConns
	}
	if o.Peer == nil {
		o.Peer = peerUser
	}
	g := &Guard{o: o, secrets: newSecrets(o), state: loadState(o.Home, o.Now, o.Token)}
	g.next = g.routes(next)
	return g, nil
}
