package link

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"netsky/home"
	"netsky/internal/execx"
	"netsky/internal/proc"
	"netsky/link/ssh"
	"netsky/link/team"
)

// Socket is where the tunnel to the server ends, below the home.
const Socket = "run/link.sock"

// ServedFile says where the server of a host listens, while it runs.
const ServedFile = "run/link-server.json"

type served struct {
	Address     string `json:"address"`              // nats://127.0.0.1:4222, or tls://
	Fingerprint string `json:"fingerprint,omitzero"` // of its own certificate
	Error       string `json:"error,omitzero"`       // why it has ended
}

// servedHere returns where the server of this host listens.
func servedHere(h home.Dir) (s served, err error) {
	if s, err = home.Load[served](h, ServedFile); err == nil && s.Address == "" {
		err = errors.New(s.Error)
	}
	if err != nil {
		err = fmt.Errorf("the server of this host does not run: %w", err)
	}
	return s, err
}

// at returns where it listens, as HOST:PORT.
func (s served) at() string { return s.Address[strings.LastIndexByte(s.Address, '/')+1:] }

// Fingerprint returns that of the server's own certificate; "" if it has none, or an authority
// vouches for it.
func (w Way) Fingerprint() string {
	if w.Server.Address == "" {
		s, _ := home.Load[served](w.Home, ServedFile)
		return s.Fingerprint
	}
	return w.Server.Fingerprint
}

// A Way leads to the server of a team.
type Way struct {
	Home   home.Dir
	SSH    ssh.Client
	Server team.Server
}

// How the address of a server begins.
const (
	bySSH    = "ssh:"    // a tunnel from here
	ByTunnel = "tunnel:" // a tunnel that another host makes
	byTLS    = "tls://"
	byNATS   = "nats://"
)

// Check returns what is wrong with the address.
func (w Way) Check() error {
	at := w.Server.Address
	for _, kind := range []string{bySSH, ByTunnel, byTLS, byNATS} {
		if rest, ok := strings.CutPrefix(at, kind); ok && (rest != "" || kind == ByTunnel) {
			return nil
		}
	}
	if at == "" {
		return nil
	}
	return fmt.Errorf("the server's address %q: must be ssh:DESTINATION, tls://HOST:PORT or nats://HOST:PORT", at)
}

// connectTime is how long a server may take to answer.
const connectTime = 10 * time.Second

// Connect connects to the server with the options, which say how to sign in.
func (w Way) Connect(ctx context.Context, options ...nats.Option) (*nats.Conn, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	at := w.Server.Address
	options = append(options, nats.SetCustomDialer(dialer{w, ctx}), nats.Timeout(connectTime))
	if w.Server.Creds != "" {
		options = append(options, nats.UserCredentials(w.Server.Creds))
	}
	switch {
	case strings.HasPrefix(at, byTLS), w.Server.Fingerprint != "": // netsky's own server may be called nats://, too
		options = append(options, nats.Secure(w.tls()))
	case !strings.HasPrefix(at, byNATS):
		at = byNATS + "netsky"
		options = append(options, func(o *nats.Options) error {
			o.TLSConfig = pinned(w.Fingerprint) // if the server wants TLS
			return nil
		})
	}
	return nats.Connect(at, options...)
}

// tls accepts the certificate that is pinned; without one, what an authority vouches for.
func (w Way) tls() *tls.Config {
	if w.Server.Fingerprint == "" {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return pinned(w.Fingerprint)
}

// ErrCertificate is returned if a server has another certificate than the one that people have compared.
var ErrCertificate = errors.New("the server has another certificate than when this host joined")

// pinned accepts the one certificate of a fingerprint. With "" it accepts any, which is for a
// server behind ssh: that vouches for the machine.
func pinned(fingerprint func() string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyPeerCertificate compares the fingerprint, which says more
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			want := fingerprint()
			if len(raw) > 0 {
				if sum := sha256.Sum256(raw[0]); want == "" || hex.EncodeToString(sum[:]) == want {
					return nil
				}
			}
			return ErrCertificate
		},
	}
}

