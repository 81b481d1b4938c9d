package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/store"
)

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
	k, err := s.newTask(in)
	if err != nil {
		return "", err
	}
	ops := []store.Op{store.UpsertTask(k)}
	if len(in.Needs) > 50 {
		return "", argumentf("task_add: needs: %d, at most 50", len(in.Needs))
	}
	for _, id := range in.Needs {
		needed, err := s.task(ctx, "task_add: needs", id)
		if err != nil {
			return "", err
		}
		ops = append(ops, store.AddDependency{Task: k.ID, Needs: needed.ID})
	}
	noted, err := s.record(ctx, "task_add", ops...)
	if err != nil {
		return "", err
	}
	told := ""
	if k.Assignee != "" && k.Assignee != s.o.Agent {
		told = fmt.Sprintf("\n%s has not been told yet: send it a brief that names the task", k.Assignee)
	}
	return fmt.Sprintf("task %s added%s%s", k.ID, noted, told), nil
}

// newTask returns the task that the arguments describe.
func (s *Server) newTask(in taskAddArgs) (k store.Task, err error) {
	k = store.Task{
		ID: "t-" + agent.NewStart(), Title: envelope.Line(in.Title, len(in.Title)), Body: in.Body, Priority: 5, State: store.TaskOpen,
		AskedBy: s.o.Agent, Message: strings.TrimSpace(in.Message), EstimateMinutes: in.EstimateMinutes,
	}
	switch {
	case k.Title == "":
		return k, argumentf("task_add: title: missing")
	case len(k.Title) > maxTitle:
		return k, argumentf("task_add: title: %d bytes, at most %d; put the rest into body", len(k.Title), maxTitle)
	case len(k.Message) > 128:
		return k, argumentf("task_add: message: must be an id")
	}
	if err := within("task_add: body", k.Body, maxBody); err != nil {
		return k, err
	}
	if in.Priority != nil {
		k.Priority = *in.Priority
	}
	if err := numbers("task_add", k); err != nil {
		return k, err
	}
	k.Assignee, err = s.assignee("task_add", in.Assignee)
	return k, err
}

// numbers checks a task's numbers.
func numbers(what string, k store.Task) error {
	const year = 365 * 24 * 60
	switch {
	case k.Priority < 0 || k.Priority > 9:
		return argumentf("%s: priority: %d: must be 0 to 9", what, k.Priority)
	case k.EstimateMinutes < 0 || k.EstimateMinutes > year:
		return argumentf("%s: estimate_minutes: %d: must be 1 to %d", what, k.EstimateMinutes, year)
	case k.ActualMinutes < 0 || k.ActualMinutes > year:
		return argumentf("%s: actual_minutes: %d: must be 1 to %d", what, k.ActualMinutes, year)
	}
	return nil
}

// assignee parses who will do a task. A clone may take work and give it back; only the
// manager and the repair agent may assign it to others.
func (s *Server) assignee(what, arg string) (agent.ID, error) {
	if arg = strings.TrimSpace(arg); arg == "" || arg == nobody {
		return "", nil
	}
	id, err := s.address(what+": assignee", arg)
	if err != nil {
		return "", err
	}
	if s.o.Agent.IsClone() && id != s.o.Agent {
		return "", argumentf("%s: assignee: %s may not assign work to %s; leave assignee out and tell agent0", what, s.o.Agent, id)
	}
	return id, nil
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
		"priority": {"type": "integer", "minimum": 0, "maximum": 9, "description": "0 is done first, 9 last"}
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
	in.Note, in.Proof = strings.TrimSpace(in.Note), strings.TrimSpace(in.Proof)
	for name, text := range map[string]string{"note": in.Note, "proof": in.Proof} {
		if err := within("task_update: "+name, text, maxBody); err != nil {
			return "", err
		}
	}
	k, err := s.task(ctx, "task_update: id", in.ID)
	if err != nil {
		return "", err
	}
	if s.o.Agent.IsClone() && k.Assignee != "" && k.Assignee != s.o.Agent {
		return "", argumentf("task_update: %s is assigned to %s; tell %s or agent0 what you know about it", k.ID, k.Assignee, k.Assignee)
	}
	before := k
	if k, err = s.changed(k, in, time.Now()); err != nil {
		return "", err
	}
	var ops []store.Op
	if k != before {
		k.Updated = 0 // now
		ops = append(ops, store.UpsertTask(k))
	}
	if in.Note != "" {
		ops = append(ops, store.AddNote{About: k.ID, Author: string(s.o.Agent), Text: in.Note})
	}
	if len(ops) == 0 {
		return "nothing to change: " + taskLine(k), nil
	}
	noted, err := s.record(ctx, "task_update", ops...)
	if err != nil {
		return "", err
	}
	return "now: " + taskLine(k) + noted + s.waitsFor(ctx, k) + s.untold(before, k), nil
}

