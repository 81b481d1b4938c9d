package access_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/internal/testworld"
)

// A pair is a certificate and its key, in files.
type pair struct{ cert, key string }

// write makes a new certificate of its own for the names and addresses.
func (p pair) write(tb testing.TB, serial int64, names ...string) {
	tb.Helper()
	key := testworld.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(tb)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "netsky"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	der := testworld.Got(x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key))(tb)
	secret := testworld.Got(x509.MarshalPKCS8PrivateKey(key))(tb)
	testworld.Must(tb, os.WriteFile(p.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	testworld.Must(tb, os.WriteFile(p.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	at := time.Unix(1_700_000_000+serial, 0) // files that follow each other closely differ all the same
	testworld.Must(tb, os.Chtimes(p.cert, at, at))
}

func mustPair(tb testing.TB, names ...string) pair {
	tb.Helper()
	dir := tb.TempDir()
	p := pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	p.write(tb, 1, names...)
	return p
}

// With a certificate the dashboard is served on every address of the machine,
// encrypted, and all that holds on the loopback holds there.
func TestTLS(t *testing.T) {
	p := mustPair(t, "box.example", "*.wild.example")
	config, err := access.Certificate(p.cert, p.key)
	testworld.Must(t, err)
	o := options(t)
	o.TLS = config
	s, from := serve(t, o, "0.0.0.0:0")
	_, port, err := net.SplitHostPort(from)
	testworld.Must(t, err)
	if !strings.HasPrefix(from, "0.0.0.0:") {
		t.Errorf("it listens on %s", from)
	}
	to := "127.0.0.1:" + port
	testworld.Equal(t, s.URL(addr(t, from)), "https://box.example:"+port, "URL")
	insecure := &tls.Config{InsecureSkipVerify: true}
	transport := &http.Transport{TLSClientConfig: insecure, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, path, host, body string, edit func(*http.Request)) *http.Response {
		t.Helper()
		r := testworld.Got(http.NewRequestWithContext(t.Context(), method, "https://"+to+path, strings.NewReader(body)))(t)
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		edit(r)
		resp := testworld.Got(client.Do(r))(t)
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+o.Token) }
	for host, want := range map[string]int{
		to: 200, "localhost:" + port: 200, "box.example:" + port: 200, "BOX.example": 200, "a.wild.example:" + port: 200,
		"a.b.wild.example": 403, "wild.example": 403, "netsky": 403, "evil.example:" + port: 403, "0.0.0.0:" + port: 403, "[::]:" + port: 403,
	} {
		testworld.Equal(t, ask("GET", "/api/agents", host, "", bearer).StatusCode, want, "Host %s", host)
	}
	testworld.Equal(t, ask("GET", "/", to, "", func(*http.Request) {}).StatusCode, 401, "without a token")
	resp := ask("POST", "/login", "box.example:"+port, "code="+code(t, s), func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "https://box.example:"+port)
	})
	if resp.StatusCode != 303 || len(resp.Cookies()) != 1 || !resp.Cookies()[0].Secure || !strings.HasPrefix(resp.Cookies()[0].Name, "__Host-") {
		t.Fatalf("login: %d, cookies %v", resp.StatusCode, resp.Cookies())
	}
	cookie := resp.Cookies()[0]
	for origin, want := range map[string]int{"https://box.example:" + port: 202, "http://box.example:" + port: 403, "https://evil.example": 403, "": 403} {
		resp := ask("POST", "/api/user-message", "box.example:"+port, `{"to":"agent0","text":"x"}`, func(r *http.Request) {
			r.AddCookie(cookie)
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
		})
		testworld.Equal(t, resp.StatusCode, want, "POST with Origin %q", origin)
	}
	dialer := websocket.Dialer{TLSClientConfig: insecure}
	for origin, want := range map[string]int{"https://" + to: 101, "http://" + to: 403, "https://evil.example": 403} {
		c, resp, err := dialer.DialContext(t.Context(), "wss://"+to+"/ws", http.Header{"Cookie": {cookie.String()}, "Origin": {origin}})
		if resp == nil || resp.StatusCode != want {
			t.Fatalf("websocket with Origin %s: %v, %v", origin, resp, err)
		}
		if err == nil {
			if _, data, err := c.ReadMessage(); err != nil || !strings.Contains(string(data), `"hello"`) {
				t.Errorf("websocket: %s, %v", data, err)
			}
			c.Close()
		}
	}
	resp = ask("GET", "/events", to, "", bearer)
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || resp.StatusCode != 200 || resp.Proto != "HTTP/1.1" {
		t.Errorf("SSE: %s %s %q, %v", resp.Proto, resp.Status, line, err)
	}
	resp.Body.Close()

	// Without encryption nothing is told.
	plain, err := http.Get("http://" + to + "/healthz")
	testworld.Must(t, err)
	plain.Body.Close()
	testworld.Equal(t, plain.StatusCode, 400, "without TLS")
}

// A renewed certificate is taken up by a server that runs; a broken one is not.
func TestTLSRenewed(t *testing.T) {
	p := mustPair(t, "box.example")
	config := testworld.Got(access.Certificate(p.cert, p.key))(t)
	serial := func() int64 {
		c := testworld.Got(config.GetCertificate(nil))(t)
		return c.Leaf.SerialNumber.Int64()
	}
	if n := serial(); n != 1 {
		t.Fatalf("the certificate has number %d", n)
	}
	testworld.Must(t, os.WriteFile(p.cert, []byte("half"), 0o600))
	testworld.Equal(t, serial(), 1, "number")
	p.write(t, 2, "box.example")
	testworld.Equal(t, serial(), 2, "the number of the one in use")
	for name, p := range map[string]pair{"no file": {p.cert, "/nonexistent"}, "swapped": {p.key, p.cert}} {
		testworld.Fails(t, testworld.Err(access.Certificate(p.cert, p.key)), "dashboard: ", "%s", name)
	}
}

func TestURL(t *testing.T) {
	named, numbered := mustPair(t, "*.example", "box.example"), mustPair(t, "10.1.2.3")
	for _, tt := range []struct {
		pair       pair
		addr, want string
	}{
		{pair{}, "127.0.0.1:1", "http://127.0.0.1:1"},
		{pair{}, "[::1]:1", "http://[::1]:1"},
		{pair{}, "0.0.0.0:1", "http://127.0.0.1:1"},
		{pair{}, "[::]:1", "http://127.0.0.1:1"},
		{pair{}, "10.1.2.3:1", "http://10.1.2.3:1"},
		{named, "127.0.0.1:1", "https://box.example:1"},
		{named, "[::]:1", "https://box.example:1"},
		{numbered, "10.1.2.3:1", "https://10.1.2.3:1"},
		{numbered, "127.0.0.1:1", "https://127.0.0.1:1"},
	} {
		o := options(t)
		if tt.pair.cert != "" {
			var err error
			o.TLS, err = access.Certificate(tt.pair.cert, tt.pair.key)
			testworld.Must(t, err)
		}
		s := testworld.Got(dashboard.New(o))(t)
		testworld.Equal(t, s.URL(addr(t, tt.addr)), tt.want, "URL(%s)", tt.addr)
	}
}

func addr(tb testing.TB, text string) net.Addr {
	tb.Helper()
	a := testworld.Got(net.ResolveTCPAddr("tcp", text))(tb)
	return a
}
