// Package task holds the rules of tasks: what one must have, who may change it and how, what it
// waits for, and when the work that it asks for counts as done.
//
// Every change is made under one lock of the home, on the task as the records have it at that
// moment, and is one transaction; a change that is only spooled is not seen by the next one. The
// package sends nothing and starts nobody: package work/dispatch does. A crash leaves a task as it was
// or as it was changed.
package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/store"
)

const (
	MaxTitle = 200      // bytes
	MaxText  = 64 << 10 // bytes, of a body, a proof or a note
	maxNeeds = 50
	// ShortID is the fewest characters that may stand for an id.
	ShortID = 6
	pages   = 20 // of a thousand tasks: more are not looked through
	year    = 365 * 24 * 60
)

// Nobody is written for the assignee of a task that has none.
const Nobody = "nobody"

// Records reads and writes the records. Record's error may match store.ErrSpooled.
type Records interface {
	Record(ctx context.Context, ops ...store.Op) error
	Task(ctx context.Context, id string) (store.Task, error)
	Tasks(ctx context.Context, f store.TaskFilter) (store.List[store.Task], error)
	Dependencies(ctx context.Context, task string) ([]store.Dependency, error)
	// The errors of Resolve match store.ErrNotFound or store.ErrAmbiguous if nothing, or more than one thing, has that ID.
	Resolve(ctx context.Context, id string) (store.Subject, error)
}

// A Book is the tasks of a home, as one address may read and change them.
type Book struct {
	Home    home.Dir
	Records Records
	By      agent.ID // who asks
	Own     bool     // By may take and change only its own tasks, and those of nobody
	// Head returns the commit that an agent is at, or "" if it works in no repository. nil: unknown.
	Head func(ctx context.Context, id agent.ID) string
	// Mail reports whether By has a message with that ID, which the records may not have yet. nil: none.
	Mail func(ctx context.Context, id string) bool
	// Enough reports whether those may start that need a closed task. nil: it is.
	Enough func(ctx context.Context, k store.Task) bool
}

// A FieldError reports a value that a task can't have.
type FieldError struct {
	Field string // as in JSON: estimate_minutes
	Fact  string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Fact }

func fieldf(field, format string, args ...any) error {
	return &FieldError{field, fmt.Sprintf(format, args...)}
}

// A MissingError reports that no task has the id, or one that begins with it. It matches
// store.ErrNotFound.
type MissingError struct{ ID string }

func (e *MissingError) Error() string { return fmt.Sprintf("%q: %v", e.Short(), store.ErrNotFound) }

// Short returns the id, cut.
func (e *MissingError) Short() string { return envelope.Line(e.ID, 60) }

// Is reports whether the target is store.ErrNotFound.
func (e *MissingError) Is(target error) bool { return target == store.ErrNotFound }

// ErrNotYours is returned for a task of another's.
var ErrNotYours = errors.New("not this agent's")

// Prefix begins the id of every task.
const Prefix = "t-"

// A Wish is a task to be added.
type Wish struct {
	Title           string   `json:"title"`
	Body            string   `json:"body,omitempty"`
	Assignee        agent.ID `json:"assignee,omitempty"`
	Priority        *int     `json:"priority,omitempty"` // nil is 5
	EstimateMinutes int      `json:"estimate_minutes,omitempty"`
	Needs           []string `json:"needs,omitempty"`   // ids
	Message         string   `json:"message,omitempty"` // the id of the one that asks for it
}

