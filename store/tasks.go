package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"netsky/agent"
)

// States of a task.
const (
	TaskOpen       = "open"
	TaskInProgress = "in_progress"
	TaskBlocked    = "blocked"
	TaskDone       = "done"
	TaskCancelled  = "cancelled"
	TaskClaimed    = "claimed" // what done is called until more than the worker's word says so
)

// A Task is a piece of work: who asked for it, who does it, what proves it.
type Task struct {
	ID              string   `json:"id"`
	Title           string   `json:"title"`
	Body            string   `json:"body,omitempty"`
	Priority        int      `json:"priority"` // the lower the sooner
	State           string   `json:"state"`
	AskedBy         agent.ID `json:"asked_by,omitempty"`
	Assignee        agent.ID `json:"assignee,omitempty"`
	Message         string   `json:"message,omitempty"` // id of the message that caused it
	EstimateMinutes int      `json:"estimate_minutes,omitempty"`
	ActualMinutes   int      `json:"actual_minutes,omitempty"` // at least 1 once it is done
	Proof           string   `json:"proof,omitempty"`
	Starter         agent.ID `json:"starter,omitempty"` // who wants it started, or started it; of a blocked one: its brief's answer still counts
	Starts          int      `json:"starts,omitempty"`  // how often it was given to a worker
	Brief           string   `json:"brief,omitempty"`   // id of the message that gave it to the last one, until that is answered
	Briefed         Time     `json:"briefed,omitzero"`  // when that was sent
	ClosedBy        agent.ID `json:"closed_by,omitempty"`
	Begun           string   `json:"begun,omitempty"` // the commit that its worker was at when it was given to it
	Head            string   `json:"head,omitempty"`  // the commit that its worker was at when it was closed
	Created         Time     `json:"created"`
	Started         Time     `json:"started,omitzero"`
	Ended           Time     `json:"ended,omitzero"`
	Updated         Time     `json:"updated"`

	seq int64
}

// Word is the task's state as everybody is told it: done only if the owner closed it, or the manager
// one that left no commit. Package work/task knows what proves more.
func (k Task) Word() string {
	if k.State == TaskDone && k.ClosedBy != agent.Owner && (k.ClosedBy != agent.Root || k.Head != "") {
		return TaskClaimed
	}
	return k.State
}

// Took says how long the task took, "" if that is not known. Times are recorded in minutes, of which less
// than one counts as one.
func (k Task) Took() string {
	switch short := k.Started != 0 && k.Ended != 0 && k.Ended.Time().Sub(k.Started.Time()) < time.Minute; {
	case k.ActualMinutes == 0:
		return ""
	case k.ActualMinutes == 1 && short:
		return "at most a minute"
	}
	return fmt.Sprintf("%d min", k.ActualMinutes)
}

// UpsertTask records the whole task as of Updated; a later recorded version stays.
type UpsertTask Task

func (UpsertTask) name() string { return "upsert_task" }

func (k UpsertTask) stamped(now Time) Op {
	stamp(&k.Updated, now)
	stamp(&k.Created, k.Updated)
	if k.State == "" {
		k.State = TaskOpen
	}
	if k.State == TaskDone {
		k.ActualMinutes = max(k.ActualMinutes, 1)
	}
	return k
}

func (k UpsertTask) apply(t *tx) error {
	switch k.State {
	case TaskOpen, TaskInProgress, TaskBlocked, TaskDone, TaskCancelled:
	default:
		return fmt.Errorf("%w: %q is not a task state", errOp, k.State)
	}
	if k.ID == "" || k.Title == "" {
		return fmt.Errorf("%w: task %q: id and title are required", errOp, k.ID)
	}
	return t.exec(`INSERT INTO tasks (id, title, body, priority, state, asked_by, assignee, message, estimate_minutes,
			actual_minutes, proof, created, started, ended, updated, starter, starts, brief, briefed, closed_by, begun, head)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, body = excluded.body, priority = excluded.priority,
			state = excluded.state, asked_by = excluded.asked_by, assignee = excluded.assignee, message = excluded.message,
			estimate_minutes = excluded.estimate_minutes, actual_minutes = excluded.actual_minutes, proof = excluded.proof,
			started = excluded.started, ended = excluded.ended, updated = excluded.updated,
			starter = excluded.starter, starts = excluded.starts, brief = excluded.brief, briefed = excluded.briefed,
			closed_by = excluded.closed_by, begun = excluded.begun, head = excluded.head
		WHERE excluded.updated >= updated`,
		k.ID, k.Title, k.Body, k.Priority, k.State, k.AskedBy, k.Assignee, k.Message, k.EstimateMinutes,
		k.ActualMinutes, k.Proof, k.Created, k.Started, k.Ended, k.Updated, k.Starter, k.Starts, k.Brief, k.Briefed, k.ClosedBy, k.Begun, k.Head)
}

