package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/link"
	"netsky/link/server"
	"netsky/link/team"
	"netsky/store"
)

// Links is the deeds about the team of hosts that this home belongs to.
type Links struct{ *Fleet }

// A LinkStatus is the team of this host. In no team only Asked is set, if anything is.
type LinkStatus struct {
	Host   string         `json:"host,omitempty"`
	Role   team.Role      `json:"role,omitempty"`
	Team   string         `json:"team,omitempty"`
	Owner  string         `json:"owner,omitempty"`
	Server string         `json:"server,omitempty"` // how this host reaches it; "" if it runs here
	Serves *server.State  `json:"serves,omitempty"` // what the server here says of itself, if this host is to have one
	Hosts  []LinkedHost   `json:"hosts"`
	Asks   []team.Request `json:"asks"` // who asks to join, on the owner's host
	Link   *link.Report   `json:"link,omitempty"`
}

// A LinkedHost is a host of the team.
type LinkedHost struct {
	team.Host
	This    bool `json:"this,omitempty"`    // is this one
	Waiting int  `json:"waiting,omitempty"` // messages for it that have not left this host
	// Known is what the host has told of itself, if it tells this one.
	Known *attention.Host `json:"known,omitempty"`
}

// Status returns the team of this host. What can't be read is in the error; the rest is there.
func (f Links) Status(context.Context) (v LinkStatus, err error) {
	v.Hosts, v.Asks = []LinkedHost{}, []team.Request{}
	self, err := team.LoadSelf(f.Home)
	if errors.Is(err, team.ErrNone) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v.Host, v.Team, v.Owner, v.Server = self.Name, self.Team, self.Owner, self.Server.Address
	t, err := team.Load(f.Home)
	known, kerr := attention.Hosts(f.Home, time.Now())
	err = errors.Join(err, kerr)
	for _, h := range t.Hosts {
		one := LinkedHost{Host: h, This: h.Name == self.Name}
		if one.This {
			v.Role = h.Role
		}
		if i := slices.IndexFunc(known, func(k attention.Host) bool { return k.Name == h.Name }); i >= 0 {
			one.Known = &known[i]
		}
		n, werr := f.unsent(h.Name)
		one.Waiting, err = n, errors.Join(err, werr)
		v.Hosts = append(v.Hosts, one)
	}
	if self.IsOwner() {
		asks, aerr := team.Requests(f.Home)
		v.Asks, err = append(v.Asks, asks...), errors.Join(err, aerr)
	}
	if _, serr := server.Load(f.Home); !errors.Is(serr, server.ErrNotServed) {
		state, _ := server.Look(f.Home)
		v.Serves, err = &state, errors.Join(err, serr)
	}
	switch r, rerr := link.LoadReport(f.Home); {
	case rerr == nil && r.Host == v.Host:
		if _, runs := f.Home.LockHolder(agent.DaemonName); !runs && r.Connected { // killed, it says no more
			r.Connected, r.Since, r.Why = false, r.Seen, "the daemon does not run; `netsky up` starts it"
		}
		v.Link = &r
	case rerr != nil && !errors.Is(rerr, fs.ErrNotExist):
		err = errors.Join(err, rerr)
	}
	return v, err
}

// unsent counts the messages for a host, or for all with "", that have not left this host.
func (f Links) unsent(host string) (n int, err error) {
	waiting, err := f.Launcher.Bus.Unsent()
	for to, waits := range waiting {
		if host == "" || host == to {
			n += waits
		}
	}
	return n, err
}

// A ServeRequest asks this host to run the server of its team, or to found a team.
type ServeRequest struct {
	Name   string // of this host, if it founds the team; "" is the machine's
	Listen string // HOST:PORT; "" is what it was, or any port of this machine alone
	Server string // nats://HOST:PORT or tls://HOST:PORT of a NATS server that is there already: none runs here then
	Creds  string // a file with credentials for that one
}

// A ServeResult is who this host is in its team, and where its own server is, "" as long as that
// starts.
type ServeResult struct {
	team.Self
	Address string
}

// Serve founds a team if this host has none, and has the daemon run its server, unless it is
// another's.
func (f Links) Serve(ctx context.Context, r ServeRequest) (v ServeResult, err error) {
	began := time.Now()
	if v.Self, err = f.serve(r); err != nil {
		return v, err
	}
	if err := f.services(ctx); err != nil || v.Server.Address != "" {
		return v, err
	}
	v.Address, err = f.served(ctx, began)
	return v, err
}

