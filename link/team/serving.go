package team

import (
	"fmt"
	"net"
	"strconv"

	"netsky/home"
)

// ServerFile says that this host runs the team's server; it is there only then.
const ServerFile = "state/link/server.json"

// A Serving is where this host's server listens.
type Serving struct {
	Listen string `json:"listen"` // a host's name or address
	Port   int    `json:"port"`   // 0: any that is free, which whoever chooses it writes here
	TLS    bool   `json:"tls,omitzero"`
}

// Address is the address for clients on this machine.
func (s Serving) Address() string { return net.JoinHostPort(s.Listen, strconv.Itoa(s.Port)) }

// ParseServing returns the place HOST:PORT. Only an address of this machine alone needs no TLS.
func ParseServing(s string) (v Serving, err error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return v, fmt.Errorf("%q: must be HOST:PORT, such as 127.0.0.1:0", s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" {
		return v, fmt.Errorf("%q: must be HOST:PORT, such as 127.0.0.1:0 or 0.0.0.0:4222", s)
	}
	ip := net.ParseIP(host)
	return Serving{Listen: host, Port: int(n), TLS: host != "localhost" && (ip == nil || !ip.IsLoopback())}, nil
}

// LoadServing returns where this host's server listens; the error matches fs.ErrNotExist if it
// runs none.
func LoadServing(h home.Dir) (Serving, error) { return home.Load[Serving](h, ServerFile) }

// SaveServing writes where this host's server listens.
func SaveServing(h home.Dir, s Serving) error { return h.Save(ServerFile, s, true) }
