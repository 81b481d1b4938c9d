package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
)

// statusLine prints the state in one short line, for tmux. It never fails
// loudly: a status line shows what it can.
func (a *app) statusLine(ctx context.Context) error {
	if _, err := a.home(); err != nil {
		fmt.Fprintln(a.stdout(), "netsky: "+firstLine(err.Error()))
		return exitError{status(err), errTold}
	}
	l, err := a.launcher()
	if err != nil {
		fmt.Fprintln(a.stdout(), "netsky: "+firstLine(err.Error()))
		return nil
	}
	list, err := l.Inspect(ctx)
	if err != nil && len(list) == 0 {
		fmt.Fprintln(a.stdout(), "netsky: tmux does not answer")
		return nil
	}
	var words []string
	for _, s := range list {
		if s.State == agent.Down {
			continue
		}
		name := s.Agent.N()
		if s.Agent == agent.Infinity {
			name = "∞"
		}
		words = append(words, name+":"+string(s.State))
	}
	if len(words) == 0 {
		words = append(words, "no agents")
	}
	if n, err := a.unread(l); err == nil && n > 0 {
		words = append(words, fmt.Sprintf("mail:%d", n))
	}
	fmt.Fprintln(a.stdout(), strings.Join(words, " "))
	return nil
}

// summary is `netsky` alone: the state in three lines and the next step.
func (a *app) summary(c *cli.Context) error {
	if c.Bool("version") {
		return a.version()
	}
	if c.NArg() > 0 {
		return a.unknownVerb(c.Args().First(), c.Args().Tail())
	}
	v, err := a.view(c.Context)
	if err != nil {
		return err
	}
	waiting := 0
	var up, dead []agent.ID // in the order people do: agent0 first
	for _, s := range v.Agents {
		switch s.State {
		case agent.Down:
		case agent.Dead, agent.Hung, agent.CrashLooping:
			dead = append(dead, s.Agent)
		default:
			up = append(up, s.Agent)
		}
		waiting += s.Inbox + s.Claimed
	}
	fmt.Fprintf(a.stdout(), "agents up: %d   daemon: %s\n", len(up), v.Daemon.State)
	fmt.Fprintf(a.stdout(), "mail for you: %d\n", v.Unread)
	fmt.Fprintf(a.stdout(), "waiting for agents: %d\n", waiting)
	at, asks := v.atPane()
	_, what, blocked := v.blocked()
	next := ""
	switch {
	case len(dead) > 0:
		next = fmt.Sprintf("netsky show %s says how it ended; netsky agent %s starts it again", dead[0], dead[0].N())
	case len(up) == 0:
		next = "netsky up starts agents"
	case v.Daemon.Wanted && v.Daemon.State != "running":
		next = "netsky up starts the daemon again"
	case v.Asked > 0:
		next = "netsky approvals lists what agents ask for"
	case asks:
		next = fmt.Sprintf("netsky attach %s answers what it waits for; netsky status says what", at)
	case v.Unread > 0:
		next = "netsky inbox shows your mail"
	case blocked:
		next = strings.ReplaceAll(what, "`", "")
	default:
		next = fmt.Sprintf("netsky ask %s \"…\" gives %[1]s work; netsky help lists the verbs", up[0])
	}
	fmt.Fprintln(a.stdout(), "next:", a.called(next))
	return nil
}