// changed applies the arguments to the task.
func (s *Server) changed(k store.Task, in taskUpdateArgs, now time.Time) (store.Task, error) {
	if in.Assignee != "" {
		id, err := s.assignee("task_update", in.Assignee)
		if err != nil {
			return k, err
		}
		k.Assignee = id
	}
	for _, n := range []struct{ to, from *int }{
		{&k.ActualMinutes, in.ActualMinutes}, {&k.EstimateMinutes, in.EstimateMinutes}, {&k.Priority, in.Priority},
	} {
		if n.from != nil {
			*n.to = *n.from
		}
	}
	if err := numbers("task_update", k); err != nil {
		return k, err
	}
	if in.Proof != "" {
		k.Proof = in.Proof
	}
	if in.State == "" || in.State == k.State {
		return k, nil
	}
	if err := taskState("task_update", in.State); err != nil {
		return k, err
	}
	return s.moved(k, in, store.At(now))
}

// moved changes the state of the task.
func (s *Server) moved(k store.Task, in taskUpdateArgs, now store.Time) (store.Task, error) {
	k.State, k.Ended = in.State, 0
	switch in.State {
	case store.TaskInProgress:
		if k.Assignee == "" {
			k.Assignee = s.o.Agent
		}
		if k.Started == 0 {
			k.Started = now
		}
	case store.TaskBlocked:
		if in.Note == "" {
			return k, argumentf("task_update: note: missing: say what blocks the task")
		}
	case store.TaskDone:
		if k.Proof == "" {
			return k, argumentf("task_update: proof: missing: say what shows that the task is done, such as the command you ran and what it printed")
		}
		if k.ActualMinutes == 0 && k.Started != 0 {
			k.ActualMinutes = max(1, int(now.Time().Sub(k.Started.Time()).Round(time.Minute)/time.Minute))
		}
		k.Ended = now
	case store.TaskCancelled:
		k.Ended = now
	}
	return k, nil
}

// waitsFor lists what should have been done before a task that continues.
func (s *Server) waitsFor(ctx context.Context, k store.Task) string {
	if k.State != store.TaskInProgress && k.State != store.TaskDone {
		return ""
	}
	needs := s.needs(ctx, k.ID)
	if len(needs) == 0 {
		return ""
	}
	return "\nit waits for these unfinished tasks:\n  " + strings.Join(needs, "\n  ")
}

// untold names a new assignee who has not been told of the task.
func (s *Server) untold(before, k store.Task) string {
	if k.Assignee == before.Assignee || k.Assignee == "" || k.Assignee == s.o.Agent {
		return ""
	}
	return fmt.Sprintf("\n%s has not been told yet: send it a brief that names the task", k.Assignee)
}

// sooner sorts tasks by priority, the older first among equals.
func sooner(list []store.Task) []store.Task {
	slices.SortStableFunc(list, func(a, b store.Task) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Created, b.Created))
	})
	return list
}
