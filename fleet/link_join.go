package fleet

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"netsky/fleet/plan"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/link"
	"netsky/link/ssh"
	"netsky/link/team"
)

// A JoinRequest asks the owner of a team to let this host into it.
type JoinRequest struct {
	Name    string // of this host; "" is the machine's
	Address string // ssh:DESTINATION, tls://HOST:PORT or nats://HOST:PORT
	Creds   string // a file with credentials, of a server that is not netsky's
	Yes     bool   // the owner's approval need not be confirmed here
	// Show is told the code to compare with what the owner's host shows.
	Show func(code, owner string)
}

// Join joins a team. Whoever ends it while it waits, and joins again, goes on with the same
// request.
func (f Links) Join(ctx context.Context, r JoinRequest) (s team.Self, err error) {
	if err := f.May("link join"); err != nil {
		return s, err
	}
	if r.Name, err = hostName(r.Name); err != nil {
		return s, err
	}
	at := team.Server{Address: r.Address, Creds: r.Creds}
	if err := f.checkServer(at); err != nil {
		return s, err
	}
	if err := f.Make(); err != nil {
		return s, err
	}
	switch self, err := team.LoadSelf(f.Home); {
	case err == nil && at.Address == link.ByTunnel && self.Server == at && self.Name == r.Name:
		return self, f.services(ctx) // it is invited again
	case err == nil:
		return self, advice.With(fmt.Errorf("this host is in a team already, that of %s, as %s", self.Owner, self.Name), "`netsky link leave` leaves it")
	}
	if err := f.afresh(); err != nil {
		return s, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	way := link.Way{Home: f.Home, SSH: ssh.Client{Home: f.Home, Environ: f.Environ}, Server: at}
	if err := f.tunnel(ctx, way); err != nil {
		return s, err
	}
	nc, at, err := f.reach(ctx, at, append(team.JoinOptions(at), nats.MaxReconnects(-1)))
	if err != nil {
		return s, err
	}
	defer nc.Close()
	a := team.Applicant{Home: f.Home, Name: r.Name, Server: at, Conn: nc, Show: r.Show, Confirm: func(code, owner string) (bool, error) {
		if r.Yes {
			return true, nil
		}
		answer, err := f.ask(fmt.Sprintf("%s says that the code %s was approved. Have you approved that code there? [y/N] ", owner, code),
			usagef("link join: not a terminal; --yes takes the approval as it comes"), errors.New("link join: not answered; the same again asks again"))
		return yes(answer), err
	}}
	if s, err = a.Join(ctx); err != nil {
		return s, err
	}
	f.log("this host joined the team of %s, as %s", s.Owner, s.Name)
	return s, f.services(ctx)
}

// checkServer returns what is wrong with how a server is to be reached.
func (f Links) checkServer(s team.Server) error {
	err := link.Way{Server: s}.Check()
	if dest, ok := strings.CutPrefix(s.Address, "ssh:"); ok && err == nil {
		err = ssh.Host{Dest: dest}.Check()
	}
	if err != nil {
		return &plan.UsageError{Err: err}
	}
	return nil
}

// reach connects to a server, and pins the certificate of one that no authority vouches for:
// people compare it, as part of the code for a host that joins.
func (f Links) reach(ctx context.Context, at team.Server, options []nats.Option) (*nats.Conn, team.Server, error) {
	way := link.Way{Home: f.Home, Server: at}
	nc, err := way.Connect(ctx, options...)
	for end := time.Now().Add(reachWithin); err != nil && at.Address == link.ByTunnel && time.Now().Before(end) && proc.Sleep(ctx, time.Second/4) == nil; {
		nc, err = way.Connect(ctx, options...) // that was an earlier tunnel's end
	}
	if unvouched := new(tls.CertificateVerificationError); errors.As(err, &unvouched) && len(unvouched.UnverifiedCertificates) > 0 {
		sum := sha256.Sum256(unvouched.UnverifiedCertificates[0].Raw)
		at.Fingerprint = hex.EncodeToString(sum[:])
		way.Server = at
		nc, err = way.Connect(ctx, options...)
	}
	if errors.Is(err, nats.ErrNoServers) { // as the library calls a refused connection
		err = errors.New("nothing listens there")
	}
	if err != nil {
		err = advice.With(fmt.Errorf("%s: no team's server answers: %w", at.Address, err), "`netsky link` on the owner's host says where it is")
	}
	return nc, at, err
}

// reachWithin is how long a tunnel may take to come up.
const reachWithin = 30 * time.Second

// awaitTunnel waits for the end of a tunnel that another host makes.
func (f Links) awaitTunnel(ctx context.Context) error {
	for deadline := time.Now().Add(2 * reachWithin); ; {
		conn, err := net.DialTimeout("unix", f.Home.Path(link.Socket), time.Second)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return advice.With(fmt.Errorf("no tunnel to this host after %v: %w", 2*reachWithin, err), "`netsky link invite` on the owner's host makes one")
		}
		if err := proc.Sleep(ctx, time.Second/4); err != nil {
			return err
		}
	}
}

// tunnel keeps the way to a server up until ctx ends, and waits until it is.
func (f Links) tunnel(ctx context.Context, way link.Way) error {
	switch {
	case way.Server.Address == link.ByTunnel:
		return f.awaitTunnel(ctx)
	case !strings.HasPrefix(way.Server.Address, "ssh:"):
		return nil
	}
	states, ended := make(chan ssh.State, 1), make(chan error, 1)
	go func() {
		ended <- way.Hold(ctx, func() bool { return true }, func(s ssh.State) {
			select {
			case states <- s:
			default: // the first counts
			}
		})
	}()
	wait, stop := context.WithTimeout(ctx, reachWithin)
	defer stop()
	select {
	case s := <-states:
		if s.Up {
			return nil
		}
		return advice.With(fmt.Errorf("%s: %s", way.Server.Address, s.Why), "see that `ssh` gets there without asking anything, and that `netsky link` there says that it serves")
	case err := <-ended:
		return err
	case <-wait.Done():
		return fmt.Errorf("%s: no tunnel after %v", way.Server.Address, reachWithin)
	}
}
