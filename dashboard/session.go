package dashboard

import (
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"netsky/store"
)

const (
	sessionPath   = "/session"
	signOutPath   = "/sign-out"
	sessionScript = "session.js"
)

// A Link signs one browser in.
type Link struct {
	URL string     `json:"url"`
	End store.Time `json:"end"` // it is good until then
	// Renewed is that the token's file was gone, or could have been read by others,
	// and that there is another now.
	Renewed bool `json:"renewed,omitempty"`
}

// Link makes a link that signs one browser in, once, within five minutes. base
// is what the server is reached at: "http://127.0.0.1:7717".
func (s *Server) Link(base string) (Link, error) {
	renewed, err := s.refresh()
	if err != nil {
		return Link{}, err
	}
	code, end := s.access.newCode()
	u := strings.TrimSuffix(base, "/") + loginPath + "?code=" + url.QueryEscape(code)
	return Link{URL: u, End: store.At(end), Renewed: renewed}, nil
}

// refresh takes up the token that is in the file now, which scripts send.
func (s *Server) refresh() (changed bool, err error) {
	token, err := Token(s.o.Home)
	if err != nil || s.access.isToken(token) {
		return false, err
	}
	s.access.renew(token)
	return true, s.state.renew(token)
}

// Rotate makes another token, and signs everybody out.
func (s *Server) Rotate() error {
	token, err := newToken(s.o.Home)
	if err != nil {
		return err
	}
	s.access.renew(token)
	s.o.Log.Info("rotate")
	return s.state.renew(token)
}

// Browsers are those that are signed in, the last seen first.
func (s *Server) Browsers() []Browser { return s.state.browsers() }

// SignOut signs one browser out, or all with "", ends what they follow, and says
// how many they were.
func (s *Server) SignOut(id string) (int, error) {
	n, err := s.state.remove(id)
	if n > 0 {
		s.o.Log.Info("sign out", "browser", id, "browsers", n)
	}
	return n, err
}

// login shows the page that a link leads to. It uses no code up: whoever looks
// at the link to show what is behind it must not.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	s.loginPage(w, r, http.StatusOK, r.URL.Query().Get("code"), "")
}

