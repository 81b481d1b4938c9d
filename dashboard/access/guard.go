package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"
)

// The paths that a Guard answers itself, and those of the streams, which need a tab's
// pass.
const (
	healthPath  = "/healthz"
	loginPath   = "/login"
	sessionPath = "/session"
	signOutPath = "/sign-out"

	EventsPath = "/events"
	SocketPath = "/ws"
)

const (
	maxBody    = 64 << 10 // of a request's body
	cookieDays = browserDays

	passHeader  = "Netsky-Tab"   // the tab's pass
	nonceHeader = "Netsky-Nonce" // of the tab, to which the answer must be bound
	proofHeader = "Netsky-Proof" // that it is

	passProtocol  = "netsky-tab." // a browser's websocket can send these two only as names of protocols
	nonceProtocol = "netsky-nonce."
)

// policy lets a page load only what this server serves, and forbids inline scripts and
// styles. connect-src 'self' is for the events and the API, form-action 'self' for a
// list's filters.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP passes a request on if it may be answered. Cheap checks come first, and a
// stranger learns only what is missing.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	switch {
	case !g.knownHost(r):
		Refuse(w, r, http.StatusForbidden, "unknown host "+Quote(r.Host)+": open the address that `netsky dashboard` prints")
	case foreign(r):
		Refuse(w, r, http.StatusForbidden, "the request comes from another site")
	case r.URL.Path == healthPath:
		g.prove(w, r)
	default:
		g.admit(w, r)
	}
}

// admit passes a request on if its credentials suffice for it.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request) {
	if why := peerOf(r).stranger(); why != "" {
		g.wrong(r, "another user")
		Refuse(w, r, http.StatusForbidden, why)
		return
	}
	if isOpen(r.URL.Path) {
		g.next.ServeHTTP(w, r)
		return
	}
	by, id := g.shown(r)
	if by == nothing {
		g.refuseLogin(w, r)
		return
	}
	if by == byCookie {
		b, _ := g.state.find(id)
		switch {
		case needsOrigin(r) && r.Header.Get("Origin") == "":
			Refuse(w, r, http.StatusForbidden, "the request has no Origin header")
			return
		case !needsPass(r):
		case b.Plain && !g.trusts(r):
			Refuse(w, r, http.StatusForbidden, "this browser signed in without JavaScript and is read-only: this system does not report which user a connection belongs to")
			return
		case !b.Plain && g.tab(r) == "":
			Refuse(w, r, http.StatusForbidden, "this tab is read-only: it does not have the key of a signed-in tab; run `netsky dashboard` in a terminal for a link that signs it in")
			return
		}
	}
	if isStream(r) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer g.state.hold(id, cancel)()
		r = r.WithContext(ctx)
		// It may have been signed out before it was held.
		if _, still := g.state.find(id); by == byCookie && !still {
			g.refuseLogin(w, r)
			return
		}
	}
	vouch(r)
	g.prove(w, r)
}

// isOpen reports whether a path needs no credentials.
func isOpen(path string) bool {
	switch path {
	case loginPath, sessionPath, StaticPath + SessionScript, StaticPath + Icon, StaticPath + PlainStyle:
		return true
	}
	return false
}

