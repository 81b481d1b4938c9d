package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/attention"
	"netsky/fleet"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/link"
	"netsky/link/server"
	"netsky/link/ssh"
	"netsky/link/team"
)

// linkVerbs says which hosts belong together.
type linkVerbs struct{ *app }

func (a linkVerbs) linkCommand() *cli.Command {
	name := &cli.StringFlag{Name: "name", Usage: "this host is called `NAME` in the team: [a-z][a-z0-9-]*", DefaultText: "the machine's name"}
	creds := &cli.StringFlag{Name: "creds", Usage: "sign in at a NATS server that is not netsky's with the credentials in `FILE`"}
	role := &cli.StringFlag{Name: "role", Value: string(team.Worker), Usage: "`ROLE`: a worker sends mail and says how it is, an owner may also ask other hosts to do things"}
	sure := func(usage string) cli.Flag { return &cli.BoolFlag{Name: "yes", Usage: usage} }
	return &cli.Command{
		Name: "link", Usage: "show this host's team, or change who belongs to it", Action: a.status, Args: true,
		Description: "Hosts of a team send each other's agents mail: agent3@build1 is agent3 on build1. One of them, the owner's, is where your\n" +
			"phone and pages are; it alone says who belongs to the team. A server that one of them runs keeps the mail until it is taken.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Subcommands: []*cli.Command{
			{
				Name: "serve", Usage: "found a team, and run its server on this host", Action: a.serve,
				Description: "The server listens for programs of this machine alone, which ssh is: other hosts join by `netsky link join ssh:USER@THIS`.\n" +
					"With --listen it has TLS. With --server the team uses a NATS server with JetStream that runs already.",
				Flags: []cli.Flag{
					name, creds, &cli.StringFlag{Name: "listen", Usage: "listen at `HOST:PORT`", DefaultText: server.Local},
					&cli.StringFlag{Name: "server", Usage: "use the NATS server at `URL`, nats://HOST:PORT or tls://HOST:PORT"},
				},
			},
			{
				Name: "join", Usage: "join a team", ArgsUsage: "ADDRESS", Action: a.join,
				Description: "ADDRESS is where the team's server is: ssh:USER@HOST, tls://HOST:PORT, or nats://HOST:PORT. It prints a code; on the owner's\n" +
					"host, `netsky link approve CODE` lets this host in. Compare the code: whoever is in between can't have the same.\n" +
					"Ctrl-C ends the wait, and the same again goes on with the same code.",
				Flags: []cli.Flag{name, creds, sure("do not ask whether the owner has approved that code")},
			},
			{
				Name: "invite", Usage: "have a host join that this one can reach by ssh", ArgsUsage: "HOST", Action: a.invite,
				Description: "HOST is a name from netsky.toml or any destination of ssh's. This host, which runs the team's server, keeps a tunnel to it open;\n" +
					"the other needs no way to this one. The code that it shows comes by ssh, and is compared with that of its request.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "name", Usage: "the other host is called `NAME` in the team: [a-z][a-z0-9-]*", DefaultText: "HOST"},
					role, sure("do not ask"),
				},
			},
			{
				Name: "approve", Usage: "let the host into the team that shows a code", ArgsUsage: "CODE", Action: a.approve,
				Flags: []cli.Flag{role},
			},
			daemonVerbs(a).linkServerCommand(),
			{Name: "reject", Usage: "keep the host out that shows a code", ArgsUsage: "CODE", Action: a.reject},
			{
				Name: "remove", Usage: "remove a host from the team, whose key counts no longer", ArgsUsage: "HOST", Action: a.remove,
				Flags: []cli.Flag{sure("do not ask")},
			},
			{
				Name: "move", Usage: "use another server of this host's team", ArgsUsage: "[ADDRESS]", Action: a.move, Args: true,
				Description: "Without ADDRESS this host runs the team's server from now on; then `netsky link move ADDRESS` on each other host, the owner's first.\n" +
					"With the address of a NATS server, the owner's host comes first. What others have not fetched yet is sent again.",
				Flags: []cli.Flag{creds, sure("do not ask")},
			},
			{
				Name: "leave", Usage: "forget the team; mail for other hosts stays here", Action: a.leave,
				Flags: []cli.Flag{sure("do not ask")},
			},
		},
	}
}

func (a linkVerbs) links() (fleet.Links, error) {
	f, err := a.fleet()
	return fleet.Links{Fleet: f}, err
}

func (a linkVerbs) status(c *cli.Context) error {
	if c.NArg() > 0 {
		return a.needsSub(c)
	}
	f, err := a.links()
	if err != nil {
		return err
	}
	v, err := f.Status(c.Context)
	switch {
	case c.Bool("json"):
		return errors.Join(a.writeJSON(v), err)
	case v.Host == "" && err == nil:
		a.print("this host belongs to no team; `netsky link serve` founds one, with this as the owner's host; `netsky link join ADDRESS` joins one")
		return nil
	case v.Host != "":
		a.printLink(v, time.Now())
	}
	return err
}

