package access

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

// A Link signs one browser in.
type Link struct {
	URL string     `json:"url"`
	End store.Time `json:"end"` // it is valid until then
	// Renewed reports that there is a new token, because its file was gone or could
	// have been read by others.
	Renewed bool `json:"renewed,omitempty"`
}

// Link makes a link that signs one browser in, once, within five minutes. base is the
// server's URL: "http://127.0.0.1:7717".
func (g *Guard) Link(base string) (Link, error) {
	renewed, err := g.refresh()
	if err != nil {
		return Link{}, err
	}
	code, end := g.secrets.newCode()
	u := strings.TrimSuffix(base, "/") + loginPath + "?code=" + url.QueryEscape(code)
	return Link{URL: u, End: store.At(end), Renewed: renewed}, nil
}

// refresh adopts the token that is in the file now, as scripts send that one.
func (g *Guard) refresh() (changed bool, err error) {
	token, err := Token(g.o.Home)
	if err != nil || g.secrets.isToken(token) {
		return false, err
	}
	g.secrets.renew(token)
	return true, g.state.renew(token)
}

// Rotate replaces the token, and signs all browsers out.
func (g *Guard) Rotate() error {
	token, err := newToken(g.o.Home)
	if err != nil {
		return err
	}
	g.secrets.renew(token)
	g.o.Log.Info("rotate")
	return g.state.renew(token)
}

// Browsers returns the browsers that are signed in, the last seen first.
func (g *Guard) Browsers() []Browser { return g.state.browsers() }

// SignOut signs one browser out, or all for "", ends their streams, and returns how
// many there were.
func (g *Guard) SignOut(id string) (int, error) {
	n, err := g.state.remove(id)
	if n > 0 {
		g.o.Log.Info("sign out", "browser", id, "browsers", n)
	}
	return n, err
}

// login shows the page that a link leads to. It does not use up the code: a program
// that previews links must not.
func (g *Guard) login(w http.ResponseWriter, r *http.Request) {
	g.loginPage(w, r, http.StatusOK, r.URL.Query().Get("code"), "")
}

// loginPage shows the form; for a browser that is signed in it adds a link to the
// overview.
func (g *Guard) loginPage(w http.ResponseWriter, r *http.Request, status int, code, why string) {
	on := ""
	if by, _ := g.shown(r); by == byCookie {
		on = `<p id=on>This browser is already signed in: <a href="/">open netsky</a></p>`
	}
	w.Header().Set("Referrer-Policy", "same-origin") // with no-referrer a form's POST has no origin
	PlainPage(w, status, "Sign in to netsky", fmt.Sprintf(`<form method=post action=%s id=login><label for=code>Code</label>
<p><input id=code name=code value="%s" autocomplete=off spellcheck=false autofocus required> <button>Sign in</button></p></form>
<p id=why role=alert>%s</p>%s<p>Run <code>netsky dashboard</code> in a terminal for a link that contains a code.</p>
<script src="%s%s" data-login></script>`, loginPath, html.EscapeString(code), Coded(why), on, StaticPath, SessionScript))
}

const badCode = "the code is wrong, has been used, or is older than five minutes; run `netsky dashboard` for a new one"

// A signedIn is the answer to a script that has signed in; its tabs keep it.
type signedIn struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

