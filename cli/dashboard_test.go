package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
)

// An address that can't be listened on is told at once, and nothing is started.
func TestDashboardRefuses(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"0.0.0.0:0": "is not a loopback address", ":0": "is not a loopback address", "nonsense": "missing port",
	} {
		w := mustWorld(t)
		w.env = append(w.env, "NETSKY_LISTEN=") // the file says it
		w.config(t, fmt.Sprintf("[dashboard]\nlisten = %q\n", listen))
		out, err := w.command(t.Context(), "netsky", "dashboard").CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "wide = true") != strings.Contains(want, "loopback") {
			t.Errorf("%s: %v, %s", listen, err, out)
		}
		testworld.Fails(t, testworld.Err(os.Stat(filepath.Join(w.home, "run", "daemon.pid"))), "", "%s: a daemon was started", listen)
	}
}

// link is what `netsky dashboard` prints. On stderr it says whether it has started
// the daemon.
func (w *world) link(tb testing.TB) string {
	tb.Helper()
	out, err := w.command(tb.Context(), "netsky", "dashboard").Output()
	testworld.Must(tb, err, "netsky dashboard")
	return strings.TrimSpace(string(out))
}

// holder is the world's daemon.
func (w *world) holder() (home.Holder, error) {
	h, err := home.At(w.home)
	if err != nil {
		return home.Holder{}, err
	}
	who, ok := h.LockHolder(agent.DaemonName)
	if !ok {
		return who, errors.New("no daemon runs")
	}
	return who, nil
}

// The link that is printed can be followed on this machine, wherever the
// dashboard listens; the tunnel is offered to who came by ssh and can't reach it
// otherwise.
func TestDashboardLink(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config, link, tunnel string
	}{
		"loopback": {`listen = "127.0.0.1:0"`, "http://127.0.0.1:", "ssh -N -L PORT:127.0.0.1:PORT -p 2222 me@10.0.0.9"},
		"all":      {"listen = \"0.0.0.0:0\"\nwide = true", "http://127.0.0.1:", "ssh -N -L PORT:127.0.0.1:PORT -p 2222 me@10.0.0.9"},
		"all six":  {"listen = \":0\"\nwide = true", "http://127.0.0.1:", "ssh -N -L PORT:127.0.0.1:PORT -p 2222 me@10.0.0.9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t)
			w.env = append(w.env, "NETSKY_LISTEN=") // the file says it
			w.config(t, "[dashboard]\n"+tt.config+"\n")
			cmd := w.command(t.Context(), "netsky", "dashboard", "--json")
			cmd.Env = append(cmd.Env, "SSH_CONNECTION=1.2.3.4 5 10.0.0.9 2222", "USER=me")
			out, err := cmd.Output()
			testworld.Must(t, err)
			var said struct{ URL, SSH string }
			testworld.Must(t, json.Unmarshal(out, &said))
			u, err := url.Parse(said.URL)
			if err != nil || !strings.HasPrefix(said.URL, tt.link) || said.SSH != strings.ReplaceAll(tt.tunnel, "PORT", u.Port()) {
				t.Fatalf("link %q, tunnel %q, %v", said.URL, said.SSH, err)
			}
			client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			resp, err := client.Get(said.URL)
			testworld.Must(t, err)
			resp.Body.Close()
			testworld.Equal(t, resp.StatusCode, http.StatusOK, "the link leads to %s", resp.Status)
		})
	}
}

// With a certificate it is served encrypted, under the certificate's names, at an
// address that others can reach.
func TestDashboardTLS(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.env = append(w.env, "NETSKY_LISTEN=") // the file says it
	key := testworld.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"box.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der := testworld.Got(x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key))(t)
	secret := testworld.Got(x509.MarshalPKCS8PrivateKey(key))(t)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		testworld.Must(t, os.WriteFile(filepath.Join(w.dir, name), pem.EncodeToMemory(block), 0o600))
	}
	w.config(t, "[dashboard]\nlisten = \"0.0.0.0:0\"\ncert = \"../cert.pem\"\nkey = \"../gone.pem\"\n")
	if out, err := w.command(t.Context(), "netsky", "dashboard").CombinedOutput(); err == nil || !strings.Contains(string(out), "gone.pem") {
		t.Errorf("without the key: %v, %s", err, out)
	}
	// The dashboard's trouble is not the daemon's, nor the agents'.
	w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")
	w.must(t, "netsky", "daemon", "stop")
	w.config(t, "[dashboard]\nlisten = \"0.0.0.0:0\"\ncert = \"../cert.pem\"\nkey = \"../key.pem\"\n")
	link := w.link(t)
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	client := http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	base, query, _ := strings.Cut(link, "?")
	r := testworld.Got(http.NewRequestWithContext(t.Context(), "POST", base, strings.NewReader(query)))(t)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", strings.TrimSuffix(base, "/login"))
	resp := testworld.Got(client.Do(r))(t)
	resp.Body.Close()
	if !strings.HasPrefix(link, "https://127.0.0.1:") || resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 || !resp.Cookies()[0].Secure {
		t.Errorf("%s: %s, cookies %v", link, resp.Status, resp.Cookies())
	}
}
