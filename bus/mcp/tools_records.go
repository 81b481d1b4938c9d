package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"netsky/bus/envelope"
	"netsky/store"
	"netsky/work/task"
)

const tellAll = 50 // tasks in one list

// spooled is added to the result of what is only in the spool.
const spooled = "; the database cannot be written at the moment, so tasks shows it later"

var errNoRecords = errors.New("the records are not available here")

func (s *Server) recordTools() []tool {
	return []tool{s.taskAddTool(), s.taskUpdateTool(), s.tasksTool(), s.noteTool()}
}

// task finds a task by its ID or by the beginning of it.
func (s *Server) task(ctx context.Context, what, id string) (store.Task, error) {
	if s.o.Records == nil {
		return store.Task{}, fmt.Errorf("%s: %w", what, errNoRecords)
	}
	k, err := s.book().Find(ctx, id)
	_, err = s.taskError(what, err)
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

func (s *Server) tasksTool() tool {
	return tool{
		name:        "tasks",
		description: "List the recorded tasks, the most urgent first, or show one in full with its notes and the tasks it waits for.",
		schema:      tasksSchema,
		hints:       hints{reads: true},
		run:         with("tasks", s.tasks),
	}
}

func (s *Server) tasks(ctx context.Context, in tasksArgs) (string, error) {
	if in.ID != "" {
		return s.showTask(ctx, in.ID)
	}
	if s.o.Records == nil {
		return "", fmt.Errorf("tasks: %w", errNoRecords)
	}
	f, err := s.taskFilter(in)
	if err != nil {
		return "", err
	}
	list, err := s.book().List(ctx, f)
	if err != nil {
		return "", fmt.Errorf("tasks: %w", err)
	}
	return s.taskList(ctx, list), nil
}

// taskFilter returns the filter that the arguments ask for.
func (s *Server) taskFilter(in tasksArgs) (f task.Filter, err error) {
	f.States = []string{store.TaskInProgress, store.TaskBlocked, store.TaskOpen}
	if in.State != "" {
		if err := task.CheckState(in.State); err != nil {
			return f, argumentf("tasks: %v", err)
		}
		f.States = []string{in.State}
	}
	f.Nobody = in.Assignee == task.Nobody
	f.Assignee, err = s.assignee("tasks", in.Assignee)
	return f, err
}

func (s *Server) taskList(ctx context.Context, list []store.Task) string {
	if len(list) == 0 {
		return "no matching task is recorded"
	}
	var b strings.Builder
	for i, k := range list {
		if i == tellAll || b.Len() > maxResult-1024 {
			fmt.Fprintf(&b, "and %d more: filter by state or assignee\n", len(list)-i)
			break
		}
		b.WriteString(s.taskLine(ctx, k) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// taskLine describes a task. What only its worker calls done is not called so.
func (s *Server) taskLine(ctx context.Context, k store.Task) string {
	who, word := string(k.Assignee), k.Word()
	if who == "" {
		who = task.Nobody
	}
	if s.o.Word != nil {
		word = s.o.Word(ctx, k)
	}
	return fmt.Sprintf("%s  %s  priority %d  %s  %s", k.ID, word, k.Priority, who, envelope.Line(k.Title, task.MaxTitle))
}

// showTask returns one task in full.
func (s *Server) showTask(ctx context.Context, id string) (string, error) {
	k, err := s.task(ctx, "tasks: id", id)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nasked by %s, added %s", s.taskLine(ctx, k), k.AskedBy, k.Created)
	if k.EstimateMinutes > 0 {
		fmt.Fprintf(&b, ", estimate %d min", k.EstimateMinutes)
	}
	if took := k.Took(); took != "" {
		b.WriteString(", took " + took)
	}
	if needs := s.unfinished(ctx, k.ID); len(needs) > 0 {
		b.WriteString("\nwaits for:\n  " + strings.Join(needs, "\n  "))
	}
	if k.Proof != "" {
		b.WriteString("\nproof: " + k.Proof)
	}
	if k.Body != "" {
		b.WriteString("\n\n" + envelope.Shorten(k.Body, maxResult/2))
	}
	b.WriteString(s.notes(ctx, k.ID))
	return b.String(), nil
}

// notes returns the notes on something, the newest first.
func (s *Server) notes(ctx context.Context, about string) string {
	list, err := s.o.Records.Notes(ctx, store.NoteFilter{About: about, Page: store.Page{Limit: 20}})
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
func (s *Server) unfinished(ctx context.Context, id string) (list []string) {
	needs, _ := s.book().Unfinished(ctx, id) // what can't be read is shown nowhere
	for _, k := range needs {
		list = append(list, s.taskLine(ctx, k))
	}
	return list
}
