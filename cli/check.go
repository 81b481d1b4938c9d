package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/config"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/store"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/record"
)

func (a *app) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "run your check on what an agent's work would be once merged", ArgsUsage: "[AGENT]",
		Description: "It merges the agent's branch into the branch it lands on, in a worktree of its own, and runs `check` under [work] in\n" +
			"netsky.toml there. Neither branch changes. What passes is evidence for exactly that result: a commit on either branch\n" +
			"needs another check. What the agent has not committed is not checked.\n\n" +
			"The command may do what you may do, so you are asked once for each text. An agent that names none checks its\n" +
			"own work. While a check of the same agent runs, a second one waits for it.\n\n" +
			"Exit status: 0 passed, or nothing to check; 1 failed, or broken: it could not be run, or not to its end; 2 not agreed to,\n" +
			"or none is set; 3 the branches conflict.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "again", Usage: "run it even if it has passed there"},
			&cli.StringFlag{Name: "onto", Usage: "merge into `BRANCH`", DefaultText: "the one that was checked out when the worktree was made"},
			&cli.StringFlag{Name: "set", Usage: "first make `COMMAND` your check, in netsky.toml"},
			&cli.BoolFlag{Name: "yes", Usage: "agree to the text of the check command"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.check,
	}
}

func (a *app) check(c *cli.Context) error {
	self, err := a.self()
	if err != nil {
		return err
	}
	id := self
	if c.NArg() > 0 || !self.IsClone() {
		if id, err = oneAgent(c, "the agent whose work to check"); err != nil {
			return err
		}
	}
	if c.IsSet("set") {
		if err := a.setCheck(self, c.String("set")); err != nil {
			return err
		}
	}
	d, done, err := a.lander(self)
	if err != nil {
		return err
	}
	defer done()
	if d.Command.Text == "" {
		return exitError{exitUsage, land.ErrNoCheck}
	}
	d.Agree = func() error { return a.agreeToCheck(d, c.Bool("yes")) }
	out, flush := a.commandOutput()
	k, err := d.Check(c.Context, id, land.CheckOptions{Onto: c.String("onto"), Again: c.Bool("again"), Out: out})
	flush()
	if errors.Is(err, land.ErrNothing) {
		a.tellLoose(id, k.Loose, "checked")
		a.complain(err)
		return nil
	}
	if err != nil {
		return a.needsWorktree(d.Home, id, err)
	}
	a.tellLoose(id, k.Loose, "checked")
	for _, n := range k.Notes {
		a.warn("%s", n)
	}
	if c.Bool("json") {
		if err := a.writeJSON(k); err != nil {
			return err
		}
	} else {
		next := ""
		if _, err := a.mayLand("land"); err == nil && k.State == record.Passed {
			next = "; `netsky land " + string(id)
			if c.IsSet("onto") {
				next += " --onto " + advice.Word(c.String("onto"))
			}
			next += "` lands it"
		}
		a.print("%s: %s%s", id, checkLine(k), a.called(next))
	}
	if k.State == record.Passed {
		return nil
	}
	if out == nil {
		a.tailOf(d.Home, k.Log)
	}
	a.warn("its output: %s", tilde(a, d.Home.Path(k.Log)))
	return exitError{exitFailed, errTold}
}

