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
		"body": {"type": "string", "description": "what is wanted, and how one sees that it is done"},
		"assignee": {"type": "string", "description": "who does it, as agent1; left out: nobody yet"},
		"priority": {"type": "integer", "minimum": 0, "maximum": 9, "description": "0 is done first, 9 last; 5 if left out"},
		"estimate_minutes": {"type": "integer", "minimum": 1, "description": "how long it should take"},
		"needs": {"type": "array", "items": {"type": "string"}, "description": "ids of the tasks that must be done before"},
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
			"Nobody is notified: send a brief to the agent that is to do it.",
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
		told = fmt.Sprintf("\n%s does not know of it yet: send a brief that names the task", k.Assignee)
	}
	return fmt.Sprintf("task %s added%s%s", k.ID, noted, told), nil
}

// newTask is the task that the arguments describe.
func (s *Server) newTask(in taskAddArgs) (k store.Task, err error) {
	k = store.Task{
		ID: "t-" + agent.NewStart(), Title: envelope.Line(in.Title, len(in.Title)), Body: in.Body, Priority: 5, State: store.TaskOpen,
		AskedBy: s.o.Agent, Message: strings.TrimSpace(in.Message), EstimateMinutes: in.EstimateMinutes,
	}
	switch {
	case k.Title == "":
		return k, argumentf("task_add: title: missing")
	case len(k.Title) > maxTitle:
		return k, argumentf("task_add: title: %d bytes, at most %d; the rest belongs into body", len(k.Title), maxTitle)
	case len(k.Message) > 128:
		return k, argumentf("task_add: message: wants an id")
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

// numbers checks what a task counts.
func numbers(what string, k store.Task) error {
	const year = 365 * 24 * 60
	switch {
	case k.Priority < 0 || k.Priority > 9:
		return argumentf("%s: priority: %d: wants 0 to 9", what, k.Priority)
	case k.EstimateMinutes < 0 || k.EstimateMinutes > year:
		return argumentf("%s: estimate_minutes: %d: wants 1 to %d", what, k.EstimateMinutes, year)
	case k.ActualMinutes < 0 || k.ActualMinutes > year:
		return argumentf("%s: actual_minutes: %d: wants 1 to %d", what, k.ActualMinutes, year)
	}
	return nil
}

// assignee reads who shall do a task. A clone takes work and leaves it; to give
// it to others is the manager's.
func (s *Server) assignee(what, arg string) (agent.ID, error) {
	if arg = strings.TrimSpace(arg); arg == "" || arg == nobody {
		return "", nil
	}
	id, err := s.address(what+": assignee", arg)
	if err != nil {
		return "", err
	}
	if s.o.Agent.IsClone() && id != s.o.Agent {
		return "", argumentf("%s: assignee: %s may not give work to %s; leave assignee out and tell agent0", what, s.o.Agent, id)
	}
	return id, nil
}

const taskUpdateSchema = `{
	"type": "object",
	"properties": {
		"id": {"type": "string", "description": "the task; the first six characters of its id or more will do"},
		"state": {"type": "string", "enum": ["open", "in_progress", "blocked", "done", "cancelled"], "description": "done needs proof; blocked needs a note that says by what"},
		"note": {"type": "string", "description": "what happened; kept with the task"},
		"proof": {"type": "string", "description": "what shows that it is done: the command that was run and what it printed, a file, a commit"},
		"actual_minutes": {"type": "integer", "minimum": 1, "description": "how long it took; if left out, the time since it was begun"},
		"estimate_minutes": {"type": "integer", "minimum": 1, "description": "how long it should take"},
		"assignee": {"type": "string", "description": "who does it, as agent1; \"nobody\" gives it back"},
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
		description: "Say what has become of a task: that you begin with it (in_progress, which takes one that nobody has), what blocks it, " +
			"that it is done and what proves it. What you leave out stays as it is.",
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
		return "", argumentf("task_update: %s is a task of %s; tell %s or agent0 what you know of it", k.ID, k.Assignee, k.Assignee)
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

// changed is the task with what the arguments say of it.
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

// moved is the task in another state.
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
			return k, argumentf("task_update: note: missing: say by what the task is blocked")
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

// waitsFor says what should have been done before a task that goes on.
func (s *Server) waitsFor(ctx context.Context, k store.Task) string {
	if k.State != store.TaskInProgress && k.State != store.TaskDone {
		return ""
	}
	needs := s.needs(ctx, k.ID)
	if len(needs) == 0 {
		return ""
	}
	return "\nit waits for what is not done:\n  " + strings.Join(needs, "\n  ")
}

// untold says who does not know yet that a task was given to it.
func (s *Server) untold(before, k store.Task) string {
	if k.Assignee == before.Assignee || k.Assignee == "" || k.Assignee == s.o.Agent {
		return ""
	}
	return fmt.Sprintf("\n%s does not know of it yet: send a brief that names the task", k.Assignee)
}

// sooner sorts tasks by priority, the older first among equals.
func sooner(list []store.Task) []store.Task {
	slices.SortStableFunc(list, func(a, b store.Task) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Created, b.Created))
	})
	return list
}
