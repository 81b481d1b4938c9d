package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/store"
	"netsky/work"
	"netsky/work/diff"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/record"
	"netsky/work/tree"
)

func (a workVerbs) diffCommand() *cli.Command {
	return &cli.Command{
		Name: "diff", Usage: "show what an agent has changed, and send it comments", ArgsUsage: "AGENT [PATH… | TEXT]",
		Description: "Shows what the agent has changed since its branch and the one that it lands on were the same, with what is not\n" +
			"committed and new files. Git shows it, with your pager and colours.\n\n" +
			"`netsky diff 3 --comment a.go:12 \"why?\"` keeps a comment on line 12 of a.go as it is now, a.go:-12 on the line as it\n" +
			"was; `netsky diff 3 --send` sends agent3 all that were kept, with their lines, in one message.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stat", Usage: "show only how many lines changed in which file"},
			&cli.BoolFlag{Name: "name-only", Usage: "show only the names of the files"},
			&cli.BoolFlag{Name: "since-landed", Usage: "show only what came after its work landed last"},
			&cli.StringFlag{Name: "comment", Usage: "keep a comment on `FILE:LINE`"},
			&cli.BoolFlag{Name: "comments", Usage: "list the comments that were not sent yet"},
			&cli.StringFlag{Name: "drop", Usage: "remove the comment `ID`"},
			&cli.BoolFlag{Name: "send", Usage: "send the comments to the agent, in one message"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.diff,
	}
}

func (a workVerbs) diff(c *cli.Context) error {
	if c.NArg() == 0 {
		return usagef("diff: needs an agent; `netsky work` lists those with work of their own")
	}
	id, err := agent.ParseAgentAddress(c.Args().First())
	if err != nil {
		return err
	}
	rest := c.Args().Tail()
	h, err := a.home()
	if err != nil {
		return err
	}
	onlyAgent := c.Bool("comments") || c.IsSet("drop") || c.Bool("send")
	if onlyAgent && len(rest) > 0 {
		return usagef("diff: takes one agent and nothing else with this option")
	}
	switch {
	case c.Bool("comments"):
		return a.comments(c, h, id)
	case c.IsSet("drop"):
		return a.dropComment(c, h, id)
	case c.Bool("send"):
		return a.sendComments(c, h, id)
	}
	w, err := tree.Load(h, id)
	if errors.Is(err, fs.ErrNotExist) {
		return land.NoWorktree(h, id)
	}
	if err != nil {
		return err
	}
	if w.Away != nil {
		if err := a.freshen(c.Context, id); err != nil {
			return err
		}
		if w, err = tree.Load(h, id); err != nil {
			return err
		}
	}
	var since []string
	if c.Bool("since-landed") {
		if since, err = a.landed(c.Context, h, w); err != nil {
			return err
		}
	}
	change, err := diff.Open(c.Context, h, w, since...)
	if errors.Is(err, fs.ErrNotExist) {
		verb := "up"
		if a.isUp(c.Context, id) {
			verb = "restart"
		}
		return advice.With(fmt.Errorf("%s: %s was deleted; what was committed is on the branch %s", id, w.Dir, w.Short()), "`netsky %s %s` makes it again", verb, id)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	defer func() {
		if err := change.Close(); err != nil {
			a.warn("%v", err)
		}
	}()
	if c.IsSet("comment") {
		return a.comment(c, h, change, id, rest)
	}
	a.tellAside(c.Context, h, id)
	for _, name := range change.Left {
		a.warn("%s: %s is not shown: it is too large, can't be read, or is a repository of its own", id, git.Shown(name))
	}
	if c.Bool("json") {
		files, more, err := change.Files(c.Context, rest...)
		if err != nil {
			return err
		}
		return a.writeJSON(map[string]any{"agent": id, "base": change.Base, "head": change.Head, "tree": change.Tree, "files": files, "more": more})
	}
	return a.showDiff(c, change, id, rest)
}

// tellAside names the work of an agent that no diff of its worktree has.
func (a workVerbs) tellAside(ctx context.Context, h home.Dir, id agent.ID) {
	aside, err := work.Aside(ctx, h, id)
	if err != nil {
		a.warn("%s: %v", id, err)
	}
	if len(aside) > 0 {
		a.warn("%s: not shown, as it is not in its worktree: %s", id, envelope.Plain(strings.Join(aside, ", ")))
	}
}

// showDiff has git show the change.
func (a workVerbs) showDiff(c *cli.Context, change *diff.Change, id agent.ID, paths []string) error {
	t := diff.Terminal{In: a.in, Out: a.out, Err: a.err, Env: a.environ, Paths: paths}
	for _, option := range []string{"stat", "name-only"} {
		if c.Bool(option) {
			t.Options = append(t.Options, "--"+option)
		}
	}
	if any, err := change.Any(c.Context, paths...); err != nil {
		return err
	} else if !any {
		if len(paths) == 0 {
			a.warn("%s: nothing has changed in its worktree", id)
		} else {
			a.warn("%s: nothing of that name has changed: %s", id, strings.Join(paths, ", "))
		}
		return nil
	}
	err := change.Show(c.Context, t)
	ee := new(exec.ExitError)
	if !errors.As(err, &ee) {
		return err
	}
	if st, ok := ee.Sys().(syscall.WaitStatus); ok && st.Signaled() && st.Signal() == syscall.SIGPIPE {
		return nil // nobody reads on
	}
	return exitError{exitFailed, errTold} // git has told it
}

// landed returns the commits that the agent's work, as it landed last, may be known by.
func (a workVerbs) landed(ctx context.Context, h home.Dir, w tree.Worktree) (commits []string, err error) {
	err = a.readWork(ctx, h, func(r record.Records) error {
		l, undone, err := land.Reversed(ctx, r, w, w.Base, w.Branch)
		if undone {
			a.warn("%s: what landed last, as %s, was undone by %.7s; this is what came after it", w.Agent, l.ID, l.Undo)
			commits = append(commits, l.After, l.Head)
		}
		if undone || err != nil {
			return err
		}
		list, err := r.Landings(ctx, record.Filter{Agent: w.Agent, State: record.Landed, Limit: 1})
		for _, l := range list {
			commits = append(commits, l.After, l.Head)
		}
		return err
	})
	if err == nil && len(commits) == 0 {
		a.warn("%s: nothing of it has landed, or that was undone; this is all", w.Agent)
	}
	return commits, err
}

// readWork calls do with the records, if there are any.
func (a workVerbs) readWork(ctx context.Context, h home.Dir, do func(record.Records) error) error {
	db, err := store.OpenRead(ctx, h)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrOlder) {
		return nil
	}
	if err != nil {
		return err
	}
	defer db.Close()
	return do(record.Records{DB: db})
}

