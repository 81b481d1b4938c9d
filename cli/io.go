package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus/mcp"
	"netsky/spawn"
	"netsky/store"
)

func (a *app) ioCommand() *cli.Command {
	return &cli.Command{
		Name: "io", Usage: "be an MCP server, for programs", Hidden: true,
		Description: "For Claude Code and Codex, which start `netsky io serve` beside an agent. It gives the model its tools, and hands\n" +
			"Claude Code the agent's mail.",
		Subcommands: []*cli.Command{{
			Name: "serve", Usage: "speak MCP on stdin and stdout",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "s", Aliases: []string{"server"}, Value: "agent", Usage: "which `SERVER`: agent"},
				&cli.BoolFlag{Name: "tools-only", Usage: "leave the mailbox to another process"},
			},
			Action: a.ioServe,
		}},
		Action: a.needsSub,
	}
}

var errNoAgent = errors.New("AGENT_N is not set: this is for an agent's own program to start")

// ioServe is the MCP server of one agent, a child of its program.
func (a *app) ioServe(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("io serve: takes no arguments; -s names the server")
	}
	if s := c.String("server"); s != "agent" {
		return usagef("io serve: -s %q: wants agent", s)
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	if !self.IsAgent() {
		return usagef("io serve: %w", errNoAgent)
	}
	a.forgive()
	l, err := a.launcher()
	if err != nil {
		return err
	}
	in, ok := a.in.(io.ReadCloser)
	if !ok {
		in = io.NopCloser(a.in)
	}
	o := mcp.Options{
		Agent: self, Start: a.getenv("NETSKY_START"), Home: l.Home, Bus: l.Bus,
		Records: shelf{l.Journal, l.Home}, Members: team{a, l}, In: in, Out: a.out, Version: Version, Log: a.logIO,
	}
	if c.Bool("tools-only") {
		return mcp.Serve(c.Context, o)
	}
	return a.serveClaude(c.Context, l, o)
}

// logIO tells on stderr, which the runtime keeps in a log of its own, what went
// wrong with a server.
func (a *app) logIO(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}
	a.warn("%s", what)
}

// team is what the model of one agent may see of the others and do to them. What
// changes the team is done by this netsky's own verbs, with their rules.
type team struct {
	a *app
	l *spawn.Launcher
}

func (t team) List(ctx context.Context) ([]mcp.Member, error) {
	list, err := t.l.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	tasks := t.tasks(ctx)
	members := make([]mcp.Member, 0, len(list))
	for _, st := range list {
		members = append(members, mcp.Member{
			Agent: st.Agent, Runtime: st.Runtime, State: st.State, Detail: st.Detail, Since: st.Since,
			Waiting: max(st.Inbox, 0) + max(st.Claimed, 0), Task: tasks[st.Agent],
		})
	}
	return members, nil
}

// tasks names what each agent works on, as far as the records tell.
func (t team) tasks(ctx context.Context) map[agent.ID]string {
	db, err := store.OpenRead(ctx, t.l.Home)
	if err != nil {
		return nil
	}
	defer db.Close()
	list, err := db.Tasks(ctx, store.TaskFilter{State: store.TaskInProgress})
	if err != nil {
		return nil
	}
	titles := make(map[agent.ID]string)
	for _, task := range list.Items {
		if titles[task.Assignee] == "" {
			titles[task.Assignee] = task.Title
		}
	}
	return titles
}

func (t team) Peek(ctx context.Context, id agent.ID, lines int) (string, error) {
	list, err := t.l.Inspect(ctx)
	if err != nil {
		return "", err
	}
	st := list.Find(id)
	if st.Pane() == "" {
		return "", noPane(id, st.State)
	}
	text, err := t.l.LastLines(ctx, st, lines)
	return strings.Join(text, "\n"), err
}

func (t team) Start(ctx context.Context, id agent.ID, objective string) (string, error) {
	args := []string{"agent", id.N(), "--json"}
	if objective != "" {
		args = append(args, "--objective", objective)
	}
	out, err := t.verb(ctx, args...)
	if err != nil {
		return "", err
	}
	var v struct {
		Agents []struct {
			Step  spawn.Step
			State agent.State
			Note  string
			Error string
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || len(v.Agents) == 0 {
		return "", fmt.Errorf("agent %s: no answer that can be read: %.200q", id, out)
	}
	e := v.Agents[0]
	switch e.Step {
	case spawn.StepAlready:
		return fmt.Sprintf("%s was up, and is %s", id, e.State), nil
	case spawn.StepReady:
		return fmt.Sprintf("%s is up: %s%s", id, readyWord(e.State), note(e.Note)), nil
	}
	return "", fmt.Errorf("%s: %s: %s", id, e.Step, cmp.Or(e.Error, e.Note))
}

func (t team) Stop(ctx context.Context, id agent.ID) (string, error) {
	out, err := t.verb(ctx, "down", id.N())
	return strings.TrimSpace(out), err
}

// verb runs a verb of this netsky; its error holds what it said.
func (t team) verb(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, t.l.Binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = t.a.environ, &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitPartly && out.Len() > 0 {
		return out.String(), nil
	}
	if err != nil {
		return "", errors.New(cmp.Or(strings.TrimSpace(errs.String()+out.String()), err.Error()))
	}
	return out.String(), nil
}

// shelf is the records as a model's tools use them: what is written goes through
// the journal, which never fails for want of the database.
type shelf struct {
	*store.Journal
	home home.Dir
}

func reading[T any](ctx context.Context, s shelf, read func(*store.DB) (T, error)) (T, error) {
	db, err := store.OpenRead(ctx, s.home)
	if err != nil {
		var none T
		return none, err
	}
	defer db.Close()
	return read(db)
}

func (s shelf) Task(ctx context.Context, id string) (store.Task, error) {
	return reading(ctx, s, func(db *store.DB) (store.Task, error) { return db.Task(ctx, id) })
}

func (s shelf) Tasks(ctx context.Context, f store.TaskFilter) (store.List[store.Task], error) {
	return reading(ctx, s, func(db *store.DB) (store.List[store.Task], error) { return db.Tasks(ctx, f) })
}

func (s shelf) Dependencies(ctx context.Context, task string) ([]store.Dependency, error) {
	return reading(ctx, s, func(db *store.DB) ([]store.Dependency, error) { return db.Dependencies(ctx, task) })
}

func (s shelf) Notes(ctx context.Context, f store.NoteFilter) (store.List[store.Note], error) {
	return reading(ctx, s, func(db *store.DB) (store.List[store.Note], error) { return db.Notes(ctx, f) })
}
