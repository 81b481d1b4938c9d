package dashboard_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"netsky/internal/testworld"
)

// Row 31: a message that another site, or anybody without the token, would have
// us send is refused, and nothing is queued.
func TestRow31Post(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	tab := w.signIn(t)
	own := "http://" + w.addr
	set := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			tab.as(r)
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
	for _, tt := range []struct {
		name string
		edit func(*http.Request)
		want int
	}{
		{"foreign origin", set("Origin", "http://evil.example"), 403},
		{"foreign origin that begins like ours", set("Origin", own+".evil.example"), 403},
		{"another port", set("Origin", "http://127.0.0.1:1"), 403},
		{"another scheme", set("Origin", "https://"+w.addr), 403},
		{"null origin", set("Origin", "null"), 403},
		{"no origin", set(), 403},
		{"empty origin", set("Origin", ""), 403},
		{"cross-site", set("Origin", own, "Sec-Fetch-Site", "cross-site"), 403},
		{"same-site", set("Origin", own, "Sec-Fetch-Site", "same-site"), 403},
		{"cross-site navigation", set("Origin", own, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 403},
		{"unknown site", set("Origin", own, "Sec-Fetch-Site", "surprise"), 403},
		{"text/plain", set("Origin", own, "Content-Type", "text/plain"), 415},
		{"a form", set("Origin", own, "Content-Type", "application/x-www-form-urlencoded"), 415},
		{"no type", set("Origin", own, "Content-Type", ""), 415},
		{"two types", set("Origin", own, "Content-Type", "application/json, text/plain"), 415},
		{"another charset", set("Origin", own, "Content-Type", "application/json; charset=utf-16"), 415},
		{"no token", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"wrong token", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+strings.Repeat("a", 64)) }, 401},
		{"token in the query", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.URL.RawQuery = "token=" + w.token
		}, 401},
		{"foreign origin with a bearer", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"two origins", func(r *http.Request) { r.Header["Origin"] = []string{own, "http://evil.example"} }, 403},
		{"rebound name", func(r *http.Request) {
			r.Host = "evil.example"
			r.Header.Set("Origin", "http://evil.example")
		}, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := w.request(t, "POST", "/api/user-message", `{"to":"agent0","text":"evil"}`)
			tt.edit(r)
			if a := mustAnswer(t, r); a.status != tt.want {
				t.Errorf("status = %d, want %d: %s", a.status, tt.want, a.body)
			}
		})
	}
	if n := len(w.inbox(t, "agent0")); n != 0 {
		t.Fatalf("%d messages were queued", n)
	}
	r := w.request(t, "POST", "/api/user-message", `{"to":"agent0","text":"mine"}`)
	set("Origin", own, "Sec-Fetch-Site", "same-origin")(r)
	if a := mustAnswer(t, r); a.status != 202 || len(w.inbox(t, "agent0")) != 1 {
		t.Errorf("the owner's own page: %d %s", a.status, a.body)
	}
}

// A method that a route doesn't have is refused there, with those it has.
func TestMethods(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	for _, path := range routes {
		if strings.HasPrefix(path, "/nothing") {
			continue
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"} {
			if method == "POST" && (strings.HasSuffix(path, "/user-message") || path == "/session" || path == "/sign-out") {
				method = "GET"
			}
			if method == "POST" && path == "/login" {
				continue // both
			}
			a := mustAnswer(t, w.request(t, method, path, ""))
			if a.status != 405 || a.header.Get("Allow") == "" {
				t.Errorf("%s %s: %d, allow %q", method, path, a.status, a.header.Get("Allow"))
			}
		}
	}
	if n := len(w.inbox(t, "agent0")); n != 0 {
		t.Fatalf("%d messages were queued", n)
	}
}