// A dialer connects to the server, however it is reached.
type dialer struct {
	w   Way
	ctx context.Context
}

func (d dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, connectTime)
	defer cancel()
	var n net.Dialer
	switch at := d.w.Server.Address; {
	case at == "":
		s, err := servedHere(d.w.Home)
		if err != nil {
			return nil, err
		}
		return n.DialContext(ctx, "tcp", s.at())
	case strings.HasPrefix(at, bySSH), strings.HasPrefix(at, ByTunnel):
		conn, err := n.DialContext(ctx, "unix", d.w.Home.Path(Socket))
		if err != nil && at == ByTunnel {
			err = fmt.Errorf("the tunnel from the owner's host is down: %w", err)
		} else if err != nil {
			err = fmt.Errorf("the tunnel is down: %w", err)
		}
		return conn, err
	}
	return execx.DialContext(&n)(ctx, network, address)
}

// Hold keeps the way up until ctx ends: a tunnel, if it is by ssh from here. changed is
// called with each new state of that. As long as it is not used, the host is asked now and then whether its
// server is elsewhere by now.
func (w Way) Hold(ctx context.Context, used func() bool, changed func(ssh.State)) error {
	dest, ours := strings.CutPrefix(w.Server.Address, bySSH)
	if !ours {
		<-ctx.Done()
		return ctx.Err()
	}
	there := ssh.Host{Name: dest, Dest: dest}
	for {
		at, err := w.servedAt(ctx, there)
		if err == nil {
			var up atomic.Bool
			err = forward(ctx, w.SSH, ssh.Tunnel{Host: there, Here: w.Home.Path(Socket), There: at}, func(st ssh.State) {
				up.Store(st.Up)
				changed(st)
			}, func(ctx context.Context) bool {
				if used() || !up.Load() {
					return false
				}
				now, err := w.servedAt(ctx, there)
				return err == nil && now != at
			})
			if err == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		changed(ssh.State{Since: time.Now(), Why: err.Error()})
		if err := proc.Sleep(ctx, connectTime); err != nil {
			return err
		}
	}
}

// Served returns where the server listens on the host to which ssh leads.
func (w Way) Served(ctx context.Context) (string, error) {
	dest := strings.TrimPrefix(w.Server.Address, bySSH)
	return w.servedAt(ctx, ssh.Host{Name: dest, Dest: dest})
}

// forward is [ssh.Client.Forward] that also ends, without an error, once elsewhere says that what the tunnel leads to
// is in another place by now.
func forward(ctx context.Context, c ssh.Client, t ssh.Tunnel, changed func(ssh.State), elsewhere func(context.Context) bool) error {
	whole := ctx
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		for proc.Sleep(ctx, proc.Tick(mostWait)) == nil {
			if elsewhere(ctx) {
				end()
			}
		}
	}()
	if err := c.Forward(ctx, t, changed); whole.Err() != nil || ctx.Err() == nil {
		return err
	}
	return nil
}

// servedAt asks a host where its server listens.
func (w Way) servedAt(ctx context.Context, there ssh.Host) (string, error) {
	out, err := w.SSH.Ask(ctx, there, connectTime, nil, `cat "${NETSKY_HOME:-$HOME/.netsky}/`+ServedFile+`"`)
	if err != nil {
		return "", err
	}
	var s served
	if err := json.Unmarshal([]byte(out), &s); err != nil || s.Address == "" {
		return "", fmt.Errorf("%s: it runs no server of a team; `netsky link serve` there starts one", there.Name)
	}
	if _, _, err := net.SplitHostPort(s.at()); err != nil {
		return "", fmt.Errorf("%s: its server listens at %q, which is no address", there.Name, s.Address)
	}
	return s.at(), nil
}