// A Dependency says that Task waits for Needs.
type Dependency struct {
	Task    string `json:"task"`
	Needs   string `json:"needs"`
	Created Time   `json:"created"`
}

// AddDependency records a dependency; both tasks must be on record.
type AddDependency Dependency

func (AddDependency) name() string { return "add_dependency" }

func (d AddDependency) stamped(now Time) Op { stamp(&d.Created, now); return d }

func (d AddDependency) apply(t *tx) error {
	if d.Task == d.Needs {
		return fmt.Errorf("%w: task %q cannot wait for itself", errOp, d.Task)
	}
	both := 0
	if err := t.one("SELECT count(*) FROM tasks WHERE id IN (?, ?)", []any{d.Task, d.Needs}, &both); err != nil {
		return err
	}
	if both < 2 {
		return fmt.Errorf("%w: dependency of %q on %q: not both are on record", errOp, d.Task, d.Needs)
	}
	return t.exec("INSERT INTO task_dependencies (task, needs, created) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", d.Task, d.Needs, d.Created)
}

const taskColumns = `id, title, body, priority, state, asked_by, assignee, message, estimate_minutes, actual_minutes,
	proof, created, started, ended, updated, starter, starts, brief, briefed, closed_by, begun, head, seq`

func scanTask(r *sql.Rows) (k Task, err error) {
	err = r.Scan(&k.ID, &k.Title, &k.Body, &k.Priority, &k.State, &k.AskedBy, &k.Assignee, &k.Message, &k.EstimateMinutes,
		&k.ActualMinutes, &k.Proof, &k.Created, &k.Started, &k.Ended, &k.Updated,
		&k.Starter, &k.Starts, &k.Brief, &k.Briefed, &k.ClosedBy, &k.Begun, &k.Head, &k.seq)
	return k, err
}

// A TaskFilter selects tasks; empty fields match all.
type TaskFilter struct {
	State    string
	Assignee agent.ID
	AskedBy  agent.ID
	Message  string
	Text     string // contained in the title
	Prefix   string // that the id begins with
	Page
}

// Tasks lists tasks, the newest first.
func (db Work) Tasks(ctx context.Context, f TaskFilter) (List[Task], error) {
	var w where
	w.is("state = ?", f.State)
	w.is("assignee = ?", string(f.Assignee))
	w.is("asked_by = ?", string(f.AskedBy))
	w.is("message = ?", f.Message)
	w.is("instr(title, ?) > 0", f.Text)
	w.is("instr(id, ?) = 1", f.Prefix)
	return paged(ctx, db.read.Load(), &w, f.Page, scanTask, taskColumns, "tasks", "created",
		func(k Task) (Time, int64) { return k.Created, k.seq })
}

// Task returns the task with that id.
func (db Work) Task(ctx context.Context, id string) (Task, error) {
	return first(ctx, db.read.Load(), scanTask, id, "SELECT "+taskColumns+" FROM tasks WHERE id = ?", id)
}

// Dependencies lists what the task waits for and what waits for it.
func (db Work) Dependencies(ctx context.Context, task string) ([]Dependency, error) {
	return Collect(ctx, db.read.Load(), func(r *sql.Rows) (d Dependency, err error) {
		err = r.Scan(&d.Task, &d.Needs, &d.Created)
		return d, err
	}, "SELECT task, needs, created FROM task_dependencies WHERE task = ?1 OR needs = ?1 ORDER BY created, task, needs", task)
}
