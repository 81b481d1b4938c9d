package bluebubbles_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/imessage/bluebubbles"
	"netsky/internal/advice"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	good := passwordFile(t, "secret\r\n", 0o600)
	for _, tt := range []struct{ name, url, file, want, next string }{
		{"https", "https://mac.example.net", good, "", ""},
		{"https with a port and a path", "https://mac.example.net:1234/bb/", good, "", ""},
		{"loopback", "http://127.0.0.1:1234", good, "", ""},
		{"loopback, IPv6", "http://[::1]:1234", good, "", ""},
		{"loopback by name", "http://localhost:1234", good, "", ""},
		{"a private network", "http://192.168.1.20:1234", good, "", ""},
		{"a VPN", "http://100.100.1.1:1234", good, "", ""},
		{"a name of the local network", "http://mac.local:1234", good, "", ""},
		{"plain http to a name", "http://mac.example.net", good, "plain http outside of a private network", "use https"},
		{"plain http to a public address", "http://203.0.113.7", good, "plain http", "use https"},
		{"a name that begins like an address", "http://127.0.0.1.example.net", good, "plain http", "use https"},
		{"another scheme", "ftp://mac.example.net", good, "neither https nor http", ""},
		{"no address", "mac.example.net", good, "not an address", ""},
		{"a password in the URL", "https://user:hunter2@mac.example.net", good, "more than an address", "password file"},
		{"a query", "https://mac.example.net/?guid=hunter2", good, "more than an address", "password file"},
		{"a broken URL with a password", "https://mac.example.net/%zz?guid=hunter2", good, "not an address", ""},
		{"no file", "https://mac.example.net", good + "x", "no such file", ""},
		{"a directory", "https://mac.example.net", t.TempDir(), "is not a file", ""},
		{"readable by others", "https://mac.example.net", passwordFile(t, "secret", 0o640), "can be read by others (mode 0640)", "chmod 600"},
		{"empty", "https://mac.example.net", passwordFile(t, " \n", 0o600), "is empty", ""},
		{"two lines", "https://mac.example.net", passwordFile(t, "a\nb\n", 0o600), "more than one line", ""},
		{"too long", "https://mac.example.net", passwordFile(t, strings.Repeat("a", 5000), 0o600), "longer than a password", ""},
	} {
		tr, err := bluebubbles.Open(bluebubbles.Options{URL: tt.url, PasswordFile: tt.file})
		if err == nil {
			testworld.Equal(t, tr.Close(), nil, "%s: Close", tt.name)
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Open: %v, want %q", tt.name, err, tt.want)
		}
		if next := advice.Of(err); !strings.Contains(next, tt.next) || tt.next == "" && next != "" {
			t.Errorf("%s: advice %q, want %q", tt.name, next, tt.next)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: the error has the password: %v", tt.name, err)
		}
	}
}