func (a linkVerbs) printLink(v fleet.LinkStatus, now time.Time) {
	a.print("%s is a host of the team of %s, by the server %s", v.Host, v.Owner, serverLine(v))
	if r := v.Link; r != nil {
		a.printReport(v, now)
	} else {
		a.print("! the daemon has not run the link yet; `netsky daemon restart` starts it")
	}
	longest := 0
	for _, h := range v.Hosts {
		longest = max(longest, len(h.Name))
	}
	for _, h := range v.Hosts {
		line := fmt.Sprintf("%-*s  %-6s  key %s  since %s", longest, h.Name, h.Role, team.Short(h.Key), h.Added.Local().Format(time.DateOnly))
		switch {
		case h.This:
			line += "  this host"
		case h.Waiting > 0:
			line += fmt.Sprintf("  %d to send", h.Waiting)
		}
		if h.Known != nil {
			line += "  " + h.Known.Summary(now)
		}
		if v.Link != nil {
			line += mailLine(v.Link.Hosts[h.Name], now)
		}
		a.print("%s", line)
	}
	for _, q := range v.Asks {
		switch q.State {
		case team.Pending:
			a.print("%s asks to join, for %s more; if it shows the code %s: `netsky link approve %[3]s`%[4]s", q.Name, words.Span(q.Until().Sub(now)), q.Code, q.Caution())
		case team.Refused:
			a.print("%s asked to join, and was refused: %s", q.Name, q.Reason)
		}
	}
}

// printReport says how the link is.
func (a linkVerbs) printReport(v fleet.LinkStatus, now time.Time) {
	r := *v.Link
	switch {
	case now.Sub(r.Seen) >= attention.LinkSettles:
		a.print("! the daemon does not run the link; it did until %s", agent.Clock(r.Seen, now))
	case !r.Connected:
		a.print("! not connected since %s: %s", agent.Clock(r.Since, now), r.Why)
	default:
		a.print("connected since %s", agent.Clock(r.Since, now))
	}
	for _, about := range slices.Sorted(maps.Keys(r.Troubles)) {
		sign, note := "!", ""
		for _, h := range v.Hosts {
			if about == link.TunnelTo+h.Name && h.Known != nil && h.Known.CameAnotherWay(r) {
				sign, note = " ", "; "+h.Name+" was heard of later, so it comes another way"
			}
		}
		a.print("%s %s, since %s: %s%s", sign, about, agent.Clock(r.Troubles[about].Since, now), r.Troubles[about].What, note)
	}
}

// mailLine says when mail last went to a host, and came from it.
func mailLine(h link.HostReport, now time.Time) (line string) {
	if !h.LastSent.IsZero() {
		line += "  sent " + words.Ago(now.Sub(h.LastSent)) + " ago"
	}
	if !h.LastIn.IsZero() {
		line += "  received " + words.Ago(now.Sub(h.LastIn)) + " ago"
	}
	return line
}

// serverLine says where the server is.
func serverLine(v fleet.LinkStatus) string {
	switch s := v.Serves; {
	case v.Server == link.ByTunnel:
		return "of " + v.Owner + ", which keeps a tunnel to here"
	case v.Server != "":
		return "at " + v.Server
	case s == nil:
		return "of this host, which is not to run"
	case s.Error != "":
		return "of this host, which does not run: " + s.Error
	case s.Address == "":
		return "of this host, which is not running"
	case s.Fingerprint != "":
		return "of this host, at " + s.Address + ", whose certificate has the fingerprint " + s.Fingerprint
	default:
		return "of this host, at " + s.Address
	}
}

func (a linkVerbs) serve(c *cli.Context) error {
	f, err := a.links()
	if err != nil {
		return err
	}
	creds, err := credsFile(c)
	if err != nil {
		return err
	}
	s, err := f.Serve(c.Context, fleet.ServeRequest{Name: c.String("name"), Listen: c.String("listen"), Server: c.String("server"), Creds: creds})
	if err != nil {
		return err
	}
	switch {
	case s.Server.Address != "":
		a.print("%s is the owner's host of a team at %s; others join with `netsky link join %[2]s`", s.Name, s.Server.Address)
	case s.Address == "":
		a.print("%s serves the team of %s as soon as the server has started; `netsky link` says whether it has", s.Name, s.Owner)
	case strings.HasPrefix(s.Address, "tls:"):
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.Address, "tls://"))
		a.print("%s serves the team of %s at %s; others join with `netsky link join tls://HOST:%s`", s.Name, s.Owner, s.Address, port)
	default:
		a.print("%s serves the team of %s\nnext: `netsky link invite HOST` has a host join that ssh reaches from here; one that reaches this host by ssh joins with `netsky link join ssh:USER@HOST`", s.Name, s.Owner)
	}
	return nil
}

// credsFile returns the absolute path of --creds.
func credsFile(c *cli.Context) (string, error) {
	if c.String("creds") == "" {
		return "", nil
	}
	return filepath.Abs(c.String("creds"))
}

