package bluebubbles

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/phone/chat"
)

// An api asks one server.
type api struct {
	opts   Options
	base   *url.URL
	dialer *net.Dialer
	client *http.Client
	secret secret
}

// A Transport speaks to one server. The caller must call Close, which waits for the socket's
// goroutine.
type Transport struct {
	api

	// The socket. Its goroutine is started by the first query that succeeds.
	start     sync.Once
	ctx       context.Context
	stop      context.CancelFunc
	done      sync.WaitGroup
	connected atomic.Bool
	wake      chan struct{} // has one place: more than "look again" is never to be said

	info atomic.Pointer[info] // what the server said of itself last

	// What only Next uses: since when rows are held back, and when the server was last asked
	// who it is.
	held    map[int64]time.Time
	checked time.Time
}

// Open checks the options, the password's file too. It does not speak to the server.
func Open(o Options) (*Transport, error) {
	o.defaults()
	base, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if _, err := readPassword(o.PasswordFile); err != nil {
		return nil, err
	}
	t := &Transport{
		api: api{
			opts: o, base: base, secret: secret{file: o.PasswordFile, rest: o.Refused, now: o.Now},
			dialer: &net.Dialer{Timeout: 10 * time.Second},
		},
		wake: make(chan struct{}, 1),
		held: map[int64]time.Time{},
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	if base.Scheme == "http" {
		t.dialer.Control = controlPrivate
	}
	t.client = &http.Client{
		Transport: &http.Transport{
			Proxy: t.proxy(), DialContext: execx.DialContext(t.dialer), ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
		},
		// The next request would name this one, with the password, as where it came from.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return t, nil
}

// proxy returns how proxies are found: for https only, which they cannot read.
func (a *api) proxy() func(*http.Request) (*url.URL, error) {
	if a.base.Scheme == "http" {
		return nil
	}
	return http.ProxyFromEnvironment
}

var errPublic = errors.New("not an address in a private network")

// controlPrivate refuses to connect to a public address, whatever its name resolves to.
func controlPrivate(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, "%")
	if !private(host) {
		return errPublic
	}
	return nil
}

// Name returns "bluebubbles".
func (t *Transport) Name() string { return "bluebubbles" }

// Close ends the socket and what is under way, and waits.
func (t *Transport) Close() error {
	t.start.Do(func() {}) // no goroutine from here on
	t.stop()
	t.done.Wait()
	t.client.CloseIdleConnections()
	return nil
}

// degraded says in the owner's words that the server cannot be used for now.
func (a *api) degraded(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	d := &chat.Degraded{Reason: "BlueBubbles at " + a.base.Host + ": " + a.redact(err.Error()), Next: advice.Of(err), Err: a.hide(err)}
	var api *apiError
	switch {
	case errors.Is(err, errRefused):
		d.Next = "put the server's password into " + a.opts.PasswordFile
	case errors.As(err, &api) && api.status == http.StatusNotFound:
		d.Next = "check that the URL is that of a BlueBubbles server"
	case errors.As(err, &api):
		d.Next = "look at the server's log on the Mac"
	}
	return d
}

// hidden is an error whose text has no password, and which can still be recognised.
type hidden struct {
	text string
	err  error
}

func (h hidden) Error() string        { return h.text }
func (h hidden) Is(target error) bool { return errors.Is(h.err, target) }

// hide returns the error without what its text must not say.
func (a *api) hide(err error) error { return hidden{a.redact(err.Error()), err} }

// redact removes the password from a text.
func (a *api) redact(s string) string { return a.secret.redact(s) }
