package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/bus/mcp"
	"netsky/config"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/store"
)

// A Team is what the model of one agent may see of the others and do to them.
type Team struct{ *Fleet }

// List returns each agent's state, and its task according to the records.
func (t Team) List(ctx context.Context) ([]mcp.Member, error) {
	list, err := t.Launcher.Inspect(ctx)
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

// tasks returns each agent's task according to the records.
func (t Team) tasks(ctx context.Context) map[agent.ID]string {
	db, err := store.OpenRead(ctx, t.Launcher.Home)
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

// Peek returns the last lines of an agent's pane.
func (t Team) Peek(ctx context.Context, id agent.ID, lines int) (string, error) {
	list, err := t.Launcher.Inspect(ctx)
	if err != nil {
		return "", err
	}
	st := list.Find(id)
	if st.Pane() == "" {
		return "", spawn.NoPane(st)
	}
	text, err := t.Launcher.LastLines(ctx, st, lines)
	return strings.Join(text, "\n"), err
}

// Start starts one agent and returns one line on what that did.
func (t Team) Start(ctx context.Context, id agent.ID, objective string) (string, error) {
	f, u, err := t.now()
	if err != nil {
		return "", err
	}
	r, err := f.Start(ctx, StartRequest{Agents: []agent.ID{id}, Objective: objective})
	if len(r.Agents) == 0 {
		return "", u.with(err)
	}
	switch e := r.Agents[0]; e.Step {
	case spawn.StepAlready:
		return fmt.Sprintf("%s was already up; it is %s", id, e.State), nil
	case spawn.StepReady:
		return fmt.Sprintf("%s is up: %s%s", id, e.State.Word(), words.Note(e.Note)), nil
	default:
		why := e.Note
		if e.Err != nil {
			why = e.Err.Error()
		}
		return "", fmt.Errorf("%s: %s: %s", id, e.Step, why)
	}
}

// Stop stops one agent and returns what that did, a line a step.
func (t Team) Stop(ctx context.Context, id agent.ID) (string, error) {
	f, u, err := t.now()
	if err != nil {
		return "", err
	}
	r, err := f.Down(ctx, DownRequest{Agents: []agent.ID{id}})
	if err != nil && r.Ended == 0 {
		return "", u.with(err)
	}
	return strings.Join(u.steps, "\n"), nil
}

// StartTask gives a task to an agent and returns what that did.
func (t Team) StartTask(ctx context.Context, task string, id agent.ID) (string, error) {
	f, u, err := t.now()
	if err != nil {
		return "", err
	}
	s, err := f.StartTask(ctx, TaskRequest{Task: task, Agent: id})
	if s.Task.Brief == "" && err != nil {
		return "", u.with(err)
	}
	return f.TaskStarted(s), nil
}

// now returns the fleet with netsky.toml as it is now, and what collects what it says.
func (t Team) now() (*Fleet, *collector, error) {
	c, _, err := config.Load(t.Fleet.Home)
	if err != nil {
		return nil, nil, err
	}
	u := new(collector)
	f, err := New(t.Fleet.Home, &c, t.Fleet.Actor, t.Fleet.Environ, t.Fleet.Version, u)
	return f, u, err
}

// A collector is the UI of a model: nobody is asked, and what is said is part of an error.
type collector struct{ steps, said []string }

func (*collector) Ask(string) (string, error) { return "", ErrNobody }

func (u *collector) Step(s Step) {
	switch {
	case s.Line != "":
		u.steps = append(u.steps, s.Line)
	case s.Down != nil:
		u.steps = append(u.steps, DownLine(*s.Down))
	}
}

func (u *collector) Warn(err error) { u.said = append(u.said, plainly(err)) }

// with returns the error with what was said before it.
func (u *collector) with(err error) error {
	return errors.New(strings.Join(append(u.said, plainly(err)), "\n"))
}

// plainly returns an error and what to do next.
func plainly(err error) string {
	return strings.TrimSuffix(err.Error()+"\n"+advice.Of(err), "\n")
}
