package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/daemon"
	"netsky/home"
	"netsky/spawn"
	"netsky/work/dispatch"
	"netsky/work/task"
)

func (a *app) taskStartCommand() *cli.Command {
	return &cli.Command{
		Name: "start", Usage: "give a task to an agent", ArgsUsage: "ID",
		Description: "Starts the agent, as `netsky agent` does, unless it is up or --queue is given, and sends it the task. Its answer closes the\n" +
			"task. A task that needs others starts by itself when those are proved, or, without a check, closed; `after`\n" +
			"under [work] chooses. The task of an agent that has ended goes on when the agent is up again, or is given to another here. The other options are those of `netsky agent`.",
		Flags: startFlags(
			&cli.StringFlag{Name: "agent", Usage: "`AGENT` does it", DefaultText: "its assignee"},
			&cli.BoolFlag{Name: "queue", Usage: "do not start the agent: the task waits in its mailbox"},
			&cli.BoolFlag{Name: "anyway", Usage: "start it now: it needs no other task any more"},
			&cli.BoolFlag{Name: "again", Usage: "start a task that has ended once more"},
		),
		Action: a.taskStart,
	}
}

func (a *app) taskStart(c *cli.Context) error {
	id, err := one(c, "one id; --agent says who does it")
	if err != nil {
		return err
	}
	l, cr, err := a.tasks()
	if err != nil {
		return err
	}
	w := dispatch.Wish{
		Queue: c.Bool("queue"), Anyway: c.Bool("anyway"), Again: c.Bool("again"),
		Status: func(ctx context.Context, id agent.ID) (spawn.Status, error) {
			list, err := l.Inspect(ctx)
			return list.Find(id), err
		},
		Up: func(_ context.Context, id agent.ID) error { return a.raise(c, l, id) },
	}
	if who := c.String("agent"); who != "" {
		if w.Agent, err = agent.ParseAgent(who); err != nil {
			return usagef("task start: agent: %w", err)
		}
	}
	s, err := cr.Start(c.Context, id, w)
	if s.Task.Brief == "" && err != nil { // nothing was recorded
		var told exitError
		if errors.As(err, &told) {
			return err
		}
		return a.taskErr("task start", err)
	}
	if c.Bool("json") {
		if werr := a.writeJSON(map[string]any{"task": s.Task, "waits": append([]string{}, idsOf(s)...), "kept": s.Kept}); werr != nil {
			return werr
		}
	} else {
		a.print("%s", startedWords(s, a.judge(l.Home, nil).Needed()))
	}
	if s.Note != "" {
		a.warn("%s", s.Note)
	}
	a.wakeDaemon(c.Context, l.Home)
	if _, ping := daemon.Ping(c.Context, l.Home); ping != nil && !s.Own {
		a.warn("the daemon, which sees the answer, is not running: the task goes on after `netsky up`")
	}
	if err != nil {
		return exitError{exitPartly, fmt.Errorf("task start: %w", err)}
	}
	return nil
}

func idsOf(s dispatch.Started) (ids []string) {
	for _, k := range s.Waits {
		ids = append(ids, k.ID)
	}
	return ids
}

// startedWords says what starting a task did. after is what others must be called for it to start.
func startedWords(s dispatch.Started, after string) string {
	k := s.Task
	switch {
	case s.Own:
		return fmt.Sprintf("%s: in progress; it is yours", k.ID)
	case s.Kept:
		return fmt.Sprintf("%s: %s has it already, and goes on", k.ID, k.Assignee)
	case len(s.Waits) > 0:
		short := make([]string, len(s.Waits))
		for i, w := range s.Waits {
			short[i] = dispatch.Short(w.ID)
		}
		if after == task.Claimed {
			after = "closed"
		}
		return fmt.Sprintf("%s: starts with %s when these are %s: %s", k.ID, k.Assignee, after, strings.Join(short, ", "))
	}
	return fmt.Sprintf("%s: given to %s (%s)", k.ID, k.Assignee, k.Brief)
}

// raise starts an agent as `netsky agent` does; what that prints goes to stderr.
func (a *app) raise(c *cli.Context, l *spawn.Launcher, id agent.ID) error {
	if err := a.notForClones("task start"); err != nil {
		return err
	}
	set := flag.NewFlagSet("agent", flag.ContinueOnError)
	for _, name := range []string{"type", "dir"} {
		set.String(name, c.String(name), "")
	}
	for _, name := range []string{"here", "yes"} {
		set.Bool(name, c.Bool(name), "")
	}
	sub := cli.NewContext(c.App, set, nil)
	sub.Context, sub.Command = c.Context, c.Command
	out := a.out
	a.out = a.err
	defer func() { a.out = out }()
	err := a.up(sub, []agent.ID{id}, "", false)
	if err == nil {
		return nil
	}
	if list, ierr := l.Inspect(c.Context); ierr == nil && list.Find(id).Alive() {
		return nil // it is slow: its mail waits
	}
	return err
}

// wakeDaemon has the daemon look at once at what has changed.
func (a *app) wakeDaemon(ctx context.Context, h home.Dir) {
	if err := daemon.Wake(ctx, h); err != nil {
		a.warn("%v", err)
	}
}
