package execx

import (
	"context"
	"errors"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// Where netsky is linked without the C library's lookups, so that one file runs with every
// release of that library, os/user reads /etc/passwd alone and net only /etc/hosts and DNS.
// What nsswitch.conf adds (a directory of users, mDNS) is then known to getent.

// getent returns the lines of the system's database about a key, nil if it has none.
func getent(ctx context.Context, database, key string) []string {
	file := Find(os.Getenv("PATH")+":/usr/bin:/bin", "getent")
	if file == "" {
		return nil
	}
	out, err := Question{Program: file, Args: []string{database, "--", key}, Env: append(os.Environ(), "LC_ALL=C"), Dir: "/", Wait: 10 * time.Second}.Ask(ctx)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// LookupUser returns the user of that number, wherever the system keeps its users.
func LookupUser(uid int) (*user.User, error) {
	id := strconv.Itoa(uid)
	u, err := user.LookupId(id)
	if err == nil {
		return u, nil
	}
	for _, line := range getent(context.Background(), "passwd", id) {
		if f := strings.Split(line, ":"); len(f) == 7 && f[2] == id {
			return &user.User{Username: f[0], Uid: f[2], Gid: f[3], Name: f[4], HomeDir: f[5]}, nil
		}
	}
	return nil, err
}

// ResolveTCPAddr is net.ResolveTCPAddr for names of any kind.
func ResolveTCPAddr(network, address string) (*net.TCPAddr, error) {
	tcp, err := net.ResolveTCPAddr(network, address)
	for _, other := range elsewhere(context.Background(), address, err) {
		if tcp, err := net.ResolveTCPAddr(network, other); err == nil {
			return tcp, nil
		}
	}
	return tcp, err
}

// DialContext is d.DialContext for names of any kind.
func DialContext(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		for _, other := range elsewhere(ctx, address, err) {
			if conn, err = d.DialContext(ctx, network, other); err == nil {
				break
			}
		}
		return conn, err
	}
}

// elsewhere returns the addresses of a host that net did not find, for which err says so.
func elsewhere(ctx context.Context, address string, err error) (list []string) {
	var lookup *net.DNSError
	host, port, bad := net.SplitHostPort(address)
	if !errors.As(err, &lookup) || lookup.IsTimeout || bad != nil {
		return nil
	}
	for _, line := range getent(ctx, "ahosts", host) {
		if ip, kind, _ := strings.Cut(line, " "); strings.HasPrefix(strings.TrimSpace(kind), "STREAM") {
			list = append(list, net.JoinHostPort(ip, port))
		}
	}
	return list
}
