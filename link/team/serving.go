package team

import (
	"fmt"
	"net"
	"strconv"

	"netsky/home"
)

// ServerFile says that this host runs the team's server; it is there only then.
const ServerFile = "state/link/server.json"

// Local is where a server listens at first: only this machine's programs reach it, ssh among
// them. It takes a port that is free, and keeps that.
const Local = "127.0.0.1:0"

// A Serving is where this host's server listens.
type Serving struct {
	Listen string `json:"listen"`        // HOST:PORT
	Port   int    `json:"port,omitzero"` // that the server took, if Listen has port 0
}

// LoadServing returns where this host's server listens; the error matches fs.ErrNotExist if it
// runs none.
func LoadServing(h home.Dir) (Serving, error) { return home.Load[Serving](h, ServerFile) }

// Check returns what is wrong with it.
func (s Serving) Check() error {
	host, port, err := net.SplitHostPort(s.Listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || host == "" {
		return fmt.Errorf("%q: must be an address and a port, such as %s", s.Listen, Local)
	}
	return nil
}

// Save has this host run a server; its daemon notices.
func (s Serving) Save(h home.Dir) error {
	if err := s.Check(); err != nil {
		return err
	}
	return h.Save(ServerFile, s, true)
}
