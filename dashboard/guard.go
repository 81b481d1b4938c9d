package dashboard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

const (
	loginPath  = "/login"
	healthPath = "/healthz"
	cookieDays = 30
)

// policy lets a page load what this server serves and nothing else, and run no
// script and no style that stands in a page. connect-src 'self' is the events
// and the API; form-action 'self' is a list's filters.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard lets a request through that has the right to an answer. It asks the
// cheap questions first and tells a stranger nothing but what is missing.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		switch {
		case !s.knownHost(r):
			refuse(w, r, http.StatusForbidden, "this server is not called "+quote(r.Host))
		case foreign(r):
			refuse(w, r, http.StatusForbidden, "the request comes from another site")
		case r.URL.Path == healthPath, r.URL.Path == loginPath:
			next.ServeHTTP(w, r)
		default:
			switch s.shown(r) {
			case nothing:
				w.Header().Set("WWW-Authenticate", `Bearer realm="netsky"`)
				refuse(w, r, http.StatusUnauthorized, "the token is missing or wrong; `netsky dashboard` prints a link that has it")
			case byCookie:
				if needsOrigin(r) && r.Header.Get("Origin") == "" {
					refuse(w, r, http.StatusForbidden, "the request does not say from which site it comes")
					return
				}
				fallthrough
			case byBearer:
				next.ServeHTTP(w, r)
			}
		}
	})
}

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
func (s *Server) knownHost(r *http.Request) bool {
	name, ok := hostName(r.Host)
	if !ok {
		return false
	}
	switch name {
	case "localhost", "127.0.0.1", "[::1]":
		return true
	}
	if slices.ContainsFunc(s.o.Hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return true
	}
	return isLocal(r, name) || s.certified(name)
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
	return r.URL.Path == eventsPath || r.URL.Path == socketPath
}

// needsOrigin reports whether every browser would send Origin with it.
func needsOrigin(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.URL.Path == socketPath
}

// proof is how a request has shown the token.
type proof int

const (
	nothing proof = iota
	byCookie
	byBearer
)

func (s *Server) shown(r *http.Request) proof {
	if given, ok := r.Header["Authorization"]; ok {
		token, bearer := strings.CutPrefix(strings.Join(given, ","), "Bearer ")
		if bearer && same(token, s.o.Token) {
			return byBearer
		}
		return nothing
	}
	for _, c := range r.CookiesNamed(s.cookie.name) {
		if same(c.Value, s.cookie.value) {
			return byCookie
		}
	}
	return nothing
}

// same compares two secrets in a time that tells nothing, not even a length.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return hmac.Equal(x[:], y[:])
}

// A cookie stands for the token in a browser. Cookies know no ports: every
// server on this machine that the browser calls is sent it, so it is not the
// token itself, and its name is the home's, so that two homes don't share one.
type cookie struct{ name, value string }

func newCookie(o Options) cookie {
	home := sha256.Sum256([]byte(o.Home.Dir()))
	mac := hmac.New(sha256.New, []byte(o.Token))
	mac.Write([]byte("netsky dashboard cookie"))
	return cookie{"netsky-" + hex.EncodeToString(home[:4]), hex.EncodeToString(mac.Sum(nil))}
}

// login gives the cookie to who has the token, and leads on to an address
// without it.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if !same(r.URL.Query().Get("token"), s.o.Token) {
		refuse(w, r, http.StatusUnauthorized, "the token is missing or wrong; `netsky dashboard` prints a link that has it")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie.name, Value: s.cookie.value, Path: "/", MaxAge: cookieDays * 24 * 3600,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
	w.Header().Set("Location", "/")
	w.WriteHeader(http.StatusSeeOther)
}