// services starts the daemon, which runs the link, and what starts that again: a host of a team
// may have no agents.
func (f Links) services(ctx context.Context) error {
	if err := Daemon(f).WantDaemon(ctx); err != nil {
		return err
	}
	if err := Revival(f).ReviveServices(ctx, func(string, ...any) {}); err != nil {
		f.warn("%v; nothing starts the daemon again if it dies", err)
	}
	return nil
}

// servesWithin is how long a server may take to start before whoever waits is told that it has
// not yet.
const servesWithin = 20 * time.Second

// served returns where the server of this host is, once it runs as it was last told to, at a time.
func (f Links) served(ctx context.Context, told time.Time) (string, error) {
	for end := time.Now().Add(servesWithin); time.Now().Before(end); {
		settings, err := server.Load(f.Home)
		if err != nil {
			return "", err
		}
		switch state, runs := server.Look(f.Home); {
		case runs && settings.At(state):
			return state.Address, nil
		case state.Error != "" && state.At.After(told):
			return "", advice.With(fmt.Errorf("the server does not run: %s", state.Error), "%s", state.Next)
		}
		if err := proc.Sleep(ctx, 100*time.Millisecond); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (f Links) serve(r ServeRequest) (s team.Self, err error) {
	if err := f.May("link serve"); err != nil {
		return s, err
	}
	at := team.Server{Address: r.Server, Creds: r.Creds}
	if err := f.checkServer(at); err != nil {
		return s, err
	}
	if strings.HasPrefix(at.Address, "ssh:") || at.Address == "" && at.Creds != "" || at.Address != "" && r.Listen != "" {
		return s, usagef("link serve: --server names a NATS server that runs already, as nats://HOST:PORT or tls://HOST:PORT; --creds belongs to it, --listen to one of netsky's own")
	}
	settings := server.Settings{Listen: r.Listen}
	if r.Listen == "" {
		if settings, err = server.Load(f.Home); err != nil {
			settings = server.Settings{Listen: server.Local}
		}
	}
	if err := settings.Check(); err != nil {
		return s, usagef("link serve: --listen %w", err)
	}
	name, err := hostName(r.Name)
	if err != nil {
		return s, err
	}
	if err := f.Make(); err != nil {
		return s, err
	}
	if err := f.afresh(); err != nil {
		return s, err
	}
	_, none := team.LoadSelf(f.Home)
	if _, err := team.Found(f.Home, name, at); err != nil {
		return s, err
	}
	if s, err = team.LoadSelf(f.Home); err != nil {
		return s, err
	}
	if errors.Is(none, team.ErrNone) {
		f.log("this host founded a team, as %s", s.Name)
	}
	if r.Name != "" && r.Name != s.Name {
		return s, fmt.Errorf("this host is in a team already, as %s, and keeps that name", s.Name)
	}
	if s.Server != at {
		return s, advice.With(fmt.Errorf("the server of this team is elsewhere: %s", s.Server.Address), "`netsky link move` changes that")
	}
	if at.Address == "" {
		if err := settings.Save(f.Home); err != nil {
			return s, err
		}
	}
	return s, nil
}

// afresh makes sure that nothing of an earlier team is left when this host enters another: the
// link may have written to it after that was left.
func (f Links) afresh() error {
	if _, err := team.LoadSelf(f.Home); errors.Is(err, team.ErrNone) {
		return link.Forget(f.Home)
	}
	return nil
}

// hostName returns the name of this host in a team: the given one, or the machine's made fit.
func hostName(name string) (string, error) {
	if name != "" {
		if !agent.IsHost(name) {
			return "", usagef("--name %q: must be [a-z][a-z0-9-]*, at most %d characters", name, agent.MaxHost)
		}
		return name, nil
	}
	machine, err := os.Hostname()
	if err != nil {
		return "", err
	}
	if name = fitName(machine); name == "" {
		return "", usagef("the machine is called %q, which can't be a host's name; --name NAME chooses one", machine)
	}
	return name, nil
}

// fitName makes a host's name of a machine's; "" if nothing of it is fit.
func fitName(machine string) string {
	name, _, _ := strings.Cut(strings.ToLower(machine), ".")
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, name)
	name = strings.TrimLeft(name, "-0123456789")
	return strings.TrimRight(name[:min(len(name), agent.MaxHost)], "-")
}

// Approve lets the host into the team that shows a code.
func (f Links) Approve(_ context.Context, code string, role team.Role) (team.Request, error) {
	if err := f.May("link approve"); err != nil {
		return team.Request{}, err
	}
	if _, err := team.ParseCode(code); err != nil {
		return team.Request{}, usagef("link approve: %w", err)
	}
	list, _ := team.Requests(f.Home)
	q, err := team.Approve(f.Home, code, role)
	if i := slices.IndexFunc(list, func(r team.Request) bool { return r.ID == q.ID }); err == nil && i >= 0 && list[i].Like != "" {
		f.warn("%s: its name looks like that of %s; `netsky link remove %[1]s` shuts it out", q.Name, list[i].Like)
	}
	if err == nil {
		f.log("%s was let into the team, as %s", q.Name, q.Role)
		err = f.Launcher.Bus.Link(q.Name)
	}
	return q, err
}

// Reject keeps the host out that shows a code.
func (f Links) Reject(_ context.Context, code string) (team.Request, error) {
	if err := f.May("link reject"); err != nil {
		return team.Request{}, err
	}
	if _, err := team.ParseCode(code); err != nil {
		return team.Request{}, usagef("link reject: %w", err)
	}
	return team.Reject(f.Home, code)
}

// Remove removes a host from the team, after a yes, and has the tunnel to it end, also that of an
// invitation or a removal that was cut off.
func (f Links) Remove(_ context.Context, name string, sure bool) error {
	if err := f.May("link remove"); err != nil {
		return err
	}
	if _, err := team.LoadOwner(f.Home); err != nil {
		return err
	}
	t, err := team.Load(f.Home)
	if err != nil {
		return err
	}
	h, in := t.Host(name)
	if in && name != t.Owner && !sure {
		n, err := f.unsent(name)
		if err != nil {
			return err
		}
		question := fmt.Sprintf("Remove %s (key %s, since %s)? Its key counts no longer, and it can join again only with another; what waits for it here (%s) is not delivered, which is told to whoever wrote it. [y/N] ",
			name, team.Short(h.Key), h.Added.Local().Format(time.DateOnly), messages(n))
		if err := f.sure("link remove", question); err != nil {
			return err
		}
	}
	if _, err = team.Remove(f.Home, name); err != nil && in {
		return err
	}
	if in {
		f.log("%s was removed from the team", name)
	}
	had, terr := f.keepTunnel(name, nil)
	if had != nil {
		err = nil
	}
	return errors.Join(err, terr)
}

// Leave forgets the team, after a yes, and says how much mail for other hosts stays here. In no
// team it forgets the key with which this host has asked to join one.
func (f Links) Leave(_ context.Context, sure bool) (stays string, err error) {
	if err := f.May("link leave"); err != nil {
		return "", err
	}
	self, err := team.LoadSelf(f.Home)
	none := errors.Is(err, team.ErrNone)
	if none && !f.Home.Mark(team.KeyFile).Exists() {
		return "", err
	}
	unsent, uerr := f.unsent("")
	if uerr != nil {
		return "", uerr
	}
	stays = messages(unsent)
	if !sure {
		about := "Leave the team? This host then belongs to none"
		switch {
		case none:
			about = "Forget the key with which this host has asked to join a team? It can ask again, with another"
		case err == nil && self.IsOwner():
			about = "This is the owner's host: leave, and so end the team for all its hosts"
		}
		if err := f.sure("link leave", fmt.Sprintf("%s; what waits for other hosts stays here: %s. [y/N] ", about, stays)); err != nil {
			return "", err
		}
	}
	err = errors.Join(team.Leave(f.Home), link.Forget(f.Home))
	if err == nil && !none {
		f.log("this host has left the team of %s", self.Owner)
	}
	return stays, err
}

// log records what became of the team.
func (f Links) log(format string, args ...any) {
	_ = f.Launcher.Journal.Record(context.Background(), store.AddLog{Part: "link", Actor: f.Actor, Text: fmt.Sprintf(format, args...)}) // else it is in the spool, or nowhere
}

func messages(n int) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// sure asks on the terminal.
func (f Links) sure(verb, question string) error {
	nothing := fmt.Errorf("%s: nothing was done", verb)
	answer, err := f.ask(question, usagef("%s: not a terminal; --yes confirms", verb), nothing)
	if err == nil && !yes(answer) {
		err = nothing
	}
	return err
}