func (g *Guard) refuseLogin(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="netsky"`)
	status := http.StatusUnauthorized
	if _, given := r.Header["Authorization"]; given {
		status = g.unauthorized(w, r, "token")
	}
	Refuse(w, r, status, notSignedIn)
}

// unauthorized counts a wrong secret, and returns the status of the answer.
func (g *Guard) unauthorized(w http.ResponseWriter, r *http.Request, what string) int {
	if !g.wrong(r, what) {
		return http.StatusUnauthorized
	}
	w.Header().Set("Retry-After", "60")
	return http.StatusTooManyRequests
}

const notSignedIn = "you are not signed in here; `netsky dashboard` prints a link that signs you in"

// wrong counts and logs a wrong secret or a refused user, and reports whether there
// were too many.
func (g *Guard) wrong(r *http.Request, what string) (over bool) {
	n, over := g.secrets.count()
	if n > 0 {
		args := []any{"wrong", what, "times", n, "from", r.RemoteAddr, "path", r.URL.Path}
		if p := peerOf(r); p.known && p.err == nil {
			args = append(args, "uid", p.uid)
		}
		g.o.Log.Warn("refused", args...)
	}
	return over
}

// trusts reports whether the cookie alone suffices for a write: the kernel reports that
// the owner has sent the request, or the owner has opened the dashboard to others by a
// certificate or by `wide`.
func (g *Guard) trusts(r *http.Request) bool { return peerOf(r).known || r.TLS != nil || g.o.Wide }

func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY") // for browsers that don't know frame-ancestors
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store") // assets that may be cached set their own value
}

// knownHost refuses a foreign name that points at this address: to the browser its
// pages would have the same origin as ours. Any port is accepted, as ssh -L maps it to
// another.
func (g *Guard) knownHost(r *http.Request) bool {
	name, ok := hostName(r.Host)
	if !ok {
		return false
	}
	switch name {
	case "localhost", "127.0.0.1", "[::1]":
		return true
	}
	if slices.ContainsFunc(g.o.Hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return true
	}
	return isLocal(r, name) || g.certified(name)
}

// isLocal reports whether the name is the address that was called itself. An address
// can't be made to point elsewhere.
func isLocal(r *http.Request, name string) bool {
	tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	host, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && host == addr
}

// hostName returns a Host header without its port, and whether it is well formed.
func hostName(host string) (string, bool) {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
		if port == "" || strings.Trim(port, "0123456789") != "" {
			return "", false
		}
	}
	return strings.ToLower(name), name != ""
}

// foreign reports whether the browser says that another site caused the request. A link
// followed from elsewhere is allowed; nothing else is, not even from another port of
// this machine, which is "same-site".
func foreign(r *http.Request) bool {
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		if len(origins) > 1 || !strings.EqualFold(origins[0], scheme(r)+"://"+r.Host) {
			return true
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	followed := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
	return !followed || isStream(r)
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

func isStream(r *http.Request) bool {
	return r.URL.Path == EventsPath || r.URL.Path == SocketPath
}

// needsOrigin reports whether every browser would send Origin with the request.
func needsOrigin(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.URL.Path == SocketPath
}

// needsPass reports whether a cookie does not suffice for the request. Cookies ignore
// ports: the browser sends ours to every server on this machine.
func needsPass(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.URL.Path != signOutPath || isStream(r)
}

// proof is the kind of credentials in a request.
type proof int

const (
	nothing proof = iota
	byCookie
	byBearer
)

// shown returns the credentials of a request, and the id of the browser to which the
// cookie, or the pass of a tab that signs out, belongs.
func (g *Guard) shown(r *http.Request) (by proof, id string) {
	if given, ok := r.Header["Authorization"]; ok {
		token, bearer := strings.CutPrefix(strings.Join(given, ","), "Bearer ")
		if bearer && g.secrets.isToken(token) {
			return byBearer, ""
		}
		return nothing, ""
	}
	for _, c := range r.CookiesNamed(g.secrets.cookie) {
		if id, ok := g.secrets.passed("cookie", c.Value); ok {
			if _, ok := g.state.find(id); ok {
				return byCookie, id
			}
		}
	}
	if r.URL.Path == signOutPath { // the cookie may be from an earlier server, and the tab has proved itself to this one
		if id := g.tab(r); id != "" {
			return byCookie, id
		}
	}
	return nothing, ""
}

// tab returns the id of the browser that sent the request if the tab has proved to this
// server that it has the browser's key, else "".
func (g *Guard) tab(r *http.Request) string {
	pass := r.Header.Get(passHeader)
	if pass == "" && r.URL.Path == SocketPath {
		pass = protocol(r, passProtocol)
	}
	id, ok := g.secrets.passed("tab", pass)
	if !ok {
		return ""
	}
	if _, ok := g.state.find(id); !ok {
		return ""
	}
	return id
}

// protocol returns what follows the prefix in one of the protocols that a websocket
// request offers.
func protocol(r *http.Request, prefix string) string {
	for _, p := range websocket.Subprotocols(r) {
		if v, ok := strings.CutPrefix(p, prefix); ok {
			return v
		}
	}
	return ""
}

type proofKey struct{}

// Proof returns the proof for a tab that this Guard has answered a stream, or "" if the
// tab does not ask for it. A socket sends it as its first message.
func Proof(r *http.Request) string {
	proof, _ := r.Context().Value(proofKey{}).(string)
	return proof
}

// prove adds a proof to the answer that it is this server's, if the tab asks for one:
// another program may have this port by now. A stream has the proof in its header, a
// websocket in its first message.
func (g *Guard) prove(w http.ResponseWriter, r *http.Request) {
	nonce := r.Header.Get(nonceHeader)
	if nonce == "" && r.URL.Path == SocketPath {
		nonce = protocol(r, nonceProtocol)
	}
	id := ""
	if isHex(nonce) && len(nonce) <= 64 {
		id = g.tab(r)
	}
	switch {
	case id == "":
		g.next.ServeHTTP(w, r)
	case isStream(r):
		proof := hex.EncodeToString(mac(g.secrets.key(id, r), "stream", nonce))
		w.Header().Set(proofHeader, proof)
		g.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), proofKey{}, proof)))
	default:
		whole := &wholeAnswer{ResponseWriter: w, status: http.StatusOK}
		g.next.ServeHTTP(whole, r)
		if whole.status == http.StatusSeeOther { // a script can't read a redirect's proof
			whole.status = http.StatusNoContent
			w.Header().Del("Location")
		}
		sum := sha256.Sum256(whole.body.Bytes())
		w.Header().Set(proofHeader, hex.EncodeToString(mac(g.secrets.key(id, r), "answer", nonce, strconv.Itoa(whole.status), hex.EncodeToString(sum[:]))))
		w.WriteHeader(whole.status)
		w.Write(whole.body.Bytes())
	}
}

// A wholeAnswer buffers an answer.
type wholeAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (a *wholeAnswer) WriteHeader(status int)      { a.status = status }
func (a *wholeAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }
