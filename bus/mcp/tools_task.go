package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/store"
	"netsky/work/task"
)

// failed returns a tool's error from one of the book's. noted is what to add to the result if
// what was done is only spooled.
func (t *tasks) failed(what string, err error) (noted string, failed error) {
	var field *task.FieldError
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, store.ErrSpooled):
		t.log(what, err)
		return spooled, nil
	case errors.As(err, &field), errors.Is(err, task.ErrNotYours):
		return "", argumentf("%s: %v", what, err)
	}
	return "", fmt.Errorf("%s: %w", what, err)
}

const taskAddSchema = `{
	"type": "object",
	"properties": {
		"title": {"type": "string", "description": "the work in one line"},
		"body": {"type": "string", "description": "what is wanted, and how to see that it is done"},
		"assignee": {"type": "string", "description": "who does it, such as agent1; nobody if left out"},
		"priority": {"type": "integer", "minimum": 0, "maximum": 9, "description": "0 is done first, 9 last; 5 if left out"},
		"estimate_minutes": {"type": "integer", "minimum": 1, "description": "how long it should take"},
		"needs": {"type": "array", "items": {"type": "string"}, "description": "ids of the tasks that must be done first"},
		"message": {"type": "string", "description": "the id of the message that asked for it"}
	},
	"required": ["title"],
	"additionalProperties": false
}`

func (t *tasks) taskAdd(ctx context.Context, w task.Wish) (string, error) {
	var err error
	if w.Assignee, err = assignee("task_add", string(w.Assignee)); err != nil {
		return "", err
	}
	k, err := t.Add(ctx, w)
	noted, err := t.failed("task_add", err)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("task %s added%s%s", k.ID, noted, t.untold("", k)), nil
}

// assignee parses who will do a task; "" is nobody.
func assignee(what, arg string) (agent.ID, error) {
	if arg = strings.TrimSpace(arg); arg == "" || arg == task.Nobody {
		return "", nil
	}
	return address(what+": assignee", arg)
}

const taskUpdateSchema = `{
	"type": "object",
	"properties": {
		"id": {"type": "string", "description": "the id of the task, or at least its first six characters"},
		"state": {"type": "string", "enum": ["open", "in_progress", "blocked", "done", "cancelled"], "description": "done needs proof; blocked needs a note that says what blocks it"},
		"note": {"type": "string", "description": "what happened; stored with the task"},
		"proof": {"type": "string", "description": "what shows that it is done: the command that was run and what it printed, a file, a commit"},
		"actual_minutes": {"type": "integer", "minimum": 1, "description": "how long it took; if left out, the time since it was started"},
		"estimate_minutes": {"type": "integer", "minimum": 1, "description": "how long it should take"},
		"assignee": {"type": "string", "description": "who does it, such as agent1; \"nobody\" gives it back"},
		"priority": {"type": "integer", "minimum": 0, "maximum": 9, "description": "0 is done first, 9 last"},
		"needs": {"type": "array", "items": {"type": "string"}, "description": "ids of tasks that must be done first, beside those it waits for already"}
	},
	"required": ["id"],
	"additionalProperties": false
}`

type taskUpdateArgs struct {
	ID string `json:"id"`
	task.Change
}

func (t *tasks) update(ctx context.Context, in taskUpdateArgs) (string, error) {
	e, err := t.Edit(ctx, task.Edit{Task: in.ID, Change: in.Change})
	noted, err := t.failed("task_update", err)
	if err != nil {
		return "", err
	}
	if !e.Changed {
		return "nothing to change: " + t.line(ctx, e.Task), nil
	}
	if e.Note != "" {
		noted += "\n" + e.Note
	}
	return "now: " + t.line(ctx, e.Task) + noted + t.waitsFor(ctx, e.Task) + t.untold(e.Before.Assignee, e.Task), nil
}

// waitsFor lists what should have been done before a task that continues.
func (t *tasks) waitsFor(ctx context.Context, k store.Task) string {
	if k.State != store.TaskInProgress && k.State != store.TaskDone {
		return ""
	}
	needs := t.unfinished(ctx, k.ID)
	if len(needs) == 0 {
		return ""
	}
	return "\nit waits for these unfinished tasks:\n  " + strings.Join(needs, "\n  ")
}

// untold names a new assignee who has not been told of the task.
func (t *tasks) untold(before agent.ID, k store.Task) string {
	if k.Assignee == before || k.Assignee == "" || k.Assignee == t.self {
		return ""
	}
	return fmt.Sprintf("\n%s has not been told yet: %s", k.Assignee, t.tellIt())
}

// tellIt says how an agent gets a task.
func (t *tasks) tellIt() string {
	if t.self.IsClone() || t.members == nil {
		return "send it a brief that names the task"
	}
	return "task_start gives it the task"
}

const taskStartSchema = `{
	"type": "object",
	"properties": {
		"id": {"type": "string", "description": "the id of the task, or at least its first six characters"},
		"agent": {"type": "string", "description": "who does it, such as agent1, or agent1@build1 on another host; if left out, its assignee"}
	},
	"required": ["id"],
	"additionalProperties": false
}`

type taskStartArgs struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
}

func (t *tasks) start(ctx context.Context, in taskStartArgs) (string, error) {
	k, err := t.find(ctx, "task_start: id", in.ID)
	if err != nil {
		return "", err
	}
	id, err := assignee("task_start", in.Agent)
	if err != nil {
		return "", err
	}
	if id == t.self || id == "" && k.Assignee == t.self {
		return "", argumentf("task_start: %s is yours: task_update with state in_progress says that you have begun", k.ID)
	}
	text, err := t.members.StartTask(ctx, k.ID, id)
	if err != nil {
		return "", fmt.Errorf("task_start: %w", err)
	}
	return text, nil
}

const noteSchema = `{
	"type": "object",
	"properties": {
		"about": {"type": "string", "description": "the id of a task, a message or anything else that is on record, or an agent's name"},
		"text": {"type": "string", "description": "what to remember"}
	},
	"required": ["about", "text"],
	"additionalProperties": false
}`

func (t *tasks) noteAdd(ctx context.Context, in task.Note) (string, error) {
	about, err := t.Note(ctx, in)
	if errors.Is(err, task.ErrNothing) {
		return "", argumentf("note: about: %v; the tools tasks and agents list what there is, a message's id is in its tag", err)
	}
	noted, err := t.failed("note", err)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("note on %s recorded%s", about, noted), nil
}
