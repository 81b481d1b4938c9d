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

// book returns the tasks as this agent may change them.
func (s *Server) book() task.Book {
	return task.Book{
		Home: s.o.Home, Records: s.o.Records, By: s.o.Agent, Head: s.o.Head,
		Mail: func(ctx context.Context, id string) bool {
			list, err := s.o.Bus.Received(ctx, s.o.Agent, id)
			return err == nil && len(list) > 0 && list[0].Envelope.ID == id
		},
	}
}

// taskError returns a tool's error from one of the book's. noted is what to add to the result if
// what was done is only spooled.
func (s *Server) taskError(what string, err error) (noted string, failed error) {
	var field *task.FieldError
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, store.ErrSpooled):
		s.o.Log(what, err)
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

type taskAddArgs struct {
	Title           string   `json:"title"`
	Body            string   `json:"body"`
	Assignee        string   `json:"assignee"`
	Priority        *int     `json:"priority"`
	EstimateMinutes int      `json:"estimate_minutes"`
	Needs           []string `json:"needs"`
	Message         string   `json:"message"`
}

func (s *Server) taskAddTool() tool {
	return tool{
		name: "task_add",
		description: "Record a piece of work for the owner and the other agents to see. " +
			"Nobody is notified: send a brief to the agent that will do it.",
		schema: taskAddSchema,
		run:    with("task_add", s.taskAdd),
	}
}

func (s *Server) taskAdd(ctx context.Context, in taskAddArgs) (string, error) {
	if s.o.Records == nil {
		return "", fmt.Errorf("task_add: %w", errNoRecords)
	}
	w := task.Wish{Title: in.Title, Body: in.Body, Priority: in.Priority, EstimateMinutes: in.EstimateMinutes, Needs: in.Needs, Message: in.Message}
	var err error
	if w.Assignee, err = s.assignee("task_add", in.Assignee); err != nil {
		return "", err
	}
	k, err := s.book().Add(ctx, w)
	noted, err := s.taskError("task_add", err)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("task %s added%s%s", k.ID, noted, s.untold("", k)), nil
}

// assignee parses who will do a task; "" is nobody.
func (s *Server) assignee(what, arg string) (agent.ID, error) {
	if arg = strings.TrimSpace(arg); arg == "" || arg == task.Nobody {
		return "", nil
	}
	return s.address(what+": assignee", arg)
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
	ID              string `json:"id"`
	State           string `json:"state"`
	Note            string `json:"note"`
	Proof           string `json:"proof"`
	ActualMinutes   *int   `json:"actual_minutes"`
	EstimateMinutes *int   `json:"estimate_minutes"`
	Assignee        string `json:"assignee"`
	Priority        *int   `json:"priority"`

	Needs []string `json:"needs"`
}

func (s *Server) taskUpdateTool() tool {
	return tool{
		name: "task_update",
		description: "Update a task: that you start it (in_progress; an unassigned task becomes yours), what blocks it, " +
			"that it is done and what proves it. What you leave out is not changed.",
		schema: taskUpdateSchema,
		hints:  hints{repeats: true},
		run:    with("task_update", s.taskUpdate),
	}
}

func (s *Server) taskUpdate(ctx context.Context, in taskUpdateArgs) (string, error) {
	if s.o.Records == nil {
		return "", fmt.Errorf("task_update: %w", errNoRecords)
	}
	before, k, changed, err := s.book().Update(ctx, in.ID, task.Change{
		State: in.State, Note: in.Note, Proof: in.Proof, ActualMinutes: in.ActualMinutes, EstimateMinutes: in.EstimateMinutes,
		Assignee: in.Assignee, Priority: in.Priority, Needs: in.Needs,
	})
	noted, err := s.taskError("task_update", err)
	if err != nil {
		return "", err
	}
	if !changed {
		return "nothing to change: " + s.taskLine(ctx, k), nil
	}
	if in.State != "" && s.o.TakeBack != nil {
		if note := s.o.TakeBack(ctx, before, k); note != "" {
			noted += "\n" + note
		}
	}
	return "now: " + s.taskLine(ctx, k) + noted + s.waitsFor(ctx, k) + s.untold(before.Assignee, k), nil
}

// waitsFor lists what should have been done before a task that continues.
func (s *Server) waitsFor(ctx context.Context, k store.Task) string {
	if k.State != store.TaskInProgress && k.State != store.TaskDone {
		return ""
	}
	needs := s.unfinished(ctx, k.ID)
	if len(needs) == 0 {
		return ""
	}
	return "\nit waits for these unfinished tasks:\n  " + strings.Join(needs, "\n  ")
}

// untold names a new assignee who has not been told of the task.
func (s *Server) untold(before agent.ID, k store.Task) string {
	if k.Assignee == before || k.Assignee == "" || k.Assignee == s.o.Agent {
		return ""
	}
	return fmt.Sprintf("\n%s has not been told yet: %s", k.Assignee, s.tellIt(k))
}

// tellIt says how an agent gets a task.
func (s *Server) tellIt(k store.Task) string {
	if s.o.Agent.IsClone() || s.o.Members == nil {
		return "send it a brief that names the task"
	}
	return "task_start gives it the task"
}

const taskStartSchema = `{
	"type": "object",
	"properties": {
		"id": {"type": "string", "description": "the id of the task, or at least its first six characters"},
		"agent": {"type": "string", "description": "who does it, such as agent1; if left out, its assignee"}
	},
	"required": ["id"],
	"additionalProperties": false
}`

type taskStartArgs struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
}

func (s *Server) taskStartTool() tool {
	return tool{
		name: "task_start",
		description: "Give a task to an agent: it is started if it is down, and gets a brief with the task; its answer comes to you and closes the task. " +
			"A task that needs others is started when those are closed, or, where there is a check, proved. If its agent has ended, this gives the task to another.",
		schema: taskStartSchema,
		run:    with("task_start", s.taskStart),
	}
}

func (s *Server) taskStart(ctx context.Context, in taskStartArgs) (string, error) {
	if s.o.Members == nil {
		return "", fmt.Errorf("task_start: %w", errNoTeam)
	}
	k, err := s.task(ctx, "task_start: id", in.ID)
	if err != nil {
		return "", err
	}
	id, err := s.assignee("task_start", in.Agent)
	if err != nil {
		return "", err
	}
	if id == s.o.Agent || id == "" && k.Assignee == s.o.Agent {
		return "", argumentf("task_start: %s is yours: task_update with state in_progress says that you have begun", k.ID)
	}
	text, err := s.o.Members.StartTask(ctx, k.ID, id)
	if err != nil {
		return "", fmt.Errorf("task_start: %w", err)
	}
	return text, nil
}
