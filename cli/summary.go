package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/config"
	"netsky/internal/words"
)

// statusLine prints the state in one short line of at most width columns, 0 for no
// limit. It is for tmux: errors appear in that line.
func (a viewVerbs) statusLine(ctx context.Context, width int) error {
	text := func(s string) error {
		fmt.Fprintln(a.stdout(), view.Cut(s, width))
		return nil
	}
	if _, err := a.home(); err != nil {
		return errors.Join(text("netsky: "+words.FirstLine(err.Error())), exitError{status(err), errTold})
	}
	l, err := a.launcher()
	if err != nil {
		return text("netsky: " + words.FirstLine(err.Error()))
	}
	list, err := l.Inspect(ctx)
	if err != nil && len(list) == 0 {
		return text("netsky: tmux does not answer")
	}
	unread, _, err := inboxVerbs(a).unread(l)
	if err != nil {
		unread = 0
	}
	// What can't be read is in status.
	within, cancel := context.WithTimeout(ctx, lineWithin)
	d, notes := view.DaemonOf(within, l.Home), []string(nil)
	cancel()
	if d.State == "hung" { // or slow: that is for status to find out
		d.State, notes = "running", []string{"daemon ?"}
	}
	found, _ := view.Needs(ctx, a.overviewOptions(l), list, d)
	fmt.Fprintln(a.stdout(), view.Line(list, len(found), unread, width, notes...))
	return nil
}

// lineWithin is how long a line for a status bar waits for the daemon.
const lineWithin = 300 * time.Millisecond

// summary runs `netsky` without a verb: the state in three lines, and the next step.
func (a viewVerbs) summary(c *cli.Context) error {
	if c.Bool("version") {
		return setupVerbs(a).version()
	}
	if c.NArg() > 0 {
		return commandTable(a).unknownVerb(c.Args().First(), c.Args().Tail())
	}
	a.bears = config.Parts
	v, err := a.view(c.Context)
	if err != nil {
		return err
	}
	waiting := 0
	restart := ""                 // of the first of the dead
	var up, dead, owed []agent.ID // agent0 first; owed are down, with mail waiting for them
	for _, s := range v.Agents {
		switch s.State {
		case agent.Down:
			if s.Inbox+s.Claimed > 0 {
				owed = append(owed, s.ID)
			}
		case agent.Dead, agent.CrashLooping:
			if dead = append(dead, s.ID); len(dead) == 1 {
				restart = s.Restart
			}
		default:
			up = append(up, s.ID)
		}
		waiting += s.Inbox + s.Claimed + s.Held
	}
	where := ""
	if v.Places() != "" {
		where = " in " + envelope.Line(v.Places(), 200)
	}
	fmt.Fprintf(a.stdout(), "agents up: %d%s   daemon: %s\n", len(up), where, v.Daemon.Word())
	a.print("%s", v.Mail())
	fmt.Fprintf(a.stdout(), "not yet handled by agents: %d\n", waiting)
	for _, line := range v.NeedLines(3) {
		a.print("%s", line)
	}
	first, urgent := attention.First(v.Needs)
	next := ""
	switch {
	case len(dead) > 1 && len(up) == 0:
		next = "netsky status shows how they ended; netsky up starts them again"
	case restart != "":
		next = fmt.Sprintf("netsky show %s shows how it ended; %s", dead[0], restart)
	case len(dead) > 0:
		next = fmt.Sprintf("netsky show %s shows how it ended; netsky agent %s starts it again", dead[0], dead[0].N())
	case len(up) == 0:
		next = "netsky up starts agents"
	case urgent:
		next = first.Next()
	case v.Unread+v.Settled > 0:
		next = "netsky inbox shows your mail"
	case first.Code != "":
		next = first.Next()
	case len(owed) > 0:
		next = fmt.Sprintf("netsky up %s starts it; mail is waiting for it", owed[0])
	case len(up) == 1 && up[0] == agent.Infinity: // it only repairs
		next = "netsky up starts agent0 and the clones"
	default:
		next = fmt.Sprintf("netsky ask %s \"…\" gives %[1]s work; netsky help lists the verbs", up[0])
	}
	fmt.Fprintln(a.stdout(), "next:", a.called(next))
	return nil
}
