package mcp

import (
	"context"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/store"
	"netsky/work/task"
)

const tellAll = 50 // tasks in one list

// spooled is added to the result of what is only in the spool.
const spooled = "; the database cannot be written at the moment, so tasks shows it later"

// tasks are the recorded tasks, and notes, as an agent may read and change them.
type tasks struct {
	Tasks
	self    agent.ID
	records Records
	members Members
	log     func(what string, err error)
}

// tools are those of the records: task_start, which is agent0's, comes last.
func (t *tasks) tools() []tool {
	return []tool{
		{
			name: "task_add",
			description: "Record a piece of work for the owner and the other agents to see. " +
				"Nobody is notified: send a brief to the agent that will do it.",
			schema: taskAddSchema,
			run:    with("task_add", t.taskAdd),
		},
		{
			name: "task_update",
			description: "Update a task: that you start it (in_progress; an unassigned task becomes yours), what blocks it, " +
				"that it is done and what proves it. What you leave out is not changed.",
			schema: taskUpdateSchema,
			hints:  hints{repeats: true},
			run:    with("task_update", t.update),
		},
		{
			name:        "tasks",
			description: "List the recorded tasks, the most urgent first, or show one in full with its notes and the tasks it waits for.",
			schema:      tasksSchema,
			hints:       hints{reads: true},
			run:         with("tasks", t.list),
		},
		{
			name: "note",
			description: "Record something worth remembering about a task, a message or an agent. The owner and the other agents can read it there; " +
				"nobody is notified.",
			schema: noteSchema,
			run:    with("note", t.noteAdd),
		},
		{
			name: "task_start",
			description: "Give a task to an agent: it is started if it is down, and gets a brief with the task; its answer comes to you and closes the task. " +
				"A task that needs others is started when those are closed, or, where there is a check, proved. If its agent has ended, this gives the task to another.",
			schema: taskStartSchema,
			run:    with("task_start", t.start),
		},
	}
}

// find finds a task by its ID or by the beginning of it.
func (t *tasks) find(ctx context.Context, what, id string) (store.Task, error) {
	k, err := t.Book().Find(ctx, id)
	_, err = t.failed(what, err)
	return k, err
}

const tasksSchema = `{
	"type": "object",
	"properties": {
		"id": {"type": "string", "description": "show this one task in full: its id, or at least the first six characters"},
		"state": {"type": "string", "enum": ["open", "in_progress", "blocked", "done", "cancelled"], "description": "only tasks in this state; if left out, all that have not ended"},
		"assignee": {"type": "string", "description": "only tasks assigned to this agent, such as agent1; \"nobody\": only unassigned ones"}
	},
	"additionalProperties": false
}`

type tasksArgs struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Assignee string `json:"assignee"`
}

func (t *tasks) list(ctx context.Context, in tasksArgs) (string, error) {
	if in.ID != "" {
		return t.show(ctx, in.ID)
	}
	f, err := t.filter(in)
	if err != nil {
		return "", err
	}
	list, err := t.Book().List(ctx, f)
	if err != nil {
		return "", fmt.Errorf("tasks: %w", err)
	}
	return t.lines(ctx, list), nil
}

// filter returns the filter that the arguments ask for.
func (t *tasks) filter(in tasksArgs) (f task.Filter, err error) {
	f.States = []string{store.TaskInProgress, store.TaskBlocked, store.TaskOpen}
	if in.State != "" {
		if err := task.CheckState(in.State); err != nil {
			return f, argumentf("tasks: %v", err)
		}
		f.States = []string{in.State}
	}
	f.Nobody = in.Assignee == task.Nobody
	f.Assignee, err = assignee("tasks", in.Assignee)
	return f, err
}

func (t *tasks) lines(ctx context.Context, list []store.Task) string {
	if len(list) == 0 {
		return "no matching task is recorded"
	}
	var b strings.Builder
	for i, k := range list {
		if i == tellAll || b.Len() > maxResult-1024 {
			fmt.Fprintf(&b, "and %d more: filter by state or assignee\n", len(list)-i)
			break
		}
		b.WriteString(t.line(ctx, k) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// line describes a task. What only its worker calls done is not called so.
func (t *tasks) line(ctx context.Context, k store.Task) string {
	who := string(k.Assignee)
	if who == "" {
		who = task.Nobody
	}
	return fmt.Sprintf("%s  %s  priority %d  %s  %s", k.ID, t.Word(ctx, k), k.Priority, who, envelope.Line(k.Title, task.MaxTitle))
}

// show returns one task in full.
func (t *tasks) show(ctx context.Context, id string) (string, error) {
	k, err := t.find(ctx, "tasks: id", id)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nasked by %s, added %s", t.line(ctx, k), k.AskedBy, k.Created)
	if k.EstimateMinutes > 0 {
		fmt.Fprintf(&b, ", estimate %d min", k.EstimateMinutes)
	}
	if took := k.Took(); took != "" {
		b.WriteString(", took " + took)
	}
	if needs := t.unfinished(ctx, k.ID); len(needs) > 0 {
		b.WriteString("\nwaits for:\n  " + strings.Join(needs, "\n  "))
	}
	if k.Proof != "" {
		b.WriteString("\nproof: " + k.Proof)
	}
	if k.Body != "" {
		b.WriteString("\n\n" + envelope.Shorten(k.Body, maxResult/2))
	}
	b.WriteString(t.notes(ctx, k.ID))
	return b.String(), nil
}

// notes returns the notes on something, the newest first.
func (t *tasks) notes(ctx context.Context, about string) string {
	list, err := t.records.Notes(ctx, store.NoteFilter{About: about, Page: store.Page{Limit: 20}})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nnotes, the newest first:")
	for _, n := range list.Items {
		fmt.Fprintf(&b, "\n%s %s: %s", n.Created, n.Author, envelope.Shorten(n.Text, 2000))
	}
	return b.String()
}

// unfinished lists the unfinished tasks that a task waits for, a line each.
func (t *tasks) unfinished(ctx context.Context, id string) (list []string) {
	needs, _ := t.Book().Unfinished(ctx, id) // what can't be read is shown nowhere
	for _, k := range needs {
		list = append(list, t.line(ctx, k))
	}
	return list
}
