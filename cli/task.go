package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/config"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/store"
	"netsky/work/task"
)

// taskVerbs keeps the list of tasks.
type taskVerbs struct{ *app }

func (a taskVerbs) taskCommand() *cli.Command {
	return &cli.Command{
		Name: "task", Usage: "give agents tasks, and see what came of them", Action: a.needsSub,
		Description: "A task is a piece of work on record: who asked for it, who does it, what it waits for and what proves it. Started, it is\n" +
			"sent to its agent, and the agent's answer closes it as claimed: done, by its worker's word. It is proved while\n" +
			"the check has passed for the present tree, landed once it has landed, and done when you say so. An id may be cut to its\n" +
			"first six or more characters. Agents have the same as tools.",
		Subcommands: []*cli.Command{
			a.taskAddCommand(), a.taskListCommand(),
			{
				Name: "show", Usage: "print all about a task: who asked, who worked on it, what it cost, what came of it", ArgsUsage: "ID", Action: a.taskShow,
				Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
			},
			a.taskStartCommand(), a.taskEditCommand(),
			{
				Name: "done", Usage: "close a task, or accept one that is claimed", ArgsUsage: "ID [PROOF]",
				Description: "PROOF is what shows that it is done. You may leave it out: your word is recorded. An agent has to give one, and what it\n" +
					"closes is claimed.",
				Flags:  []cli.Flag{&cli.DurationFlag{Name: "took", Usage: "it took `TIME`, such as 90m", DefaultText: "the time since it was started"}},
				Action: a.taskDone,
			},
			{
				Name: "block", Usage: "say what keeps a task from being done, or which others it needs", ArgsUsage: "ID [REASON]",
				Description: "With a reason the task is blocked, and taken back from its agent. With --needs it waits for other tasks, too.",
				Flags:       []cli.Flag{&cli.StringSliceFlag{Name: "needs", Usage: "it needs the task `ID` to be done first; may be repeated"}},
				Action:      a.taskBlock,
			},
			{
				Name: "cancel", Usage: "end a task that is not wanted any more", ArgsUsage: "ID… [REASON]", Action: a.taskCancel,
				Description: "Several may be named; the reason is for all of them. It is taken back from its agent: a brief that was not read is withdrawn, a turn that works on it is ended.",
			},
		},
	}
}

func (a taskVerbs) taskAddCommand() *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "record a task and print its id", ArgsUsage: "TITLE",
		Description: "Nobody is told: `netsky task start ID --agent N` gives it to an agent.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "body", Usage: "what is wanted, and how to see that it is done: `TEXT`"},
			&cli.StringFlag{Name: "file", Usage: "read the body from `FILE`; - is stdin"},
			&cli.StringFlag{Name: "agent", Usage: "`AGENT` does it", DefaultText: "nobody"},
			&cli.IntFlag{Name: "priority", Value: 5, Usage: "`N`: 0 is done first, 9 last"},
			&cli.DurationFlag{Name: "estimate", Usage: "it should take `TIME`, such as 90m"},
			&cli.StringSliceFlag{Name: "needs", Usage: "it needs the task `ID` to be done first; may be repeated"},
			&cli.StringFlag{Name: "message", Usage: "the message `ID` asks for it"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.taskAdd,
	}
}

// tasks returns the deeds of tasks on behalf of whoever runs the verb.
func (a taskVerbs) tasks() (fleet.Tasks, error) {
	f, err := a.fleet()
	return fleet.Tasks{Fleet: f}, err
}

// judge returns what decides what tasks are called.
func (a taskVerbs) judge(h home.Dir, db *store.DB) *task.Judge {
	cfg, err := a.cfg()
	if err != nil {
		cfg = config.Config{}
	}
	return fleet.Judge(h, db, cfg)
}

// taskErr returns a verb's error from one about a task.
func (a taskVerbs) taskErr(verb string, err error) error {
	var (
		field   *task.FieldError
		missing *task.MissingError
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrSpooled):
		return exitError{exitPartly, fmt.Errorf("%s: it takes effect once the records can be written: %w", verb, err)}
	case errors.As(err, &field):
		option := strings.TrimSuffix(field.Field, "_minutes")
		switch {
		case option == "assignee":
			option = "agent"
		case option == "proof" && verb == "task done":
			return advice.With(usagef("task done: %s: %s", option, field.Fact), "`netsky task done ID \"go test ./...: ok\"` gives one")
		}
		return usagef("%s: %s: %s", verb, option, field.Fact)
	case errors.Is(err, task.ErrNotYours):
		return exitError{exitUsage, fmt.Errorf("%s: %w", verb, err)}
	case errors.As(err, &missing):
		return advice.With(fmt.Errorf("%s: no such task: %s", verb, missing.Short()), "`netsky task ls` lists them")
	case errors.Is(err, store.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return advice.With(fmt.Errorf("%s: no such task", verb), "`netsky task ls` lists them")
	}
	return fmt.Errorf("%s: %w", verb, err)
}