// loginPage has a way on for a browser that is signed in: it needs no code.
func (s *Server) loginPage(w http.ResponseWriter, r *http.Request, status int, code, why string) {
	on := ""
	if by, _ := s.shown(r); by == byCookie {
		on = `<p id=on>This browser is signed in already: <a href="/">open netsky</a></p>`
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a form's POST has no origin
	w.WriteHeader(status)
	fmt.Fprintf(w, plainPage, "Sign in to netsky", fmt.Sprintf(`<form method=post action=%s id=login><label for=code>Code</label>
<p><input id=code name=code value="%s" autocomplete=off spellcheck=false autofocus required> <button>Sign in</button></p></form>
<p id=why role=alert>%s</p>%s<p><code>netsky dashboard</code>, in a terminal, prints a link that holds a code.</p>
<script src="%s%s" data-login></script>`, loginPath, html.EscapeString(code), coded(why), on, staticPath, sessionScript))
}

const badCode = "the code is wrong, has been used, or is older than five minutes; `netsky dashboard` prints another"

// A signedIn is the answer to a script that has signed in: what its tabs keep.
type signedIn struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

// signIn takes a link's code: as JSON from the login page's script, which is
// given a key that no cookie holds; or from the page's form, for browsers
// without the script and pages on which it may not compute.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	text, plain := "", false
	switch kind {
	case "application/json":
		f, ok := s.sessionFields(w, r, "code")
		if !ok {
			return
		}
		text = f["code"]
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil {
			refuse(w, r, http.StatusBadRequest, "the form cannot be read")
			return
		}
		text, plain = strings.TrimSpace(r.PostForm.Get("code")), true
	default:
		refuse(w, r, http.StatusUnsupportedMediaType, "the body must be application/json or a form's")
		return
	}
	if !s.access.useCode(text) {
		status := http.StatusUnauthorized
		if s.wrong(r, "code") {
			status = http.StatusTooManyRequests
			w.Header().Set("Retry-After", "60")
		}
		if plain {
			s.loginPage(w, r, status, "", badCode)
			return
		}
		refuse(w, r, status, badCode)
		return
	}
	id, err := s.enter(r, plain)
	if err != nil {
		s.o.Log.Warn("sign in", "error", err)
		refuse(w, r, http.StatusInternalServerError, "not signed in: "+err.Error())
		return
	}
	s.setCookie(w, r, id)
	if plain {
		w.Header().Set("Location", "/")
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	writeJSON(w, r, http.StatusOK, signedIn{id, hex.EncodeToString(s.access.key(id, r))})
}

// enter signs the browser in. One that is signed in stays the one it is, so that
// its other tabs do.
func (s *Server) enter(r *http.Request, plain bool) (id string, err error) {
	if by, id := s.shown(r); by == byCookie {
		if b, ok := s.state.find(id); ok && b.Plain == plain {
			return id, s.state.seen(id)
		}
	}
	now := store.At(s.o.Now())
	b := Browser{ID: newID(), Since: now, Seen: now, Name: clipped(r.UserAgent()), Plain: plain}
	s.o.Log.Info("sign in", "browser", b.ID, "from", r.RemoteAddr)
	return b.ID, s.state.add(b)
}

func clipped(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}

func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, id string) {
	c := &http.Cookie{
		Name: s.access.cookie, Value: s.access.pass("cookie", id), Path: "/", MaxAge: cookieDays * 24 * 3600,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
	if id == "" {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, c)
}

// A challenge is the server's half of a greeting: it proves that it knows the
// browser's key before the tab shows anything.
type challenge struct {
	State     string `json:"state"` // known or gone
	Challenge string `json:"challenge"`
	Proof     string `json:"proof"`
}

// session is where a tab and the server prove to each other that they have the
// browser's key, without showing it: the tab says a nonce, the server answers
// with its proof and a challenge, and the tab with its own proof. Then the tab
// is given a cookie and a pass of this server's. So an open page goes on with
// the next server, and has nothing for a stranger on the port.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	f, ok := s.sessionFields(w, r, "id", "nonce", "challenge", "proof")
	if !ok {
		return
	}
	id, nonce := f["id"], f["nonce"]
	if !isID(id) || !isHex(nonce) || len(nonce) < 32 || len(nonce) > 64 {
		refuse(w, r, http.StatusBadRequest, "id and nonce: not what a tab sends")
		return
	}
	key := s.access.key(id, r)
	b, known := s.state.find(id)
	known = known && !b.Plain
	if f["proof"] == "" {
		c := challenge{State: "known", Challenge: s.access.challenge(id, nonce)}
		if !known {
			c.State = "gone"
		}
		c.Proof = hex.EncodeToString(mac(key, "server", nonce, c.Challenge, c.State))
		writeJSON(w, r, http.StatusOK, c)
		return
	}
	want := hex.EncodeToString(mac(key, "tab", nonce, f["challenge"]))
	if !s.access.challenged(id, nonce, f["challenge"]) || !same(f["proof"], want) {
		status := http.StatusUnauthorized
		if s.wrong(r, "proof") {
			status = http.StatusTooManyRequests
		}
		refuse(w, r, status, "the proof is wrong")
		return
	}
	if !known {
		refuse(w, r, http.StatusUnauthorized, notSignedIn)
		return
	}
	if err := s.state.seen(id); err != nil {
		s.o.Log.Warn("browsers", "error", err)
	}
	s.setCookie(w, r, id)
	writeJSON(w, r, http.StatusOK, map[string]string{"tab": s.access.pass("tab", id)})
}

// sessionFields are those of the JSON of a request to sign in, unless it has been
// refused.
func (s *Server) sessionFields(w http.ResponseWriter, r *http.Request, names ...string) (map[string]string, bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, r, http.StatusUnsupportedMediaType, "the body must be application/json")
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, 4<<10))
	if err == nil {
		var f map[string]string
		if f, err = fields(data, names...); err == nil {
			return f, true
		}
	} else {
		err = errors.New("the body ended too soon")
	}
	refuse(w, r, http.StatusBadRequest, err.Error())
	return nil, false
}

// signOut signs out the browser that asks, with all its tabs: the one of the
// cookie and the one of the tab, should they differ.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	by, id := s.shown(r)
	if by != byCookie {
		refuse(w, r, http.StatusBadRequest, "only a browser signs out")
		return
	}
	_, err := s.SignOut(id)
	if tab := s.tab(r); tab != "" {
		_, more := s.SignOut(tab)
		err = errors.Join(err, more)
	}
	if err != nil {
		s.o.Log.Warn("sign out", "error", err)
		refuse(w, r, http.StatusInternalServerError, "signed out, until the daemon is started again: "+err.Error())
		return
	}
	s.setCookie(w, r, "")
	w.Header().Set("Location", loginPath)
	w.WriteHeader(http.StatusSeeOther)
}
