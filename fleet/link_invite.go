package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

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
	Role team.Role // what it may ask of others
	Sure bool      // do not ask
	Says io.Writer // what netsky there says besides
}

// askWithin is how long a host may take to ask to join, once it has shown its code.
const askWithin = 30 * time.Second

// Invite has a host join the team. What its netsky shows comes by ssh, so its code is compared
// here with that of the request. A crash leaves a tunnel to a host that asks no more, which
// the next Invite takes up.
func (f Links) Invite(ctx context.Context, r InviteRequest) (q team.Request, err error) {
	if err := f.May("link invite"); err != nil {
		return q, err
	}
	self, err := team.LoadSelf(f.Home)
	switch {
	case err != nil:
		return q, err
	case !self.IsOwner():
		return q, usagef("link invite: only the owner's host lets others in, %s", self.Owner)
	case self.Server.Address != "":
		return q, advice.With(usagef("link invite: the team's server is not here, but at %s", self.Server.Address), "`netsky link join %s` on the other host joins", self.Server.Address)
	}
	if r.Name == "" {
		r.Name = r.Host.Name
	}
	if r.Name, err = hostName(r.Name); err != nil {
		return q, err
	}
	r.Host.Name = r.Name
	if err := f.keepTunnel(r.Name, &r.Host); err != nil {
		return q, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.keepTunnel(r.Name, nil))
		}
	}()
	if err := (Daemon(f)).WantDaemon(ctx); err != nil {
		return q, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	shown, joined := &firstLine{line: make(chan string, 1)}, make(chan error, 1)
	go func() {
		client := ssh.Client{Home: f.Home, Environ: f.Environ}
		joined <- client.Run(ctx, r.Host, nil, shown, r.Says, "", "link", "join", "tunnel:", "--name", r.Name, "--yes")
	}()
	select {
	case line := <-shown.line:
		if _, none := team.ParseCode(line); none != nil { // it was let in before, and says that it has joined
			if q.Name = r.Name; !f.holds(r.Name) {
				err = fmt.Errorf("%s: shows no code, but %.60q", r.Name, line)
			}
			break
		}
		if q, err = f.asking(ctx, r.Name, line); err == nil {
			err = f.letIn(ctx, r, q)
		}
	case err = <-joined:
		if err == nil {
			err = errors.New("it shows no code")
		}
		err = fmt.Errorf("%s: `netsky link join` there: %w", r.Name, err)
	}
	if err != nil {
		return q, err
	}
	if err := <-joined; err != nil {
		return q, fmt.Errorf("%s is let in, but has not joined: %w; the same again goes on", r.Name, err)
	}
	return q, nil
}

// holds reports whether the team has a host of that name.
func (f Links) holds(name string) bool {
	t, err := team.Load(f.Home)
	_, is := t.Host(name)
	return err == nil && is
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
func (f Links) letIn(ctx context.Context, r InviteRequest, q team.Request) error {
	if !r.Sure {
		question := fmt.Sprintf("%s asks to join, and shows the code of its request, %s. Let it in, as %s? [y/N] ", q.Name, q.Code, r.Role)
		if err := f.sure("link invite", question); err != nil {
			_, rerr := team.Reject(f.Home, q.Code)
			return errors.Join(err, rerr)
		}
	}
	_, err := f.Approve(ctx, q.Code, r.Role)
	return err
}

// keepTunnel has the daemon keep a tunnel to a host open, or with nil no more.
func (f Links) keepTunnel(name string, to *ssh.Host) error {
	list, err := link.LoadTunnels(f.Home)
	if err != nil {
		return err
	}
	if _, is := list[name]; to == nil && !is {
		return nil
	}
	delete(list, name)
	if to != nil {
		list[name] = *to
	}
	return list.Save(f.Home)
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
