package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/fleet"
	"netsky/spawn"
	"netsky/store"
	"netsky/watch/backoff"
	"netsky/work/dispatch"
	"netsky/work/task"
)

func (a taskVerbs) taskListCommand() *cli.Command {
	return &cli.Command{
		Name: "ls", Usage: "list the tasks, by what they are at", Action: a.taskList,
		Description: "Each line has the id, the priority, who does it, since when, the title, and what keeps it. Long groups and what is finished\n" +
			"are cut; --all lists everything.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "state", Usage: "only those that are `STATE`: " + strings.Join(taskWords(), ", ")},
			&cli.StringFlag{Name: "agent", Usage: "only those of `AGENT`; nobody: those of no one"},
			&cli.BoolFlag{Name: "mine", Usage: "only those that you asked for or do"},
			&cli.IntFlag{Name: "limit", Usage: "list at most `N` of a group", DefaultText: "20, of finished ones 5"},
			&cli.BoolFlag{Name: "all", Usage: "list everything"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
	}
}

// taskWords lists what tasks are called.
func taskWords() []string {
	return []string{"in_progress", task.Waiting, "open", "blocked", task.Claimed, task.Proved, task.Landed, task.Done, "cancelled"}
}

// taskFilter returns what the options of `task ls` select.
func (a taskVerbs) taskFilter(c *cli.Context) (f task.Filter, err error) {
	switch word := strings.ReplaceAll(c.String("state"), " ", "_"); {
	case word == "":
		f.States = []string{store.TaskInProgress, store.TaskOpen, store.TaskBlocked, store.TaskDone, store.TaskCancelled}
	case !slices.Contains(taskWords(), word):
		return f, usagef("task ls: --state %q: must be one of %s", word, strings.Join(taskWords(), ", "))
	case word == task.Waiting:
		f.States = []string{store.TaskOpen}
	case word == task.Claimed, word == task.Proved, word == task.Landed:
		f.States = []string{store.TaskDone}
	default:
		f.States = []string{word}
	}
	if c.IsSet("limit") && c.Int("limit") < 1 {
		return f, usagef("task ls: --limit %d: must be above 0", c.Int("limit"))
	}
	who := c.String("agent")
	if f.Nobody = who == task.Nobody; who != "" && !f.Nobody {
		if f.Assignee, err = agent.ParseArgAddress(who); err != nil {
			return f, usagef("task ls: agent: %w", err)
		}
	}
	if c.Bool("mine") {
		f.Mine, err = a.self()
	}
	return f, err
}

func (a taskVerbs) taskList(c *cli.Context) error {
	f, err := a.taskFilter(c)
	if err != nil {
		return err
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	list, err := a.taskViews(c.Context, l, f)
	if err != nil {
		return a.taskErr("task ls", err)
	}
	if word := strings.ReplaceAll(c.String("state"), " ", "_"); word != "" {
		list = slices.DeleteFunc(list, func(v dispatch.View) bool { return v.Word != word })
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"tasks": list})
	}
	width, _ := view.Width(a.out)
	limit := c.Int("limit")
	if c.Bool("all") || c.String("state") != "" && limit == 0 {
		limit = -1
	}
	if lines := view.TaskLines(list, width, limit, time.Now()); len(lines) > 0 {
		a.print("%s", strings.Join(lines, "\n"))
	} else {
		a.warn("%s", noTasks(c, f))
	}
	return nil
}

// noTasks says that a list is empty.
func noTasks(c *cli.Context, f task.Filter) string {
	text := "no tasks"
	switch {
	case f.Nobody:
		text += " of nobody"
	case f.Assignee != "":
		text += fmt.Sprintf(" of %s", f.Assignee)
	}
	if c.Bool("mine") {
		text += " that you asked for or do"
	}
	if state := c.String("state"); state != "" {
		text += " are " + strings.ReplaceAll(state, "_", " ")
	}
	if text == "no tasks" {
		text += "; `netsky task add` records one"
	}
	return text
}

// taskViews returns the tasks of a filter, as lists show them.
func (a taskVerbs) taskViews(ctx context.Context, l *spawn.Launcher, f task.Filter) ([]dispatch.View, error) {
	db, err := a.records(ctx, l.Home)
	if errors.Is(err, fs.ErrNotExist) {
		return []dispatch.View{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer db.Close()
	t, err := a.tasks()
	if err != nil {
		return nil, err
	}
	list, err := t.Book().List(ctx, f)
	if err != nil {
		return nil, err
	}
	views, err := a.shown(ctx, l, db, a.judge(l.Home, db), list)
	dispatch.Order(views)
	return views, err
}

// shown returns tasks as they are shown. Nobody is called down of whom nothing is known.
func (a taskVerbs) shown(ctx context.Context, l *spawn.Launcher, db *store.DB, judge *task.Judge, list []store.Task) ([]dispatch.View, error) {
	here := sync.OnceValues(func() (spawn.Statuses, error) { return l.Inspect(ctx) })
	state := func(id agent.ID) (spawn.Status, bool) {
		if id.Host() != "" {
			st := fleet.Far(l.Home, id)
			return st, st.State != agent.Unknown
		}
		states, err := here()
		return states.Find(id), err == nil
	}
	return dispatch.Views(ctx, db, judge, list, state, func(st spawn.Status) bool { return backoff.Soon(l.Home, st.Agent, st.Start) })
}

func (a taskVerbs) taskShow(c *cli.Context) error {
	id, err := one(c, "one id")
	if err != nil {
		return err
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	t, err := a.tasks()
	if err != nil {
		return err
	}
	db, err := a.freshRecords(c.Context, l.Home)
	if errors.Is(err, fs.ErrNotExist) {
		err = &task.MissingError{ID: id}
	}
	if err != nil {
		return a.taskErr("task show", err)
	}
	defer db.Close()
	k, err := t.Book().Find(c.Context, id)
	if err != nil {
		return a.taskErr("task show", err)
	}
	judge := a.judge(l.Home, db)
	views, err := a.shown(c.Context, l, db, judge, []store.Task{k})
	if err != nil {
		return a.taskErr("task show", err)
	}
	s, err := dispatch.Tell(c.Context, db, judge, views[0])
	if err != nil {
		return a.taskErr("task show", err)
	}
	if c.Bool("json") {
		return a.writeJSON(s)
	}
	a.print("%s", strings.Join(view.TaskStory(s), "\n"))
	return nil
}
