package access

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"

	"netsky/dashboard/web"
)

// The paths that a Guard answers itself, and those of the streams, which need a
// tab's pass.
const (
	healthPath  = "/healthz"
	loginPath   = "/login"
	sessionPath = "/session"
	signOutPath = "/sign-out"

	EventsPath = "/events"
	SocketPath = "/ws"
)

const (
	maxBody    = 64 << 10 // bytes of a request's body
	cookieDays = browserDays

	passHeader  = "Netsky-Tab"   // by what this server knows the tab
	nonceHeader = "Netsky-Nonce" // what the tab wants the answer to be bound to
	proofHeader = "Netsky-Proof" // that the answer is

	passProtocol  = "netsky-tab." // a browser's socket can send these two only as names of protocols
	nonceProtocol = "netsky-nonce."
)

// policy lets a page load what this server serves and nothing else, and run no
// script and no style that stands in a page. connect-src 'self' is the events
// and the API; form-action 'self' is a list's filters.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// check lets a request through that has the right to an answer. It asks the
// cheap questions first and tells a stranger nothing but what is missing.
func (g *Guard) check(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		switch {
		case !g.knownHost(r):
			web.Refuse(w, r, http.StatusForbidden, "unknown host "+web.Quote(r.Host)+": open the address that `netsky dashboard` prints")
		case foreign(r):
			web.Refuse(w, r, http.StatusForbidden, "the request comes from another site")
		case r.URL.Path == healthPath:
			g.prove(w, r, next)
		default:
			g.admit(w, r, next)
		}
	})
}

// admit lets a request through that has shown enough for what it asks.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if why := peerOf(r).stranger(); why != "" {
		g.wrong(r, "another user")
		web.Refuse(w, r, http.StatusForbidden, why)
		return
	}
	if isOpen(r.URL.Path) {
		next.ServeHTTP(w, r)
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
			web.Refuse(w, r, http.StatusForbidden, "the request has no Origin header")
			return
		case !needsPass(r):
		case b.Plain && !g.trusts(r):
			web.Refuse(w, r, http.StatusForbidden, "this browser signed in without JavaScript and is read-only: this system does not report whose connection it is")
			return
		case !b.Plain && g.tab(r) == "":
			web.Refuse(w, r, http.StatusForbidden, "this tab is read-only: it does not have the key of a signed-in tab; run `netsky dashboard` in a terminal for a link that signs it in")
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
	g.prove(w, r, next)
}

// isOpen reports whether a path is there for who has shown nothing yet.
func isOpen(path string) bool {
	switch path {
	case loginPath, sessionPath, web.StaticPath + web.SessionScript, web.StaticPath + web.Icon, web.StaticPath + web.PlainStyle:
		return true
	}
	return false
}

func (g *Guard) refuseLogin(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="netsky"`)
	status := http.StatusUnauthorized
	if _, given := r.Header["Authorization"]; given && g.wrong(r, "token") {
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", "60")
	}
	web.Refuse(w, r, status, notSignedIn)
}

const notSignedIn = "you are not signed in here; `netsky dashboard` prints a link that signs you in"

// wrong counts and logs a secret that is none, or a caller who has no business
// here, and reports whether there were too many.
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

// trusts reports whether the cookie alone is enough to act on a request: the
// kernel says that the owner has sent it, or the owner has opened the dashboard
// to others by a certificate or a word of theirs.
func (g *Guard) trusts(r *http.Request) bool { return peerOf(r).known || r.TLS != nil || g.o.Wide }

func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY") // for browsers that don't know frame-ancestors
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store") // a file of ours that may be kept says so itself
}

// knownHost holds off a foreign name that has been pointed at this address: to
// the browser its pages would be of the same origin as ours. The port may be
// any, as ssh -L gives us another.
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

// isLocal reports whether the name is the very address that was called. A name
// that is an address can't be pointed elsewhere.
func isLocal(r *http.Request, name string) bool {
	tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	host, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && host == addr
}

// hostName splits a port off a Host header and says whether it is well formed.
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

// foreign reports whether the browser says that another site caused the
// request. A link that is followed to us from elsewhere is all right; nothing
// else is, not even from another port of this machine, which is "same-site".
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

// needsOrigin reports whether every browser would send Origin with it.
func needsOrigin(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.URL.Path == SocketPath
}

// needsPass reports whether a cookie is too little for it. Cookies know no ports:
// every server on this machine that the browser calls is sent ours.
func needsPass(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.URL.Path != signOutPath || isStream(r)
}

// proof is how a request has shown that it may be answered.
type proof int

const (
	nothing proof = iota
	byCookie
	byBearer
)

// shown is how, and for a cookie, or the pass of a tab that signs out, which
// browser it is.
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
	if r.URL.Path == signOutPath { // the cookie may be the last server's, and the tab has proved itself to this one
		if id := g.tab(r); id != "" {
			return byCookie, id
		}
	}
	return nothing, ""
}

// tab is the id of the browser that the request comes from, if the tab has shown
// to this server that it has the browser's key, else "".
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

// protocol is what follows the prefix in one of the protocols that a websocket
// is asked for.
func protocol(r *http.Request, prefix string) string {
	for _, p := range websocket.Subprotocols(r) {
		if v, ok := strings.CutPrefix(p, prefix); ok {
			return v
		}
	}
	return ""
}

type proofKey struct{}

// prove has the answer prove to the tab that this server gave it, if the tab
// wants that: another program may have this port by now. A stream says so at its
// beginning, a websocket by its first message.
func (g *Guard) prove(w http.ResponseWriter, r *http.Request, next http.Handler) {
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
		next.ServeHTTP(w, r)
	case isStream(r):
		proof := hex.EncodeToString(mac(g.secrets.key(id, r), "stream", nonce))
		w.Header().Set(proofHeader, proof)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), proofKey{}, proof)))
	default:
		whole := &wholeAnswer{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(whole, r)
		if whole.status == http.StatusSeeOther { // a script can't read the proof of that
			whole.status = http.StatusNoContent
			w.Header().Del("Location")
		}
		sum := sha256.Sum256(whole.body.Bytes())
		w.Header().Set(proofHeader, hex.EncodeToString(mac(g.secrets.key(id, r), "answer", nonce, strconv.Itoa(whole.status), hex.EncodeToString(sum[:]))))
		w.WriteHeader(whole.status)
		w.Write(whole.body.Bytes())
	}
}

// A wholeAnswer is an answer that is not sent yet.
type wholeAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (a *wholeAnswer) WriteHeader(status int)      { a.status = status }
func (a *wholeAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }

// same compares two secrets in a time that tells nothing, not even a length.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return hmac.Equal(x[:], y[:])
}
