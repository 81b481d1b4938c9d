package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/store"
)

const (
	maxTitle = 200      // bytes
	maxBody  = 64 << 10 // bytes, of a task's body, a proof or a note
	tellAll  = 50       // tasks in one list
)

var errNoRecords = errors.New("the records are not available here")

func (s *Server) recordTools() []tool {
	return []tool{s.taskAddTool(), s.taskUpdateTool(), s.tasksTool(), s.noteTool()}
}

// record stores ops. noted is what to add to the result if they are only spooled.
func (s *Server) record(ctx context.Context, what string, ops ...store.Op) (noted string, err error) {
	if s.o.Records == nil {
		return "", fmt.Errorf("%s: %w", what, errNoRecords)
	}
	err = s.o.Records.Record(ctx, ops...)
	if errors.Is(err, store.ErrSpooled) {
		s.o.Log(what, err)
		return "; the database cannot be written at the moment, so tasks shows it later", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return "", nil
}

// within refuses a text that is too long for the records.
func within(what, text string, most int) error {
	if len(text) > most {
		return argumentf("%s: %d bytes, at most %d; write it to a file and give its path", what, len(text), most)
	}
	return nil
}

// task finds a task by its ID or by the beginning of it.
func (s *Server) task(ctx context.Context, what, id string) (store.Task, error) {
	if s.o.Records == nil {
		return store.Task{}, fmt.Errorf("%s: %w", what, errNoRecords)
	}
	if id = strings.TrimSpace(id); id == "" {
		return store.Task{}, argumentf("%s: missing", what)
	}
	k, err := s.o.Records.Task(ctx, id)
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return k, wrap(what, err)
	}
	found, err := s.tasksThat(ctx, store.TaskFilter{}, func(k store.Task) bool { return len(id) >= bus.ShortID && strings.HasPrefix(k.ID, id) })
	switch {
	case err != nil:
		return store.Task{}, wrap(what, err)
	case len(found) == 0:
		return store.Task{}, fmt.Errorf("%s: %q: %w", what, envelope.Line(id, 60), store.ErrNotFound)
	case len(found) > 1:
		return store.Task{}, argumentf("%s: %q: %d tasks have ids that begin with this; give the whole id", what, envelope.Line(id, 60), len(found))
	}
	return found[0], nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// tasksThat lists the tasks of a filter that want accepts, the newest first.
func (s *Server) tasksThat(ctx context.Context, f store.TaskFilter, want func(store.Task) bool) (found []store.Task, err error) {
	const pages = 20 // of a thousand
	f.Page.Limit = 1000
	for range pages {
		list, err := s.o.Records.Tasks(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, k := range list.Items {
			if want(k) {
				found = append(found, k)
			}
		}
		if f.Page.Cursor = list.Cursor; f.Page.Cursor == "" {
			break
		}
	}
	return found, nil
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
	f, want, err := s.taskFilter(in)
	if err != nil {
		return "", err
	}
	var list []store.Task
	for _, state := range want {
		f.State = state
		some, err := s.tasksThat(ctx, f, func(k store.Task) bool { return in.Assignee != nobody || k.Assignee == "" })
		if err != nil {
			return "", fmt.Errorf("tasks: %w", err)
		}
		list = append(list, sooner(some)...)
	}
	return taskList(list), nil
}

// nobody stands for the missing assignee of a task.
const nobody = "nobody"

// taskFilter returns the filter and the states that the arguments ask for.
func (s *Server) taskFilter(in tasksArgs) (f store.TaskFilter, states []string, err error) {
	states = []string{store.TaskInProgress, store.TaskBlocked, store.TaskOpen}
	if in.State != "" {
		if err := taskState("tasks", in.State); err != nil {
			return f, nil, err
		}
		states = []string{in.State}
	}
	if in.Assignee != "" && in.Assignee != nobody {
		f.Assignee, err = s.address("tasks: assignee", in.Assignee)
	}
	return f, states, err
}

func taskState(what, state string) error {
	switch state {
	case store.TaskOpen, store.TaskInProgress, store.TaskBlocked, store.TaskDone, store.TaskCancelled:
		return nil
	}
	return argumentf("%s: state: %q: must be open, in_progress, blocked, done or cancelled", what, state)
}

func taskList(list []store.Task) string {
	if len(list) == 0 {
		return "no matching task is recorded"
	}
	var b strings.Builder
	for i, k := range list {
		if i == tellAll || b.Len() > maxResult-1024 {
			fmt.Fprintf(&b, "and %d more: filter by state or assignee\n", len(list)-i)
			break
		}
		b.WriteString(taskLine(k) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func taskLine(k store.Task) string {
	who := string(k.Assignee)
	if who == "" {
		who = nobody
	}
	return fmt.Sprintf("%s  %s  priority %d  %s  %s", k.ID, k.State, k.Priority, who, envelope.Line(k.Title, maxTitle))
}

// showTask returns one task in full.
func (s *Server) showTask(ctx context.Context, id string) (string, error) {
	k, err := s.task(ctx, "tasks: id", id)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nasked by %s, added %s", taskLine(k), k.AskedBy, k.Created)
	if k.EstimateMinutes > 0 {
		fmt.Fprintf(&b, ", estimate %d min", k.EstimateMinutes)
	}
	if k.ActualMinutes > 0 {
		fmt.Fprintf(&b, ", took %d min", k.ActualMinutes)
	}
	if needs := s.needs(ctx, k.ID); len(needs) > 0 {
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

// needs lists the unfinished tasks that a task waits for, a line each.
func (s *Server) needs(ctx context.Context, id string) (list []string) {
	deps, err := s.o.Records.Dependencies(ctx, id)
	if err != nil {
		return nil
	}
	for _, d := range deps {
		if d.Task != id {
			continue
		}
		if k, err := s.o.Records.Task(ctx, d.Needs); err == nil && k.State != store.TaskDone {
			list = append(list, taskLine(k))
		}
	}
	return list
}