// Row 32: who comes from elsewhere or without the token is told nothing on a
// stream.
func TestRow32Streams(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	tab := w.signIn(t)
	cookie := tab.cookie
	own := "http://" + w.addr
	for _, tt := range []struct {
		name   string
		header http.Header
		ws     int
		sse    int
	}{
		{"foreign origin", http.Header{"Origin": {"http://evil.example"}, "Cookie": {cookie.String()}}, 403, 403},
		{"null origin", http.Header{"Origin": {"null"}, "Cookie": {cookie.String()}}, 403, 403},
		{"another port", http.Header{"Origin": {"http://127.0.0.1:1"}, "Cookie": {cookie.String()}}, 403, 403},
		{"same-site", http.Header{"Origin": {own}, "Sec-Fetch-Site": {"same-site"}, "Cookie": {cookie.String()}}, 403, 403},
		{"cross-site", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Cookie": {cookie.String()}}, 403, 403},
		{"cross-site navigation", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"},
			"Sec-Fetch-Dest": {"document"}, "Cookie": {cookie.String()}}, 403, 403},
		{"foreign origin and bearer", http.Header{"Origin": {"http://evil.example"}, "Authorization": {"Bearer " + w.token}}, 403, 403},
		{"no token", http.Header{"Origin": {own}}, 401, 401},
		{"a cookie alone", http.Header{"Origin": {own}, "Sec-Fetch-Site": {"same-origin"}, "Cookie": {cookie.String()}}, 403, 403},
		{"a pass alone", http.Header{"Origin": {own}, "Netsky-Tab": {tab.pass}}, 401, 401},
		{"the key for a pass", http.Header{"Origin": {own}, "Cookie": {cookie.String()}, "Netsky-Tab": {tab.ID + "." + tab.Key}}, 403, 403},
		{"the cookie for a pass", http.Header{"Origin": {own}, "Cookie": {cookie.String()}, "Netsky-Tab": {cookie.Value}}, 403, 403},
		{"wrong cookie", http.Header{"Origin": {own}, "Cookie": {cookie.Name + "=x"}}, 401, 401},
		{"without origin", http.Header{"Cookie": {cookie.String()}, "Netsky-Tab": {tab.pass}}, 403, 200}, // a fetch of our own page's sends none
		{"our page", http.Header{"Origin": {own}, "Sec-Fetch-Site": {"same-origin"}, "Cookie": {cookie.String()}, "Netsky-Tab": {tab.pass}}, 101, 200},
		{"our page's websocket", http.Header{"Origin": {own}, "Cookie": {cookie.String()}, "Sec-Websocket-Protocol": {"netsky, netsky-tab." + tab.pass}}, 101, 403},
		{"a script", http.Header{"Authorization": {"Bearer " + w.token}}, 101, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+w.addr+"/ws", tt.header)
			if err == nil {
				conn.Close()
			}
			if resp == nil || resp.StatusCode != tt.ws {
				t.Errorf("websocket: %v, %v, want %d", resp, err, tt.ws)
			}
			r := w.request(t, "GET", "/events", "")
			r.Header = tt.header
			resp, err = http.DefaultClient.Do(r)
			testworld.Must(t, err)
			defer resp.Body.Close()
			testworld.Equal(t, resp.StatusCode, tt.sse, "SSE")
			if line, _ := bufio.NewReader(resp.Body).ReadString('\n'); (resp.StatusCode == 200) != strings.HasPrefix(line, "retry:") {
				t.Errorf("SSE begins with %q", line)
			}
		})
	}
}

// What another site's page may load without reading it is refused too.
func TestForeignSubresource(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	cookie := w.login(t)
	for _, tt := range []struct {
		site, mode, dest string
		want             int
	}{
		{"cross-site", "no-cors", "image", 403},
		{"same-site", "no-cors", "script", 403},
		{"cross-site", "navigate", "iframe", 403},
		{"cross-site", "navigate", "document", 200}, // a link that was followed
		{"none", "navigate", "document", 200},
		{"same-origin", "cors", "empty", 200},
	} {
		r := w.request(t, "GET", "/api/snapshot", "")
		r.Header.Del("Authorization")
		r.AddCookie(cookie)
		r.Header.Set("Sec-Fetch-Site", tt.site)
		r.Header.Set("Sec-Fetch-Mode", tt.mode)
		r.Header.Set("Sec-Fetch-Dest", tt.dest)
		testworld.Equal(t, mustAnswer(t, r).status, tt.want, "%v", tt)
	}
}
