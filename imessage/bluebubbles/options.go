package bluebubbles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/advice"
	"netsky/internal/proc"
)

// Options say where the server is. Times that are zero have their defaults.
type Options struct {
	URL string // https://mac.example.net, or http:// with an address in a private network
	// PasswordFile has the server's password, and is readable by its owner only. It is read at
	// each call, so that another password counts at once.
	PasswordFile string
	// Refuse says why a file must not be sent; nil refuses none.
	Refuse func(path string) error

	Poll    time.Duration // between queries without the socket: 5 s
	Watch   time.Duration // between queries with the socket: 15 s
	Wait    time.Duration // how long Next waits: 30 s
	Hold    time.Duration // how long a message without a body is held back: 10 s
	Again   time.Duration // how long rows are looked at again: 5 min
	Settle  time.Duration // after which a message that is not there was not sent: 10 min
	Look    time.Duration // how long Send looks for a row that the server did not report: 15 s
	Timeout time.Duration // of a query: 30 s
	Sending time.Duration // of sending a text, for which the server takes up to 30 s: 45 s
	Fetch   time.Duration // of an attachment: 3 min
	Refused time.Duration // until a refused password is tried again: 5 min

	Now func() time.Time
}

func (o *Options) defaults() {
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{
		{&o.Poll, 5 * time.Second},
		{&o.Watch, 15 * time.Second},
		{&o.Wait, 30 * time.Second},
		{&o.Hold, 10 * time.Second},
		{&o.Again, 5 * time.Minute},
		{&o.Settle, 10 * time.Minute},
		{&o.Look, 15 * time.Second},
		{&o.Timeout, 30 * time.Second},
		{&o.Sending, 45 * time.Second},
		{&o.Fetch, 3 * time.Minute},
		{&o.Refused, 5 * time.Minute},
	} {
		if *d.value == 0 {
			*d.value = d.usual
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// parseURL returns the server's address. Its error does not repeat an address that may have a
// password in it.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return nil, errors.New("BlueBubbles: the server's URL is not an address such as https://mac.example.net")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, advice.With(fmt.Errorf("BlueBubbles: the URL of %s has more than an address", u.Host),
			"put the password into the password file")
	}
	switch {
	case u.Scheme == "https":
	case u.Scheme != "http":
		return nil, fmt.Errorf("BlueBubbles: %s: neither https nor http", u.Host)
	case !private(u.Hostname()):
		return nil, advice.With(fmt.Errorf("BlueBubbles: %s: plain http outside of a private network would show the password to others", u.Host),
			"use https, or the address in your own network or VPN")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// vpn is the range that Tailscale and other private networks use besides the private ones.
var vpn = netip.MustParsePrefix("100.64.0.0/10")

// private reports whether a host is this machine or one in a private network.
func private(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		// The address behind a name is checked when it is dialed.
		return strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".local")
	}
	addr = addr.Unmap()
	return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || vpn.Contains(addr)
}

// readPassword reads a file that nobody but its owner can read. A pipe is not waited for.
func readPassword(path string) (string, error) {
	fd, err := proc.Open(path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return "", fmt.Errorf("BlueBubbles' password: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("BlueBubbles' password: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("BlueBubbles' password: %s is not a file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", advice.With(fmt.Errorf("BlueBubbles' password: %s can be read by others (mode %04o)", path, mode),
			"run `chmod 600 %s`", advice.Word(path))
	}
	const most = 1024
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return "", fmt.Errorf("BlueBubbles' password: %w", err)
	}
	password := strings.TrimRight(string(data), "\r\n")
	switch {
	case len(data) > most:
		return "", fmt.Errorf("BlueBubbles' password: %s is longer than a password", path)
	case strings.TrimSpace(password) == "":
		return "", fmt.Errorf("BlueBubbles' password: %s is empty", path)
	case strings.ContainsAny(password, "\r\n"):
		return "", fmt.Errorf("BlueBubbles' password: %s has more than one line", path)
	}
	return password, nil
}
