package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/link"
	"netsky/link/ssh"
	"netsky/link/team"
)

// An InviteRequest has a host join the team of this one that can be reached by ssh from here.
// It reaches the team's server by a tunnel that this host keeps open.
type InviteRequest struct {
	Host ssh.Host
	Name string    // of the host in the team; "" is the name of Host
	Role team.Role // what it may ask of others; "" is a worker, or what it is already
	Sure bool      // do not ask
	Says io.Writer // what netsky there says besides
}

// askWithin is how long a host may take to ask to join, once it has shown its code.
const askWithin = 30 * time.Second

// sayWithin is after how long a tunnel that is down is worth a word: the first attempt may come before netsky has run there.
const sayWithin = 5 * time.Second

// Invite has a host join the team. What its netsky shows comes by ssh, so its code is compared
// here with that of the request. A crash leaves a tunnel to a host that asks no more, which
// the next Invite takes up. A host that is in the team already gets its tunnel anew, as its
// address may have changed.
func (f Links) Invite(ctx context.Context, r InviteRequest) (q team.Request, err error) {
	if err := f.May("link invite"); err != nil {
		return q, err
	}
	self, err := team.LoadOwner(f.Home)
	switch {
	case err != nil:
		return q, err
	case self.Server.Address != "":
		return q, advice.With(usagef("link invite: the team's server is not here, but at %s", self.Server.Address), "`netsky link join %s` on the other host joins", self.Server.Address)
	}
	if r.Name == "" {
		r.Name = nameOf(r.Host)
	}
	if r.Name, err = hostName(r.Name); err != nil {
		return q, err
	}
	r.Host.Name = r.Name
	had, err := f.keepTunnel(r.Name, &r.Host)
	if err != nil {
		return q, err
	}
	defer func() {
		if err != nil {
			_, kerr := f.keepTunnel(r.Name, had)
			err = errors.Join(err, kerr)
		}
	}()
	if err := f.services(ctx); err != nil {
		return q, err
	}
	ctx, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	watch.Go(func() {
		for proc.Sleep(ctx, sayWithin) == nil {
			if why := f.tunnelDown(r.Name); why != "" {
				f.warn("%s: the tunnel to it is down: %s; it is tried again, for up to a minute", r.Name, why)
				return
			}
		}
	})
	shown, joined := &firstLine{line: make(chan string, 1)}, make(chan error, 1)
	go func() {
		client := ssh.Client{Home: f.Home, Environ: f.Environ}
		joined <- client.Run(ctx, r.Host, nil, shown, r.Says, ssh.Piped+"=1", "link", "join", link.ByTunnel, "--name", r.Name, "--yes")
	}()
	select {
	case line := <-shown.line:
		if _, none := team.ParseCode(line); none != nil { // it was let in before, and says that it has joined
			q, err = f.again(r)
			break
		}
		if q, err = f.asking(ctx, r.Name, line); err == nil {
			q, err = f.letIn(ctx, r, q)
		}
	case err = <-joined:
		if err == nil {
			err = errors.New("it shows no code")
		}
		if !errors.Is(err, ssh.ErrNoNetsky) && !errors.Is(err, ssh.ErrUnreachable) {
			err = fmt.Errorf("%s: `netsky link join` there: %w", r.Name, err)
			if why := f.tunnelDown(r.Name); why != "" {
				err = advice.With(fmt.Errorf("%w: the tunnel to it is down: %s", err, why),
					"the daemon can't answer what ssh asks: `ssh -o BatchMode=yes %s true` must work", advice.Word(r.Host.Dest))
			}
		}
	}
	if err != nil {
		return q, err
	}
	if err := <-joined; err != nil {
		return q, fmt.Errorf("%s is let in, but has not joined: %w; the same again goes on", r.Name, err)
	}
	return q, nil
}

// tunnelDown says why the tunnel to a host is down, "" if nothing is known of that.
func (f Links) tunnelDown(name string) string {
	r, _ := link.LoadReport(f.Home) // without a report there is no trouble
	t, _ := r.Tunnel(name)
	return t.What
}