// signIn accepts a link's code: as JSON from the login page's script, which gets a key
// that is in no cookie, or from the page's form, for browsers that don't run the
// script.
func (g *Guard) signIn(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	text, plain := "", false
	switch kind {
	case "application/json":
		f, ok := g.sessionFields(w, r, "code")
		if !ok {
			return
		}
		text = f["code"]
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil {
			Refuse(w, r, http.StatusBadRequest, "the form is malformed")
			return
		}
		text, plain = strings.TrimSpace(r.PostForm.Get("code")), true
	default:
		Refuse(w, r, http.StatusUnsupportedMediaType, "the body must be application/json or a form")
		return
	}
	if !g.secrets.useCode(text) {
		status := g.unauthorized(w, r, "code")
		if plain {
			g.loginPage(w, r, status, "", badCode)
			return
		}
		Refuse(w, r, status, badCode)
		return
	}
	id, err := g.enter(r, plain)
	if err != nil {
		g.o.Log.Warn("sign in", "error", err)
		Refuse(w, r, http.StatusInternalServerError, "not signed in: "+err.Error())
		return
	}
	g.setCookie(w, r, id)
	if plain {
		w.Header().Set("Location", "/")
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	JSON(w, r, http.StatusOK, signedIn{id, hex.EncodeToString(g.secrets.key(id, r))})
}

// enter signs the browser in. One that is signed in keeps its id, so that its other
// tabs stay signed in.
func (g *Guard) enter(r *http.Request, plain bool) (id string, err error) {
	if by, id := g.shown(r); by == byCookie {
		if b, ok := g.state.find(id); ok && b.Plain == plain {
			return id, g.state.seen(id)
		}
	}
	now := store.At(g.o.Now())
	b := Browser{ID: random(8), Since: now, Seen: now, Name: clipped(r.UserAgent()), Plain: plain}
	g.o.Log.Info("sign in", "browser", b.ID, "from", r.RemoteAddr)
	return b.ID, g.state.add(b)
}

func clipped(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}

func (g *Guard) setCookie(w http.ResponseWriter, r *http.Request, id string) {
	c := &http.Cookie{
		Name: g.secrets.cookie, Value: g.secrets.pass("cookie", id), Path: "/", MaxAge: cookieDays * 24 * 3600,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
	if id == "" {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, c)
}

// A challenge is the server's part of the handshake: it proves that the server knows
// the browser's key before the tab sends anything of value.
type challenge struct {
	State     string `json:"state"` // known or gone
	Challenge string `json:"challenge"`
	Proof     string `json:"proof"`
}

// session is the handshake in which a tab and the server prove to each other that they
// have the browser's key, without sending it: the tab sends a nonce, the server answers
// with its proof and a challenge, and the tab with its own proof. Then the tab gets a
// cookie and a pass from this server. So an open page continues with the next server,
// and sends nothing of value to a stranger on the port.
func (g *Guard) session(w http.ResponseWriter, r *http.Request) {
	f, ok := g.sessionFields(w, r, "id", "nonce", "challenge", "proof")
	if !ok {
		return
	}
	id, nonce := f["id"], f["nonce"]
	if !isID(id) || !isHex(nonce) || len(nonce) < 32 || len(nonce) > 64 {
		Refuse(w, r, http.StatusBadRequest, "id and nonce: malformed")
		return
	}
	key := g.secrets.key(id, r)
	b, known := g.state.find(id)
	known = known && !b.Plain
	if f["proof"] == "" {
		c := challenge{State: "known", Challenge: g.secrets.challenge(id, nonce)}
		if !known {
			c.State = "gone"
		}
		c.Proof = hex.EncodeToString(mac(key, "server", nonce, c.Challenge, c.State))
		JSON(w, r, http.StatusOK, c)
		return
	}
	want := hex.EncodeToString(mac(key, "tab", nonce, f["challenge"]))
	if !g.secrets.challenged(id, nonce, f["challenge"]) || !same(f["proof"], want) {
		Refuse(w, r, g.unauthorized(w, r, "proof"), "the proof is wrong")
		return
	}
	if !known {
		Refuse(w, r, http.StatusUnauthorized, notSignedIn)
		return
	}
	if err := g.state.seen(id); err != nil {
		g.o.Log.Warn("browsers", "error", err)
	}
	g.setCookie(w, r, id)
	JSON(w, r, http.StatusOK, map[string]string{"tab": g.secrets.pass("tab", id)})
}

// sessionFields reads the JSON of a request to sign in, or refuses the request.
func (g *Guard) sessionFields(w http.ResponseWriter, r *http.Request, names ...string) (map[string]string, bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		Refuse(w, r, http.StatusUnsupportedMediaType, "the body must be application/json")
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, 4<<10))
	if err == nil {
		var f map[string]string
		if f, err = Fields(data, names...); err == nil {
			return f, true
		}
	} else {
		err = errors.New("the body is incomplete")
	}
	Refuse(w, r, http.StatusBadRequest, err.Error())
	return nil, false
}

// signOut signs out the browser that asks, with all its tabs: the cookie's and the
// tab's, should they differ.
func (g *Guard) signOut(w http.ResponseWriter, r *http.Request) {
	by, id := g.shown(r)
	if by != byCookie {
		Refuse(w, r, http.StatusBadRequest, "only a browser can sign out")
		return
	}
	_, err := g.SignOut(id)
	if tab := g.tab(r); tab != "" {
		_, more := g.SignOut(tab)
		err = errors.Join(err, more)
	}
	if err != nil {
		g.o.Log.Warn("sign out", "error", err)
		Refuse(w, r, http.StatusInternalServerError, "signed out, but only until the daemon restarts: "+err.Error())
		return
	}
	g.setCookie(w, r, "")
	w.Header().Set("Location", loginPath)
	w.WriteHeader(http.StatusSeeOther)
}

// routes answers the requests that concern signing in, and passes all others to next.
func (g *Guard) routes(next http.Handler) http.Handler {
	r := new(Routes)
	r.Get(healthPath, func(w http.ResponseWriter, req *http.Request) {
		JSON(w, req, http.StatusOK, map[string]string{"status": "ok"})
	})
	r.Both(loginPath, g.login, g.signIn)
	r.Post(sessionPath, g.session)
	r.Post(signOutPath, g.signOut)
	r.Handle("/", next)
	return r
}
