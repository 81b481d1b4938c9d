package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/mcp"
	"netsky/config"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/store"
	"netsky/view"
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
		members = append(members, mcp.Member{Agent: view.Of(st, nil), Task: tasks[st.Agent]})
	}
	now := time.Now()
	hosts, _ := attention.Hosts(t.Home, now) // `netsky needs` says what can't be read
	for _, h := range hosts {
		for _, a := range h.Agents {
			a.Detail = strings.TrimSpace(h.AsOf(now) + " " + a.Detail)
			members = append(members, mcp.Member{Agent: a, Task: tasks[a.ID]})
		}
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
	v, err := Panes(t).Peek(ctx, PeekRequest{Agent: id, Lines: lines})
	return strings.Join(v.Lines, "\n"), err
}

// teamPatience is how long a deed of a model's may take: its program gives up on a tool before.
const teamPatience = 2 * time.Minute

// Start starts one agent and returns what that did.
func (t Team) Start(ctx context.Context, id agent.ID, objective string) (string, error) {
	return t.do(ctx, func(ctx context.Context, f *Fleet) (string, error) {
		r, err := f.Start(ctx, StartRequest{Agents: []agent.ID{id}, Objective: objective})
		if len(r.Agents) == 0 {
			return "", err
		}
		switch e := r.Agents[0]; e.Step {
		case spawn.StepAlready:
			return fmt.Sprintf("%s was already up; it is %s", id, e.State), err
		case spawn.StepReady:
			return fmt.Sprintf("%s is up: %s%s", id, e.State.Word(), words.Note(e.Note)), err
		default:
			why := e.Note
			if e.Err != nil {
				why = e.Err.Error()
			}
			return "", fmt.Errorf("%s: %s: %s", id, e.Step, why)
		}
	})
}

// Stop stops one agent and returns what that did, a line a step.
func (t Team) Stop(ctx context.Context, id agent.ID) (string, error) {
	u := new(collector)
	return t.with(ctx, u, func(ctx context.Context, f *Fleet) (string, error) {
		_, err := f.Down(ctx, DownRequest{Agents: []agent.ID{id}})
		return strings.Join(u.steps, "\n"), err
	})
}

// StartTask gives a task to an agent and returns what that did.
func (t Team) StartTask(ctx context.Context, task string, id agent.ID) (string, error) {
	return t.do(ctx, func(ctx context.Context, f *Fleet) (string, error) {
		s, err := Tasks{f}.Start(ctx, TaskRequest{Task: task, Agent: id})
		if s.Task.Brief == "" && err != nil {
			return "", err
		}
		return Tasks{f}.Started(s), err
	})
}

func (t Team) do(ctx context.Context, deed func(context.Context, *Fleet) (string, error)) (string, error) {
	return t.with(ctx, new(collector), deed)
}

// with does a deed with netsky.toml as it is now. What was done in part is said with what was not; any
// other error contains what was said before it, so that nothing is reported as done that is not.
func (t Team) with(ctx context.Context, u *collector, deed func(context.Context, *Fleet) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, teamPatience)
	defer cancel()
	c, _, err := config.Load(t.Home)
	if err != nil {
		return "", err
	}
	f, err := t.rebuilt(&c, t.Environ, u)
	if err != nil {
		return "", err
	}
	text, err := deed(ctx, f)
	var some *PartlyError
	switch {
	case err == nil:
		return text, nil
	case text != "" && errors.As(err, &some):
		return text + "\n" + plainly(err), nil
	case text != "":
		u.said = append(u.said, text)
	}
	return "", errors.New(strings.Join(append(u.said, plainly(err)), "\n"))
}

// A collector is the UI of a model: nobody is asked, and what is said is part of an error.
type collector struct {
	mu          sync.Mutex // guards the fields below until the deed is over
	steps, said []string
}

// Ask asks nobody.
func (*collector) Ask(string) (string, error) { return "", ErrNobody }

// Step keeps what is said of ends.
func (u *collector) Step(s Step) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case s.Line != "":
		u.steps = append(u.steps, s.Line)
	case s.Down != nil:
		u.steps = append(u.steps, DownLine(*s.Down))
	}
}

// Warn keeps what is said.
func (u *collector) Warn(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.said = append(u.said, plainly(err))
}

// plainly returns an error and what to do next.
func plainly(err error) string {
	return strings.TrimSuffix(err.Error()+"\n"+advice.Of(err), "\n")
}