// review returns what collects the comments of whoever runs this.
func (a workVerbs) review(h home.Dir) (r diff.Review, err error) {
	l, err := a.launcher()
	if err != nil {
		return r, err
	}
	self, err := a.self()
	return diff.Review{
		Author: self, Bus: l.Bus, Record: l.Journal.Record,
		Read: func(ctx context.Context, do func(record.Records) error) error { return a.readWork(ctx, h, do) },
	}, err
}

func (a workVerbs) comment(c *cli.Context, h home.Dir, change *diff.Change, id agent.ID, text []string) error {
	at := c.String("comment")
	i := strings.LastIndex(at, ":")
	if i < 1 {
		return usagef("diff: --comment %q: must be FILE:LINE, or FILE:-LINE for the line as it was", words.FirstLine(at))
	}
	line, err := strconv.Atoi(at[i+1:])
	if err != nil || line == 0 {
		return usagef("diff: --comment %q: must be FILE:LINE, or FILE:-LINE for the line as it was", words.FirstLine(at))
	}
	if len(text) == 0 {
		return usagef("diff: --comment needs its text: `netsky diff %s --comment %s \"…\"`", id, words.FirstLine(at))
	}
	r, err := a.review(h)
	if err != nil {
		return err
	}
	k, err := r.Add(c.Context, change, id, at[:i], max(line, -line), line < 0, strings.Join(text, " "))
	if errors.Is(err, diff.ErrNoLine) {
		return exitError{exitUsage, err}
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"comments": []record.Comment{k}})
	}
	a.print("%s  %s:%s  %s", k.ID, k.File, at[i+1:], words.Brief(k.Text, 60))
	return nil
}

func (a workVerbs) comments(c *cli.Context, h home.Dir, id agent.ID) error {
	r, err := a.review(h)
	if err != nil {
		return err
	}
	list, err := r.Pending(c.Context, id)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"comments": list})
	}
	for _, k := range list {
		side := ""
		if k.Old {
			side = "-"
		}
		a.print("%s  %s:%s%d", k.ID, k.File, side, k.Line)
		for line := range strings.Lines(k.Excerpt) {
			a.print("  > %s", strings.TrimRight(line, "\n"))
		}
		a.print("  %s", strings.ReplaceAll(k.Text, "\n", "\n  "))
	}
	if len(list) == 0 {
		a.print("no comments on the work of %s wait", id)
	}
	return nil
}

func (a workVerbs) dropComment(c *cli.Context, h home.Dir, id agent.ID) error {
	r, err := a.review(h)
	if err != nil {
		return err
	}
	dropped, err := r.Drop(c.Context, id, c.String("drop"))
	for _, k := range dropped {
		a.print("dropped %s  %s", k.ID, words.Brief(k.Text, 60))
	}
	return err
}

func (a workVerbs) sendComments(c *cli.Context, h home.Dir, id agent.ID) error {
	r, err := a.review(h)
	if err != nil {
		return err
	}
	sent, err := r.Send(c.Context, id)
	if c.Bool("json") {
		if sent == nil {
			sent = []diff.Sent{}
		}
		return errors.Join(a.writeJSON(map[string]any{"sent": sent}), err)
	}
	for _, s := range sent {
		what := fmt.Sprintf("%d comments", len(s.Comments))
		if len(s.Comments) == 1 {
			what = "1 comment"
		}
		a.print("sent %s %s, as %s", s.Agent, what, envelope.Line(s.ID, 80))
	}
	if len(sent) == 0 && err == nil {
		a.print("no comments on the work of %s wait", id)
	}
	if len(sent) > 0 {
		if up, uerr := a.running(c.Context, id); uerr == nil && !up {
			a.warn("%s is down; the comments wait in its mailbox until it is up", id)
		}
	}
	return err
}
