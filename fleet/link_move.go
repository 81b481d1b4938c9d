package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/link"
	"netsky/link/server"
	"netsky/link/ssh"
	"netsky/link/team"
)

// A MoveRequest says where the server of this host's team is from now on.
type MoveRequest struct {
	Address string // ssh:DESTINATION, tls://HOST:PORT or nats://HOST:PORT; "": this host runs it
	Creds   string // a file with credentials, of a server that is not netsky's
	Sure    bool   // do not ask
}

// Move has this host use another server of its team. What the one before has and others have
// not fetched is sent again, by each host that moves.
func (f Links) Move(ctx context.Context, r MoveRequest) (s team.Self, err error) {
	if err := f.May("link move"); err != nil {
		return s, err
	}
	at := team.Server{Address: r.Address, Creds: r.Creds}
	if err := f.checkServer(at); err != nil {
		return s, err
	}
	self, err := team.LoadSelf(f.Home)
	if err != nil {
		return s, err
	}
	already := usagef("link move: this host uses that server already")
	if self.Server == at {
		return self, already
	}
	question := fmt.Sprintf("%s then runs the team's server, and each other host needs `netsky link move ADDRESS`. Move it here? [y/N] ", self.Name)
	if at.Address != "" {
		if at, err = f.found(ctx, self, at); err != nil {
			return s, err
		}
		if self.Server == at { // with the same certificate
			return self, already
		}
		question = fmt.Sprintf("%s then reaches its team at %s", self.Name, at.Address)
		if at.Fingerprint != "" {
			question += ", whose certificate has the fingerprint " + at.Fingerprint + ", as `netsky link` must say there"
		}
		if self.Server.Address == "" {
			question += "; the server here ends"
		}
		question += ". Move? [y/N] "
	}
	if !r.Sure {
		if err := f.sure("link move", question); err != nil {
			return s, err
		}
	}
	told := time.Now()
	if at.Address != "" {
		err = f.Home.Remove(server.SettingsFile)
	} else if _, err = server.Load(f.Home); errors.Is(err, server.ErrNotServed) {
		err = server.Settings{Listen: server.Local}.Save(f.Home)
	}
	if err != nil {
		return s, err
	}
	if s, err = team.Reach(f.Home, at); err != nil { // last, so that whoever is killed before can repeat it
		return s, err
	}
	f.log("the team's server is now at %s", cmp.Or(at.Address, "this host"))
	if err := Daemon(f).WantDaemon(ctx); err != nil || at.Address != "" {
		return s, err
	}
	_, err = f.served(ctx, told)
	return s, err
}

// found returns how a server is reached, if it is one of this host's team.
func (f Links) found(ctx context.Context, self team.Self, at team.Server) (team.Server, error) {
	way := link.Way{Home: f.Home, SSH: ssh.Client{Home: f.Home, Environ: f.Environ}, Server: at}
	if strings.HasPrefix(at.Address, "ssh:") { // whose server that is, the link says once it has a tunnel there
		_, err := way.Served(ctx)
		return at, err
	}
	key, err := team.LoadKey(f.Home)
	if err != nil {
		return at, err
	}
	self.Server = at
	nc, at, err := f.reach(ctx, at, link.SignIn(self, key))
	if err != nil {
		return at, err
	}
	defer nc.Close()
	if err := link.Known(ctx, f.Home, self, nc); err != nil {
		return at, fmt.Errorf("%s: %w", at.Address, err)
	}
	return at, nil
}
