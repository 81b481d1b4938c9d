package link

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"netsky/home"
	"netsky/internal/proc"
	"netsky/link/ssh"
	"netsky/link/team"
)

// TunnelsFile names the hosts to which this one keeps a way to its server open.
const TunnelsFile = "state/link/tunnels.json"

// Tunnels are those hosts: their destinations for ssh, by name.
type Tunnels map[string]ssh.Host

// LoadTunnels returns the hosts; without any it is empty.
func LoadTunnels(h home.Dir) (Tunnels, error) {
	t, err := home.Load[Tunnels](h, TunnelsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Tunnels{}, nil
	}
	return t, err
}

// Save has the daemon keep ways to these hosts open, and to no others.
func (t Tunnels) Save(h home.Dir) error { return h.Save(TunnelsFile, t, true) }

// partTime is how long a way stays open to a host that was removed, so that it hears that from the server.
const partTime = 20 * time.Second

// keepTunnels keeps the ways open: each ends, there, in the socket that a host with the server's
// address "tunnel:" connects to. One stays open while the team changes.
func keepTunnels(ctx context.Context, o Options, p *report) error {
	running, parted := make(map[ssh.Host]context.CancelFunc), make(map[ssh.Host]time.Time)
	var all sync.WaitGroup
	defer all.Wait()
	for {
		want, err := o.wantTunnels()
		p.trouble("tunnels", err)
		for _, to := range want {
			if running[to] != nil || err != nil {
				continue
			}
			tctx, cancel := context.WithCancel(ctx)
			running[to] = cancel
			all.Go(func() { o.reach(tctx, p, to) })
		}
		for to, cancel := range running {
			next, wanted := want[to.Name]
			switch {
			case err != nil:
			case next == to:
				delete(parted, to)
			case !wanted && parted[to].IsZero():
				parted[to] = time.Now()
			case wanted || time.Since(parted[to]) > partTime:
				cancel()
				delete(running, to)
				delete(parted, to)
				p.trouble(TunnelTo+to.Name, nil)
			}
		}
		if err := proc.Sleep(ctx, proc.Tick(lookEvery)); err != nil {
			for _, cancel := range running {
				cancel()
			}
			return err
		}
	}
}

// TunnelTo begins what a trouble with a tunnel is about.
const TunnelTo = "tunnel to "

// wantTunnels returns the hosts to which a way is to be kept open, none unless this one has the server.
func (o Options) wantTunnels() (Tunnels, error) {
	want, err := LoadTunnels(o.Home)
	if len(want) == 0 || err != nil {
		return want, err
	}
	self, err := team.LoadSelf(o.Home)
	if errors.Is(err, team.ErrNone) || err == nil && self.Server.Address != "" {
		return nil, nil
	}
	return want, err
}

// reach keeps the way to one host open until ctx ends.
func (o Options) reach(ctx context.Context, p *report, to ssh.Host) {
	about := TunnelTo + to.Name
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		err := o.reachOnce(ctx, p, to, about)
		if ctx.Err() != nil {
			return
		}
		p.trouble(about, err)
		if proc.Sleep(ctx, wait) != nil {
			return
		}
	}
}

func (o Options) reachOnce(ctx context.Context, p *report, to ssh.Host, about string) error {
	here, err := servedHere(o.Home)
	if err != nil {
		return err
	}
	there, err := SocketThere(ctx, o.SSH, to)
	if err != nil {
		return err
	}
	return forward(ctx, o.SSH, ssh.Tunnel{Host: to, Here: here.at(), There: there, Reverse: true}, func(st ssh.State) {
		var err error
		if !st.Up {
			err = errors.New(st.Why)
		}
		if ctx.Err() == nil {
			p.trouble(about, err)
		}
	}, func(context.Context) bool {
		now, err := servedHere(o.Home)
		return err == nil && now.at() != here.at()
	})
}

// SocketThere returns the path of the socket in the home on another host in which a tunnel to
// that host ends.
func SocketThere(ctx context.Context, c ssh.Client, to ssh.Host) (string, error) {
	out, err := c.Ask(ctx, to, connectTime, nil, `h="${NETSKY_HOME:-$HOME/.netsky}"; [ -d "$h/run" ] || { echo "no netsky has run there yet: there is no $h/run" >&2; exit 1; }; printf %s "$h"`)
	if err != nil {
		return "", err
	}
	if out = strings.TrimSpace(out); !path.IsAbs(out) {
		return "", fmt.Errorf("%s: its home is at %q, which is no path", to.Name, out)
	}
	return out + "/" + Socket, nil
}