// setCheck makes a text the check command, which the owner has agreed to by typing it.
func (a *app) setCheck(self agent.ID, text string) error {
	if err := fleet.May(self, "check --set"); err != nil {
		return err
	}
	if words.Blank(text) {
		return usagef("check: --set: needs the command, in quotes, such as --set \"make test\"")
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	if _, err := a.cfg(); err != nil {
		return err
	}
	if err := config.SetCheck(h, text); err != nil {
		return err
	}
	a.config.Work.Check = text
	a.warn("the check is from now on, as written to %s: %s", tilde(a, h.Path(home.ConfigFile)), words.Brief(text, 200))
	return fleet.CheckOf(a.config).Agree(h)
}

// checkLine says how a check ended.
func checkLine(k land.Checked) string {
	what := fmt.Sprintf("%.7s merged into %s at %.7s", k.Merge.Head, git.Branch(k.Merge.Target), k.Merge.Onto)
	took := time.Duration(k.Ended-k.Started) * time.Millisecond
	switch {
	case k.Known:
		return fmt.Sprintf("passed %s ago: %s; --again runs it again", words.Ago(time.Since(k.Ended.Time())), what)
	case k.State == record.Passed:
		return fmt.Sprintf("passed in %v: %s", took.Round(100*time.Millisecond), what)
	case k.Reason != "":
		return fmt.Sprintf("%s, %s: %s", k.State, k.Reason, what)
	}
	return fmt.Sprintf("%s, exit status %d: %s", k.State, k.Status, what)
}

// tellLoose says what of the agent's work is not part of what was done.
func (a *app) tellLoose(id agent.ID, l land.Loose, done string) {
	if !l.Any() {
		return
	}
	what := "they are"
	switch {
	case l.Aside != "":
		what = "what is there is"
	case l.Files == 1 && l.Hidden == "":
		what = "it is"
	}
	a.warn("%s has %s; %s not %s", id, l, what, done)
}

// tailOf prints the last lines of a command's log.
func (a *app) tailOf(h home.Dir, log string) {
	data, err := h.ReadFile(log, 4<<20)
	if err != nil {
		return
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	for _, l := range lines[max(0, len(lines)-20):] {
		fmt.Fprintln(a.err, envelope.Plain(l))
	}
}

// checkOf is the command that proves work.
// lander returns what checks and lands work, and what releases it.
func (a *app) lander(self agent.ID) (d land.Desk, done func(), err error) {
	h, err := a.madeHome()
	if err != nil {
		return d, nil, err
	}
	environ, err := fleet.OwnersEnviron(h, self, a.environ)
	if err != nil {
		return d, nil, err
	}
	cfg, err := a.cfg()
	if err != nil {
		return d, nil, err
	}
	b, err := a.bus()
	if err != nil {
		return d, nil, err
	}
	journal := store.NewJournal(h)
	return land.Desk{
		Home: h, Journal: journal, Records: func(ctx context.Context) (*store.DB, error) { return a.records(ctx, h) },
		Command: fleet.CheckOf(cfg), Within: cfg.Work.CheckTime.Duration, Environ: environ, Asker: self,
		Say:  a.warn,
		Wait: func(err error) { a.warn("%v; waiting until that is done", err) },
		Tell: func(to agent.ID, key, text string) error {
			ctx := context.Background() // what was found is told, even if the verb is cut off now
			if list, err := b.Received(ctx, to, key); err != nil || len(list) > 0 {
				return err
			}
			_, again, err := b.SendOnce(ctx, envelope.Envelope{ID: key, From: self, To: to, Text: text, Via: "cli", Time: time.Now()})
			if err == nil && !again {
				a.warn("%s was told", to)
			}
			if errors.Is(err, bus.ErrUsed) {
				err = nil // with other words
			}
			return err
		},
	}, func() { journal.Close() }, nil
}

// agreeToCheck has the owner agree to the check command.
func (a *app) agreeToCheck(d land.Desk, yes bool) error {
	f, err := a.fleet()
	if err != nil {
		return err
	}
	f.Actor = d.Asker
	return f.Agree(d.Command, "is run on the merged work of agents, in a worktree of its own", yes)
}

// commandOutput returns what prints a command's output as it comes, if somebody may be looking, and
// what prints its last line, should that have no end.
func (a *app) commandOutput() (out io.Writer, flush func()) {
	if _, ok := view.Width(a.err); !ok {
		return nil, func() {}
	}
	p := &plainLines{to: a.err}
	return p, func() {
		if len(p.rest) > 0 {
			_, _ = p.Write([]byte("\n"))
		}
	}
}

// plainLines prints lines without what a terminal would obey.
type plainLines struct {
	to   io.Writer
	rest []byte
}

// maxLine is where a line without an end is broken.
const maxLine = 8 << 10

func (p *plainLines) Write(data []byte) (int, error) {
	p.rest = append(p.rest, data...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 && len(p.rest) < maxLine {
			return len(data), nil
		}
		line, after := p.rest, 0
		if i >= 0 {
			line, after = p.rest[:i], i+1
		} else {
			after = len(line)
		}
		fmt.Fprintln(p.to, envelope.Plain(string(line)))
		p.rest = append(p.rest[:0], p.rest[after:]...)
	}
}
