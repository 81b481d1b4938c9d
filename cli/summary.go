package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/spawn"
)

// statusLine prints the state in one short line, for tmux. It never fails
// loudly: a status line shows what it can. width is the room there is, 0 without end.
func (a *app) statusLine(ctx context.Context, width int) error {
	text := func(s string) error {
		fmt.Fprintln(a.stdout(), cut(s, width))
		return nil
	}
	if _, err := a.home(); err != nil {
		return errors.Join(text("netsky: "+firstLine(err.Error())), exitError{status(err), errTold})
	}
	l, err := a.launcher()
	if err != nil {
		return text("netsky: " + firstLine(err.Error()))
	}
	list, err := l.Inspect(ctx)
	if err != nil && len(list) == 0 {
		return text("netsky: tmux does not answer")
	}
	unread, err := a.unread(l)
	if err != nil {
		unread = 0
	}
	fmt.Fprintln(a.stdout(), shortLine(list, unread, width))
	return nil
}

// shortLine is the state in at most width columns. A state is written whole or
// not at all: with less room agents give way to counts, those that need nobody
// first.
func shortLine(list spawn.Statuses, unread, width int) string {
	var all, urgent, urgentCounts, calmCounts []string
	counts := make(map[agent.State]int)
	for _, s := range list {
		if s.State == agent.Down {
			continue
		}
		name := s.Agent.N()
		if s.Agent == agent.Infinity {
			name = "∞"
		}
		all = append(all, name+":"+string(s.State))
		counts[s.State]++
	}
	needed := 0
	for i, state := range urgency {
		switch n := counts[state]; {
		case n == 0:
		case i < calm:
			needed += n
			urgentCounts = append(urgentCounts, fmt.Sprintf("%d %s", n, state))
			for _, word := range all {
				if strings.HasSuffix(word, ":"+string(state)) {
					urgent = append(urgent, word)
				}
			}
		default:
			calmCounts = append(calmCounts, fmt.Sprintf("%d %s", n, state))
		}
	}
	var mail []string
	if unread > 0 {
		mail = []string{fmt.Sprintf("mail:%d", unread)}
	}
	if len(all) == 0 {
		all = []string{"no agents"}
	}
	up := []string{fmt.Sprintf("%d up", len(all)-needed)}
	if len(all) == needed {
		up = nil
	}
	few := []string{fmt.Sprintf("!%d", needed)}
	if needed == 0 {
		few = []string{"ok"}
	}
	for _, words := range [][][]string{
		{all, mail}, {urgent, mail, calmCounts}, {urgent, mail, up}, {urgentCounts, mail, calmCounts}, {urgentCounts, mail, up}, {urgentCounts, mail}, {few, mail},
	} {
		line := strings.Join(slices.Concat(words...), " ")
		if line != "" && (width == 0 || utf8.RuneCountInString(line) <= width) {
			return line
		}
	}
	return cut(few[0], width)
}

// summary is `netsky` alone: the state in three lines and the next step.
func (a *app) summary(c *cli.Context) error {
	if c.Bool("version") {
		return a.version()
	}
	if c.NArg() > 0 {
		return a.unknownVerb(c.Args().First(), c.Args().Tail())
	}
	a.lenient = true
	v, err := a.view(c.Context)
	if err != nil {
		return err
	}
	waiting, poisoned := 0, 0
	var up, dead, owed []agent.ID // in the order people do: agent0 first; owed are down, and mail waits for them
	for _, s := range v.Agents {
		switch s.State {
		case agent.Down:
			if s.Inbox+s.Claimed > 0 {
				owed = append(owed, s.Agent)
			}
		case agent.Dead, agent.Hung, agent.CrashLooping:
			dead = append(dead, s.Agent)
		default:
			up = append(up, s.Agent)
		}
		waiting += s.Inbox + s.Claimed
		poisoned += max(s.Poison, 0)
	}
	fmt.Fprintf(a.stdout(), "agents up: %d   daemon: %s\n", len(up), v.Daemon.State)
	fmt.Fprintf(a.stdout(), "mail for you: %d\n", v.Unread)
	fmt.Fprintf(a.stdout(), "not yet read by agents: %d\n", waiting)
	at, asks := v.atPane()
	_, what, blocked := v.blocked()
	next := ""
	switch {
	case len(dead) > 1 && len(up) == 0:
		next = "netsky status says how they ended; netsky up starts them again"
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
	case poisoned > 0:
		next = "netsky channel poison ls lists what could not be read"
	case len(owed) > 0:
		next = fmt.Sprintf("netsky up %s starts it, and it takes the mail that waits for it", owed[0])
	case len(up) == 1 && up[0] == agent.Infinity: // it repairs; work is for the others
		next = "netsky up starts agent0 and the clones"
	default:
		next = fmt.Sprintf("netsky ask %s \"…\" gives %[1]s work; netsky help lists the verbs", up[0])
	}
	fmt.Fprintln(a.stdout(), "next:", a.called(next))
	return nil
}