func (a linkVerbs) join(c *cli.Context) error {
	f, err := a.links()
	if err != nil {
		return err
	}
	at, err := one(c, "the address of the team's server: ssh:USER@HOST, tls://HOST:PORT or nats://HOST:PORT")
	if err != nil {
		return err
	}
	creds, err := credsFile(c)
	if err != nil {
		return err
	}
	shown := false
	s, err := f.Join(c.Context, fleet.JoinRequest{Name: c.String("name"), Address: at, Creds: creds, Yes: c.Bool("yes"), Show: func(code, owner string) {
		shown = true
		a.print("%s", code)
		if at != link.ByTunnel { // there `netsky link invite` has the code, and asks
			a.warn("on %s, compare this code and type `netsky link approve %s`; waiting for it, Ctrl-C ends that", owner, code)
		}
	}})
	if shown && errors.Is(err, context.Canceled) {
		return advice.With(errors.New("link join: ended; the request stays for ten minutes"), "the same again goes on with the same code")
	}
	if err != nil {
		return err
	}
	a.print("%s has joined the team of %s; `netsky link` shows it", s.Name, s.Owner)
	return nil
}

func (a linkVerbs) invite(c *cli.Context) error {
	f, err := a.links()
	if err != nil {
		return err
	}
	to, err := one(c, "a host: a name from netsky.toml, or as ssh takes it")
	if err != nil {
		return err
	}
	var role team.Role // it stays as it is
	if c.IsSet("role") {
		if role, err = team.ParseRole(c.String("role")); err != nil {
			return usagef("link invite: --%w", err)
		}
	}
	_, host, err := hostVerbs(a).reach(to)
	if err != nil {
		return err
	}
	q, err := f.Invite(c.Context, fleet.InviteRequest{Host: host, Name: c.String("name"), Role: role, Sure: c.Bool("yes"), Says: a.err})
	if errors.Is(err, ssh.ErrNoNetsky) || errors.Is(err, ssh.ErrUnreachable) {
		return reached(c.Context, host, err)
	}
	if err != nil {
		return err
	}
	a.admitted(q.Name, q.Role)
	return nil
}

func (a linkVerbs) admitted(name string, role team.Role) {
	a.print("%s is in the team, as %s; its agents are %s and so on", name, role, agent.Root.At(name))
}

func (a linkVerbs) approve(c *cli.Context) error {
	f, err := a.links()
	if err != nil {
		return err
	}
	code, err := one(c, "the code that the other host shows")
	if err != nil {
		return err
	}
	role, err := team.ParseRole(c.String("role"))
	if err != nil {
		return usagef("link approve: --%w", err)
	}
	q, err := f.Approve(c.Context, code, role)
	if err != nil {
		return err
	}
	a.admitted(q.Name, q.Role)
	return nil
}

func (a linkVerbs) reject(c *cli.Context) error {
	f, err := a.links()
	if err != nil {
		return err
	}
	code, err := one(c, "the code that the other host shows")
	if err != nil {
		return err
	}
	q, err := f.Reject(c.Context, code)
	if err != nil {
		return err
	}
	a.print("%s is not let in; it can ask again at %s", q.Name, q.Until().Local().Format("15:04"))
	return nil
}

func (a linkVerbs) remove(c *cli.Context) error {
	f, err := a.links()
	if err != nil {
		return err
	}
	host, err := one(c, "a host of the team; `netsky link` lists them")
	if err != nil {
		return err
	}
	if err := f.Remove(c.Context, host, c.Bool("yes")); err != nil {
		return err
	}
	a.print("%s is in the team no longer, and its key counts no longer", host)
	return nil
}

func (a linkVerbs) move(c *cli.Context) error {
	f, err := a.links()
	if err != nil {
		return err
	}
	at := ""
	if c.NArg() > 0 {
		if at, err = one(c, "the address of the team's server"); err != nil {
			return err
		}
	}
	creds, err := credsFile(c)
	if err != nil {
		return err
	}
	s, err := f.Move(c.Context, fleet.MoveRequest{Address: at, Creds: creds, Sure: c.Bool("yes")})
	if err != nil {
		return err
	}
	if s.Server.Address == "" {
		a.print("%s runs the server of the team of %s; on each other host: `netsky link move ADDRESS`, such as ssh:USER@HOST", s.Name, s.Owner)
		return nil
	}
	a.print("%s reaches the team of %s at %s", s.Name, s.Owner, s.Server.Address)
	return nil
}

func (a linkVerbs) leave(c *cli.Context) error {
	f, err := a.links()
	if err != nil {
		return err
	}
	was, unread := f.Status(c.Context) // which Leave says
	stays, err := f.Leave(c.Context, c.Bool("yes"))
	if err != nil {
		return err
	}
	if was.Host == "" && unread == nil {
		a.print("this host has forgotten the key with which it had asked to join a team")
		return nil
	}
	a.print("left the team; what waits for other hosts stays here: %s", stays)
	if was.Host != was.Owner {
		a.print("next: on %s, `netsky link remove %s` takes it off the list, unless it was removed before", was.Owner, was.Host)
	}
	return nil
}
