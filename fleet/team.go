// This file shows an agent's model its team. Changes to the team are made by
// netsky's own verbs, with their rules.

package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/mcp"
	"netsky/spawn"
	"netsky/store"
)

// A Team is what the model of one agent may see of the others and do to them.
type Team struct {
	Launcher *spawn.Launcher
	Environ  []string // of the verbs
}

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
		return "", fmt.Errorf("agent %s: unreadable output: %.200q", id, out)
	}
	e := v.Agents[0]
	switch e.Step {
	case spawn.StepAlready:
		return fmt.Sprintf("%s was already up; it is %s", id, e.State), nil
	case spawn.StepReady:
		return fmt.Sprintf("%s is up: %s%s", id, e.State.Word(), spaced(e.Note)), nil
	}
	return "", fmt.Errorf("%s: %s: %s", id, e.Step, cmp.Or(e.Error, e.Note))
}

// Stop stops one agent and returns one line on what that did.
func (t Team) Stop(ctx context.Context, id agent.ID) (string, error) {
	out, err := t.verb(ctx, "down", id.N())
	return strings.TrimSpace(out), err
}

// StartTask gives a task to an agent and returns what that did.
func (t Team) StartTask(ctx context.Context, task string, id agent.ID) (string, error) {
	args := []string{"task", "start", task}
	if id != "" {
		args = append(args, "--agent", id.N())
	}
	out, err := t.verb(ctx, args...)
	return strings.TrimSpace(out), err
}

// verb runs a verb of this netsky; its error contains the verb's output.
func (t Team) verb(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, t.Launcher.Binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = t.Environ, &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == partly && out.Len() > 0 {
		return out.String(), nil
	}
	if err != nil {
		return "", errors.New(cmp.Or(strings.TrimSpace(errs.String()+out.String()), err.Error()))
	}
	return out.String(), nil
}

// partly is the exit status of a verb that was partly successful.
const partly = 3

// spaced puts a space before a note.
func spaced(s string) string {
	if s == "" {
		return ""
	}
	return "  " + s
}
