package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/fleet"
	"netsky/internal/advice"
	"netsky/work/land"
)

func (a workVerbs) checkCommand() *cli.Command {
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

func (a workVerbs) check(c *cli.Context) (err error) {
	r := fleet.CheckRequest{Onto: c.String("onto"), Again: c.Bool("again"), Yes: c.Bool("yes")}
	if c.NArg() > 0 {
		if r.Agent, err = oneAgentBy(c, "the agent whose work to check", agent.ParseAgentAddress); err != nil {
			return err
		}
	}
	if c.IsSet("set") {
		text := c.String("set")
		r.Set = &text
	}
	w, err := a.workOf(progress{a: a.app})
	if err != nil {
		return err
	}
	k, err := w.Check(c.Context, r)
	if err != nil && !errors.Is(err, land.ErrNothing) {
		return err
	}
	id := cmp.Or(r.Agent, w.Actor)
	a.tellLoose(id, k.Loose, "checked")
	if err != nil {
		a.complain(err)
		return nil
	}
	for _, n := range k.Notes {
		a.warn("%s", n)
	}
	if c.Bool("json") {
		if err := a.writeJSON(k); err != nil {
			return err
		}
	} else {
		next := ""
		if w.MayLand("land") == nil && k.Passed() {
			next = "; `netsky land " + string(id)
			if c.IsSet("onto") {
				next += " --onto " + advice.Word(c.String("onto"))
			}
			next += "` lands it"
		}
		a.print("%s: %s%s", id, k, a.called(next))
	}
	if k.Passed() {
		return nil
	}
	if _, shown := view.Width(a.err); !shown {
		for _, line := range k.Tail(w.Home) {
			fmt.Fprintln(a.err, envelope.Plain(line))
		}
	}
	a.warn("its output: %s", tilde(a.app, w.Home.Path(k.Log)))
	return exitError{exitFailed, errTold}
}

// tellLoose says what of the agent's work is not part of what was done.
func (a workVerbs) tellLoose(id agent.ID, l land.Loose, done string) {
	if l.Any() {
		a.warn("%s", l.Not(id, done))
	}
}