// answer is a fault: this response to every query of messages.
func answer(status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/query") {
			return false
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

// echo is a server that repeats what it was asked, with the password.
func echo(w http.ResponseWriter, r *http.Request) bool {
	w.WriteHeader(500)
	_, _ = io.WriteString(w, `{"error":{"message":"cannot serve `+r.URL.RawQuery+" "+password+`"}}`)
	return true
}

// faults are what can be wrong with a server, and what the error says of it.
var faults = []struct {
	name, want string
	fault      func(http.ResponseWriter, *http.Request) bool
}{
	{"500", "HTTP status 500: out of order", answer(500, `{"status":500,"message":"x","error":{"type":"Server Error","message":"out of order"}}`)},
	{"502 of a tunnel", "HTTP status 502", answer(502, "<html>Bad gateway</html>")},
	{"404", "HTTP status 404", answer(404, "not here")},
	{"an address in the error", "(password)", echo},
	{"no JSON", "not the API's", answer(200, "<html>")},
	{"an array", "not the API's", answer(200, "[]")},
	{"an error in a 200", "HTTP status 500: out of order", answer(200, `{"status":500,"message":"x","error":{"message":"out of order"},"data":null}`)},
	{"an error in a 200 of another form", "HTTP status 200: busy", answer(200, `{"error":{"message":"busy"},"data":[]}`)},
	{"null for data", "no data", answer(200, `{"status":200,"message":"Success","data":null}`)},
	{"no data", "no data", answer(200, `{"status":200}`)},
	{"data of another type", "not the API's", answer(200, `{"data":{"rows":[]}}`)},
	{"a message of another type", "not the API's", answer(200, `{"data":["x"]}`)},
	{"a number in quotes", "not the API's", answer(200, `{"data":[{"originalROWID":"5","guid":"g"}]}`)},
	{"no number", "without a number", answer(200, `{"data":[{"guid":"g"}]}`)},
	{"no guid", "without a number or a guid", answer(200, `{"data":[{"originalROWID":9007199254740993}]}`)},
	{"conditions that are ignored", "where those above", answer(200, `{"data":[{"originalROWID":5,"guid":"g"},{"originalROWID":3,"guid":"h"}]}`)},
	{"cut off", "", func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"data":[`)
		return true
	}},
	{"a huge body", "more than 8 MiB", answer(200, `{"data":["`+strings.Repeat("x", 9<<20)+`"]}`)},
	{"a redirect", "another address", func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "http://127.0.0.1:9/elsewhere", http.StatusFound)
		return true
	}},
	{"hung", "no response within", func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not noticed
		<-r.Context().Done()
		return true
	}},
}

// Whatever is wrong with the server: one degraded error, which says what, and never the
// password. The same cursor works again afterwards.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range faults {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMac(t)
			for range 4 {
				m.add(nil)
			}
			tr := m.open(t, func(o *bluebubbles.Options) {
				if tt.name == "hung" {
					o.Timeout = time.Second / 2
				}
			})
			cursor := mustBegin(t, tr)
			m.add(object{"text": "new"})
			m.set(func() { m.fault = tt.fault })
			_, err := tr.Next(t.Context(), cursor)
			var d *chat.Degraded
			if !errors.As(err, &d) || !strings.Contains(d.Reason, tt.want) {
				t.Fatalf("Next: %v, want degraded with %q", err, tt.want)
			}
			if leaks(err.Error()) || leaks(errors.Unwrap(err).Error()) {
				t.Errorf("the error has the password: %v", err)
			}
			m.set(func() { m.fault = nil })
			if tt.name == "hung" {
				return // its time is too short for a slow machine
			}
			if _, texts := mustNext(t, tr, cursor); !slices.Equal(texts, []string{"new"}) {
				t.Errorf("afterwards Next = %q", texts)
			}
		})
	}
}

func TestDown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	m := &mac{url: server.URL}
	tr := m.open(t, nil)
	_, err := tr.Next(t.Context(), "")
	var d *chat.Degraded
	if !errors.As(err, &d) || !strings.Contains(d.Reason, "refused") || leaks(err.Error()) {
		t.Errorf("Next: %v", err)
	}
	if _, err := tr.Send(t.Context(), text("a")); !errors.As(err, &d) || leaks(err.Error()) {
		t.Errorf("Send: %v, want an error: nothing was tried", err)
	}
}

// A refused password is not tried again for a while: the server bans who does.
func TestRefused(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	now := time.Now()
	tr := m.open(t, func(o *bluebubbles.Options) {
		o.PasswordFile = passwordFile(t, "wrong", 0o600)
		o.Now = func() time.Time { return now }
	})
	for range 5 {
		_, err := tr.Next(t.Context(), "")
		var d *chat.Degraded
		if !errors.As(err, &d) || !strings.Contains(d.Reason, "refused the password") || d.Next == "" {
			t.Fatalf("Next: %v", err)
		}
	}
	if calls := m.get().calls; len(calls) != 1 {
		t.Errorf("the server was asked %d times: %q", len(calls), calls)
	}
	now = now.Add(6 * time.Minute)
	if _, err := tr.Next(t.Context(), ""); err == nil || len(m.get().calls) != 2 {
		t.Errorf("after six minutes: %v, %q", err, m.get().calls)
	}
}

func TestOpenAttachment(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	m.files["at_0_A"] = strings.Repeat("x", 1000)
	m.files["p:/B c?d"] = "odd"
	tr := m.open(t, nil)
	read := func(guid string, max int64) (string, error) {
		r, err := tr.Open(t.Context(), chat.Attachment{GUID: guid}, max)
		if err != nil {
			return "", err
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		return string(data), err
	}
	if s, err := read("at_0_A", 1000); err != nil || len(s) != 1000 {
		t.Errorf("Open has %d bytes, %v", len(s), err)
	}
	testworld.Equal(t, testworld.Got(read("p:/B c?d", 10))(t), "odd", "Open")
	testworld.Fails(t, testworld.Err(read("at_0_A", 999)), "", "Open returns more than was allowed")
	// No length in front.
	m.set(func() {
		m.fault = func(w http.ResponseWriter, _ *http.Request) bool {
			for range 10 {
				_, _ = io.WriteString(w, "0123456789")
				w.(http.Flusher).Flush()
			}
			return true
		}
	})
	if s, err := read("at_0_A", 100); err != nil || len(s) != 100 {
		t.Errorf("Open has %d bytes, %v", len(s), err)
	}
	if s, err := read("at_0_A", 99); err == nil {
		t.Errorf("Open has %d bytes and no error", len(s))
	}
	m.set(func() { m.fault = nil })
	for _, guid := range []string{"at_1", "", ".."} {
		if _, err := read(guid, 99); err == nil || leaks(err.Error()) {
			t.Errorf("Open(%q): %v", guid, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(m *mac)
		want   map[string]chat.FactState
	}{
		{"all well", func(*mac) {}, map[string]chat.FactState{
			"BlueBubbles server": chat.OK, "the Mac": chat.OK, "private API": chat.OK, "iMessage account": chat.OK,
			"messages": chat.OK, "event socket": chat.OK, "sending": chat.Unchecked,
		}},
		{"macOS 26 without the private API", func(m *mac) { m.info["os_version"] = "26.0" }, map[string]chat.FactState{"private API": chat.Unchecked}},
		{"macOS 26 with it", func(m *mac) {
			m.info["os_version"], m.info["private_api"], m.info["helper_connected"] = "26.0", true, true
		},
			map[string]chat.FactState{"private API": chat.OK}},
		{"no socket", func(m *mac) { m.deaf = true }, map[string]chat.FactState{"event socket": chat.Bad}},
		{"an early server", func(m *mac) { m.info = object{"os_version": "10.15", "server_version": "0.9"} }, map[string]chat.FactState{
			"iMessage account": chat.Unchecked, "messages": chat.OK,
		}},
		{"no right to the database", func(m *mac) { m.fault = answer(500, `{"message":"x"}`) }, map[string]chat.FactState{"messages": chat.Bad}},
		{"down", func(m *mac) {
			m.fault = func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(502); return true }
		}, map[string]chat.FactState{"BlueBubbles server": chat.Bad}},
	} {
		m := newMac(t)
		tt.change(m)
		got := map[string]chat.FactState{}
		for _, f := range m.open(t, nil).Check(t.Context()) {
			got[f.Name] = f.State
			if leaks(f.Detail+f.Next) || f.Detail == "" {
				t.Errorf("%s: %+v", tt.name, f)
			}
		}
		for name, state := range tt.want {
			testworld.Equal(t, got[name], state, "%s: %s", tt.name, name)
		}
		testworld.Equal(t, len(m.get().sent), 0, "%s: Check sent something", tt.name)
	}
}

// The password is never in a place that others could see but the query itself.
func TestPasswordInQueryOnly(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	var seen []string
	m.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		q := r.URL.Query()
		q.Del("guid")
		head, _ := url.QueryUnescape(r.URL.Path + q.Encode() + strings.Join(r.Header.Values("Referer"), ""))
		m.set(func() { seen = append(seen, head) })
		return false
	}
	tr := m.open(t, nil)
	mustBegin(t, tr)
	tr.Check(t.Context())
	m.set(func() {
		if len(seen) == 0 || leaks(strings.Join(seen, " ")) {
			t.Errorf("the server saw %q", seen)
		}
	})
	testworld.Fails(t, testworld.Err(os.Stat("password")), "", "a file was written")
}
