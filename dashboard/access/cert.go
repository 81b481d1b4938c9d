package access

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"netsky/home"
)

// Certificate makes the TLS configuration from a certificate and its key, each in a PEM
// file. A renewed certificate is used without a restart. The names in it are accepted
// as names of the server.
func Certificate(cert, key string) (*tls.Config, error) {
	c := &certificate{cert: cert, key: key}
	if _, err := c.current(); err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	return &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current() },
		MinVersion:     tls.VersionTLS12,
	}, nil
}

type certificate struct {
	cert, key string // files

	mu      sync.Mutex // guards the fields below
	pair    *tls.Certificate
	changed time.Time // of the file that it was read from
}

// current returns the certificate in the file, or the previous one if that can't be
// read, for example while it is being renewed.
func (c *certificate) current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.cert)
	if err == nil && c.pair != nil && info.ModTime().Equal(c.changed) {
		return c.pair, nil
	}
	pair := tls.Certificate{}
	if err == nil {
		pair, err = c.load()
	}
	switch {
	case err == nil:
		c.pair, c.changed = &pair, info.ModTime()
	case c.pair == nil:
		return nil, err
	}
	return c.pair, nil
}

func (c *certificate) load() (pair tls.Certificate, err error) {
	const limit = 1 << 20
	cert, err := home.ReadOwn(c.cert, limit)
	if err != nil {
		return pair, err
	}
	key, err := home.ReadOwn(c.key, limit)
	if err != nil {
		return pair, err
	}
	return tls.X509KeyPair(cert, key)
}

// leaf returns the server's certificate, or nil if there is none.
func leaf(c *tls.Config) *x509.Certificate {
	if c == nil {
		return nil
	}
	var pair *tls.Certificate
	if c.GetCertificate != nil {
		pair, _ = c.GetCertificate(&tls.ClientHelloInfo{})
	} else if len(c.Certificates) > 0 {
		pair = &c.Certificates[0]
	}
	if pair == nil {
		return nil
	}
	return pair.Leaf
}

// certified reports whether the certificate is valid for the name. A browser that used
// another name would have refused the certificate.
func (g *Guard) certified(name string) bool {
	c := leaf(g.o.TLS)
	return c != nil && c.VerifyHostname(strings.Trim(name, "[]")) == nil
}

// URL returns where a browser reaches what is served on the address: by the name in the
// certificate, else on this machine if it is a wildcard address.
func (g *Guard) URL(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if g.o.TLS == nil {
		return "http://" + net.JoinHostPort(host, port)
	}
	if c := leaf(g.o.TLS); c != nil && c.VerifyHostname(host) != nil {
		for _, name := range c.DNSNames {
			if !strings.HasPrefix(name, "*.") {
				host = name
				break
			}
		}
	}
	return "https://" + net.JoinHostPort(host, port)
}
