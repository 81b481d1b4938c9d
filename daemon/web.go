package daemon

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"netsky/agent"
	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/home"
	"netsky/internal/proc"
)

// URLFile holds the dashboard's address while the daemon runs.
const URLFile = home.RunDir + "/url"

// A port in use by another program is retried after these times, the first doubled each time.
const (
	portSoon  = time.Second
	portEvery = 16 * time.Second
)

// A Web describes how the dashboard is served.
type Web struct {
	URL   string `json:"url,omitempty"`   // "": not served at the moment
	Error string `json:"error,omitempty"` // why
	Taken bool   `json:"taken,omitempty"` // another program uses its port
}

var errNoRecords = errors.New("cannot open the records")

// web serves the dashboard until something fails, and keeps the reason for those who ask.
func (d *daemon) web(ctx context.Context) error {
	err := d.serveWeb(ctx)
	if ctx.Err() == nil {
		d.setWeb(nil, Web{Error: reasonOf(err)})
	}
	return err
}

func reasonOf(err error) string {
	if err == nil {
		return "it ended by itself"
	}
	return strings.TrimPrefix(err.Error(), "dashboard: ")
}

func (d *daemon) setWeb(s *dashboard.Server, w Web) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.server, d.served = s, w
}

func (d *daemon) webNow() (*dashboard.Server, Web) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.server, d.served
}

// webListen listens on the configured address. While another program uses it, it waits
// until the address is free and uses no other.
func (d *daemon) webListen(ctx context.Context, s *dashboard.Server) (net.Listener, error) {
	said := ""
	for wait := portSoon; ; wait = min(2*wait, portEvery) { // who uses it takes all processes to find out
		l, err := s.Listen(ctx, d.o.Listen)
		if !errors.Is(err, access.ErrTaken) {
			return l, err
		}
		if why := reasonOf(err); why != said {
			d.o.Log.Warn("dashboard", "error", why)
			d.setWeb(nil, Web{Error: why, Taken: true})
			said = why
		}
		if err := proc.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (d *daemon) serveWeb(ctx context.Context) error {
	token, err := access.Token(d.o.Home)
	if err != nil {
		return err
	}
	var encrypt *tls.Config
	if d.o.TLS != nil {
		if encrypt, err = d.o.TLS(); err != nil {
			return err
		}
	}
	works := dashboard.NewTrees(dashboard.TreesOptions{Home: d.o.Home, Bus: d.o.Bus, Records: d.database, Record: d.o.Launcher.Journal.Record, Check: d.o.Check, Up: d.isUp})
	defer func() {
		if err := works.Close(); err != nil {
			d.o.Log.Warn("worktrees", "error", err)
		}
	}()
	s, err := dashboard.New(dashboard.Options{
		Desk: d.o.Desk, Work: works, Costs: costs{d}, Home: d.o.Home, Records: d.reader, Agents: agents{d.watchdog, d.runtimes, d.o.Home}, Panes: d.screens, Bus: d.o.Bus, Token: token,
		TLS: encrypt, Wide: d.o.Wide, Mistake: d.o.Mistake, Version: d.o.Version, Log: d.o.Log.With("part", "dashboard"),
	})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := d.webListen(ctx, s)
	if err != nil {
		return err
	}
	base := s.URL(l.Addr())
	if err := d.o.Home.WriteFile(URLFile, []byte(base+"\n"), false); err != nil {
		l.Close()
		return err
	}
	d.setWeb(s, Web{URL: base})
	defer d.setWeb(nil, Web{Error: "the daemon is stopping"})
	defer func() {
		if d.lock.Here() {
			d.o.Home.Remove(URLFile)
		}
	}()
	return s.Serve(ctx, l)
}

// reader returns the open database, as the dashboard reads it.
func (d *daemon) reader() (dashboard.Reader, error) {
	if db := d.database(); db != nil {
		return db, nil
	}
	return nil, errNoRecords
}

// webRoutes are the door's requests about dashboard access, which is the owner's.
func (d *daemon) webRoutes(mux *http.ServeMux) {
	handle := func(path string, do func(s *dashboard.Server, url string, r *http.Request) (any, error)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			var a webAnswer
			if err := d.may(r, "dashboard"); err != nil {
				a.Failed = reasonOf(err)
			} else if s, web := d.webNow(); s == nil {
				a.Web = web
				if a.Web.Error == "" {
					a.Web.Error = "still starting"
				}
			} else if v, err := do(s, web.URL, r); err != nil {
				a.Failed = reasonOf(err)
			} else {
				a.Web = web
				a.Value, _ = json.Marshal(v) // strings and numbers always encode
			}
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(a)
		})
	}
	handle("POST /dashboard/link", func(s *dashboard.Server, url string, _ *http.Request) (any, error) { return s.Link(url) })
	handle("POST /dashboard/rotate", func(s *dashboard.Server, _ string, _ *http.Request) (any, error) { return nil, s.Rotate() })
	handle("POST /dashboard/sign-out", func(s *dashboard.Server, _ string, r *http.Request) (any, error) {
		return s.SignOut(r.URL.Query().Get("browser"))
	})
	handle("GET /dashboard/browsers", func(s *dashboard.Server, _ string, _ *http.Request) (any, error) { return s.Browsers(), nil })
}

type webAnswer struct {
	Web    Web
	Failed string          // why the request failed
	Value  json.RawMessage // the answer
}

// A NotServed is returned by requests that need the dashboard while it is not served.
type NotServed struct{ Web Web }

func (e *NotServed) Error() string { return "dashboard: not served: " + e.Web.Error }

// Advice returns what to do next if another program has the port.
func (e *NotServed) Advice() string {
	if !e.Web.Taken {
		return ""
	}
	return "`netsky dashboard --free-port` has this home take a free port, and keep it (`listen = \"127.0.0.1:0\"` under [dashboard] in\n" +
		"netsky.toml); or once the port is free, the dashboard is back within a second"
}

func askWeb(ctx context.Context, home home.Dir, method, path string, answer any) error {
	var a webAnswer
	switch err := call(ctx, home, method, path, &a); {
	case err != nil:
		return err
	case a.Failed != "":
		return errors.New("dashboard: " + a.Failed)
	case a.Web.URL == "":
		return &NotServed{a.Web}
	case answer == nil:
		return nil
	}
	return json.Unmarshal(a.Value, answer)
}

// Link returns a link that signs in one browser.
func Link(ctx context.Context, home home.Dir) (l access.Link, err error) {
	err = askWeb(ctx, home, http.MethodPost, "/dashboard/link", &l)
	return l, err
}

// Rotate replaces the dashboard's token and signs out all browsers.
func Rotate(ctx context.Context, home home.Dir) error {
	return askWeb(ctx, home, http.MethodPost, "/dashboard/rotate", nil)
}

// Browsers returns the browsers that are signed in to the dashboard.
func Browsers(ctx context.Context, home home.Dir) (list []access.Browser, err error) {
	err = askWeb(ctx, home, http.MethodGet, "/dashboard/browsers", &list)
	return list, err
}

// SignOut signs a browser out of the dashboard, all of them for "", and returns how many.
func SignOut(ctx context.Context, home home.Dir, id string) (n int, err error) {
	err = askWeb(ctx, home, http.MethodPost, "/dashboard/sign-out?browser="+url.QueryEscape(id), &n)
	return n, err
}

// isUp reports whether an agent runs, as far as the watchdog knows.
func (d *daemon) isUp(ctx context.Context, id agent.ID) bool {
	list, err := d.watchdog.Statuses(ctx)
	if err != nil {
		return false
	}
	st := list.Find(id)
	return st.State != "" && st.Alive()
}