// nameOf returns a name for a host: that of netsky.toml, or of the machine in a destination of ssh's.
func nameOf(h ssh.Host) string {
	if h.Name != h.Dest || agent.IsHost(h.Name) {
		return h.Name
	}
	machine, isURL := strings.CutPrefix(h.Dest, "ssh://")
	machine = machine[strings.LastIndexByte(machine, '@')+1:]
	if isURL {
		machine, _, _ = strings.Cut(machine, ":")
	}
	return cmp.Or(fitName(machine), h.Name)
}

// again returns the host of the team that is invited once more, in the role that it is to have now.
func (f Links) again(r InviteRequest) (q team.Request, err error) {
	t, err := team.Load(f.Home)
	if err != nil {
		return q, err
	}
	h, in := t.Host(r.Name)
	switch {
	case !in:
		return q, advice.With(fmt.Errorf("%s: is in a team that is not this one, or was removed from it", r.Name), "`netsky link leave` there, then the same again")
	case r.Role == "" || r.Role == h.Role:
		return team.Request{Name: h.Name, Role: h.Role}, nil
	case !r.Sure:
		if err := f.sure("link invite", fmt.Sprintf("%s is in the team, as %s. Make it %s? [y/N] ", h.Name, h.Role, r.Role)); err != nil {
			return q, err
		}
	}
	h.Role = r.Role
	_, err = team.Admit(f.Home, h)
	return team.Request{Name: h.Name, Role: h.Role}, err
}

// asking returns the request of a host with a code, which is about to be here.
func (f Links) asking(ctx context.Context, name, code string) (team.Request, error) {
	for deadline := time.Now().Add(askWithin); ; {
		list, err := team.Requests(f.Home)
		if i := slices.IndexFunc(list, func(q team.Request) bool { return q.State == team.Pending && q.Code == code && q.Name == name }); i >= 0 {
			return list[i], nil
		}
		if time.Now().After(deadline) {
			return team.Request{}, errors.Join(fmt.Errorf("no request of %s with the code %.40q has come: somebody is between the hosts, or the server here does not run", name, code), err)
		}
		if err := proc.Sleep(ctx, time.Second/4); err != nil {
			return team.Request{}, err
		}
	}
}

// letIn approves a request, after a yes.
func (f Links) letIn(ctx context.Context, r InviteRequest, q team.Request) (team.Request, error) {
	role := cmp.Or(r.Role, team.Worker)
	if !r.Sure {
		question := fmt.Sprintf("%s asks to join, and shows the code of its request, %s%s. Let it in, as %s? [y/N] ", q.Name, q.Code, q.Caution(), role)
		if err := f.sure("link invite", question); err != nil {
			return q, errors.Join(err, team.Drop(f.Home, q))
		}
	}
	return f.Approve(ctx, q.Code, role)
}

// lockWait is how long another invitation, or a change of the team, may take to be written.
const lockWait = 10 * time.Second

// keepTunnel has the daemon keep a tunnel to a host open, or with nil no more. It returns which
// it kept before, nil for none.
func (f Links) keepTunnel(name string, to *ssh.Host) (had *ssh.Host, err error) {
	ctx, stop := context.WithTimeout(context.Background(), lockWait)
	defer stop()
	lock, err := f.Home.WaitLock(ctx, home.LinkLock, nil)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	list, err := link.LoadTunnels(f.Home)
	if err != nil {
		return nil, err
	}
	if is, ok := list[name]; ok {
		had = &is
	} else if to == nil {
		return nil, nil
	}
	delete(list, name)
	if to != nil {
		list[name] = *to
	}
	return had, list.Save(f.Home)
}

// A firstLine passes on the first line that is written to it.
type firstLine struct {
	line chan string

	mu   sync.Mutex // guards the fields below
	text bytes.Buffer
	done bool
}

func (l *firstLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done && l.text.Len() < 1<<10 {
		l.text.Write(p)
		if first, _, whole := strings.Cut(l.text.String(), "\n"); whole {
			l.line <- strings.TrimSpace(first)
			l.done = true
		}
	}
	return len(p), nil
}