// Add records a task. If the error matches store.ErrSpooled, it will be one.
func (b Book) Add(ctx context.Context, w Wish) (k store.Task, err error) {
	k = store.Task{
		ID: Prefix + agent.NewStart(), Body: w.Body, Priority: 5, State: store.TaskOpen,
		AskedBy: b.By, Assignee: w.Assignee, Message: strings.TrimSpace(w.Message), EstimateMinutes: w.EstimateMinutes,
	}
	if w.Priority != nil {
		k.Priority = *w.Priority
	}
	if k.Title, err = titled(w.Title); err != nil {
		return k, err
	}
	switch {
	case len(k.Message) > 128:
		return k, fieldf("message", "must be an id")
	case len(w.Needs) > maxNeeds:
		return k, fieldf("needs", "%d, at most %d", len(w.Needs), maxNeeds)
	}
	if err := errors.Join(within("body", k.Body), numbers(k), b.mayAssign(k.Assignee)); err != nil {
		return k, first(err)
	}
	ops := []store.Op{store.UpsertTask(k)}
	for _, id := range w.Needs {
		needed, err := b.Find(ctx, id)
		if err != nil {
			return k, fmt.Errorf("needs: %w", err)
		}
		ops = append(ops, store.AddDependency{Task: k.ID, Needs: needed.ID})
	}
	return k, b.Records.Record(ctx, ops...)
}

// first returns the first of joined errors: one mistake at a time is enough.
func first(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()[0]
	}
	return err
}

// titled returns a title as it is recorded, in one line.
func titled(text string) (string, error) {
	title := envelope.Line(text, len(text))
	switch {
	case title == "":
		return "", fieldf("title", "missing")
	case len(title) > MaxTitle:
		return "", fieldf("title", "%d bytes, at most %d; put the rest into body", len(title), MaxTitle)
	}
	return title, nil
}

func within(field, text string) error {
	if len(text) > MaxText {
		return fieldf(field, "%d bytes, at most %d; write it to a file and give its path", len(text), MaxText)
	}
	return nil
}

func numbers(k store.Task) error {
	switch {
	case k.Priority < 0 || k.Priority > 9:
		return fieldf("priority", "%d: must be 0 to 9", k.Priority)
	case k.EstimateMinutes < 0 || k.EstimateMinutes > year:
		return fieldf("estimate_minutes", "%d: must be 1 to %d", k.EstimateMinutes, year)
	case k.ActualMinutes < 0 || k.ActualMinutes > year:
		return fieldf("actual_minutes", "%d: must be 1 to %d", k.ActualMinutes, year)
	}
	return nil
}

// mayAssign refuses an assignee. Who may do so only with its own may take work and give it back.
func (b Book) mayAssign(to agent.ID) error {
	if b.Own && to != "" && to != b.By {
		return fieldf("assignee", "%s may not assign work to %s; leave assignee out and tell agent0", b.By, to)
	}
	return nil
}

// mayChange refuses a task of another's.
func (b Book) mayChange(k store.Task) error {
	if b.Own && k.Assignee != "" && k.Assignee != b.By {
		return fmt.Errorf("%s: %w: it is assigned to %s; tell %s or agent0 what you know about it", k.ID, ErrNotYours, k.Assignee, k.Assignee)
	}
	return nil
}

// Find returns the task with that id, or the one whose id begins with it. The error matches
// store.ErrNotFound if there is none.
func (b Book) Find(ctx context.Context, id string) (store.Task, error) {
	id = strings.TrimSpace(id)
	if id == "" {
		return store.Task{}, fieldf("id", "missing")
	}
	k, err := b.Records.Task(ctx, id)
	if errors.Is(err, fs.ErrNotExist) { // there are no records yet
		return k, &MissingError{id}
	}
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return k, err
	}
	var found []store.Task
	if len(id) >= ShortID {
		found, err = b.all(ctx, store.TaskFilter{Prefix: id}, func(store.Task) bool { return true })
	} else {
		err = nil
	}
	switch {
	case err != nil:
		return k, err
	case len(found) == 0:
		return k, &MissingError{id}
	case len(found) > 1:
		return k, fieldf("id", "%q: %d tasks have ids that begin with this; give the whole id", envelope.Line(id, 60), len(found))
	}
	return found[0], nil
}

// all lists the tasks of a filter that want accepts, the newest first.
func (b Book) all(ctx context.Context, f store.TaskFilter, want func(store.Task) bool) (found []store.Task, err error) {
	f.Page.Limit = 1000
	for range pages {
		list, err := b.Records.Tasks(ctx, f)
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

// locked runs do while no other process changes a task.
func (b Book) locked(ctx context.Context, do func() error) error {
	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	lock, err := b.Home.WaitLock(wait, home.TasksLock, nil)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return do()
}