func (a taskVerbs) taskAdd(c *cli.Context) error {
	title, err := one(c, "one title, in quotes: netsky task add \"fix the build\"")
	if err != nil {
		return err
	}
	priority := c.Int("priority")
	w := task.Wish{
		Title: title, Body: c.String("body"), Priority: &priority, EstimateMinutes: wholeMinutes(c.Duration("estimate")),
		Needs: c.StringSlice("needs"), Message: c.String("message"),
	}
	if name := c.String("file"); name != "" {
		if w.Body, err = a.textFile("--file", name); err != nil {
			return err
		}
	}
	if who := c.String("agent"); who != "" {
		if w.Assignee, err = agent.ParseAgentAddress(who); err != nil {
			return usagef("task add: agent: %w", err)
		}
	}
	t, err := a.tasks()
	if err != nil {
		return err
	}
	k, err := t.Add(c.Context, w)
	if err != nil && !errors.Is(err, store.ErrSpooled) {
		return a.taskErr("task add", err)
	}
	if c.Bool("json") {
		return errors.Join(a.writeJSON(map[string]any{"task": k}), a.taskErr("task add", err))
	}
	a.print("%s", k.ID)
	return a.taskErr("task add", err)
}

// wholeMinutes returns a duration as the records have it: a part of a minute is one.
func wholeMinutes(d time.Duration) int { return int((d + time.Minute - 1) / time.Minute) }

func (a taskVerbs) taskDone(c *cli.Context) error {
	id, text, err := idAndText(c, "an id, and what shows that it is done, in quotes")
	if err != nil {
		return err
	}
	change := task.Change{State: store.TaskDone, Proof: text}
	if n := wholeMinutes(c.Duration("took")); n != 0 {
		change.ActualMinutes = &n
	}
	return a.editTask(c, id, change)
}

func (a taskVerbs) taskBlock(c *cli.Context) error {
	id, text, err := idAndText(c, "an id and a reason, in quotes, or --needs")
	if err != nil {
		return err
	}
	change := task.Change{Note: text, Needs: c.StringSlice("needs")}
	switch {
	case text != "":
		change.State = store.TaskBlocked
	case len(change.Needs) == 0:
		return usagef("task block: needs an id and a reason, in quotes, or --needs")
	}
	return a.editTask(c, id, change)
}

func (a taskVerbs) taskCancel(c *cli.Context) error {
	ids, text := c.Args().Slice(), ""
	if last := len(ids) - 1; last > 0 && !strings.HasPrefix(ids[last], task.Prefix) {
		ids, text = ids[:last], ids[last]
	}
	for _, id := range ids[min(len(ids), 1):] {
		if !strings.HasPrefix(id, task.Prefix) {
			return usagef("task cancel: %q: is no id of a task; put the reason in quotes, behind the ids", words.Brief(id, 40))
		}
	}
	if len(ids) == 0 {
		return usagef("task cancel: needs an id, or several, and perhaps a reason, in quotes")
	}
	return a.each(ids, func(id string) error {
		return a.editTask(c, id, task.Change{State: store.TaskCancelled, Note: text})
	})
}

// idAndText returns the arguments of a verb that takes an id and, if it is given, a text.
func idAndText(c *cli.Context, what string) (id, text string, err error) {
	if n := c.NArg(); n < 1 || n > 2 {
		return "", "", usagef("task %s: needs %s", c.Command.Name, what)
	}
	return c.Args().Get(0), c.Args().Get(1), nil
}

// editTask changes a task and prints what it is called now.
func (a taskVerbs) editTask(c *cli.Context, id string, change task.Change) error {
	t, err := a.tasks()
	if err != nil {
		return err
	}
	e, err := t.Edit(c.Context, task.Edit{Task: id, Change: change})
	if err != nil && !errors.Is(err, store.ErrSpooled) {
		return a.taskErr(verbOf(c), err)
	}
	if !e.Changed {
		a.warn("nothing to change")
	}
	a.print("%s: %s  %s", e.Task.ID, strings.ReplaceAll(t.Word(c.Context, e.Task), "_", " "), words.Brief(e.Task.Title, 80))
	if e.Note != "" {
		a.warn("%s", e.Note)
	}
	return a.taskErr(verbOf(c), err)
}
