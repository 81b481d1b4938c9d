package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"netsky/agent"
	"netsky/spawn"
	"netsky/store"
	"netsky/work/record"
	"netsky/work/task"
)

// A View is a task as a list shows it.
type View struct {
	store.Task
	Word string `json:"word"`          // what it is called: see task.Judge
	Now  string `json:"now,omitempty"` // why it does not go on, or what it waits for
}

// Views returns what lists show of tasks. state returns an agent's, if it is known.
func Views(ctx context.Context, db *store.DB, j *task.Judge, list []store.Task, state func(agent.ID) (spawn.Status, bool), soon func(spawn.Status) bool) ([]View, error) {
	book := task.Book{Records: direct{db}, Enough: j.Enough}
	views := make([]View, 0, len(list))
	for _, k := range list {
		v := View{Task: k, Word: j.Word(ctx, k)}
		switch v.Word {
		case task.Waiting:
			needs, err := book.Unfinished(ctx, k.ID)
			if err != nil {
				return nil, err
			}
			if v.Now = waitsFor(needs, j.Needed()); len(needs) == 0 && k.Assignee.Host() != "" {
				why, err := reason(ctx, db, k)
				if err != nil {
					return nil, err
				}
				v.Now = cmp.Or(why, v.Now)
			}
		case store.TaskInProgress:
			var err error
			if v.Now, err = unbrought(ctx, db, k); err != nil {
				return nil, err
			}
			v.Now = cmp.Or(v.Now, stuck(k, state, soon))
		case store.TaskBlocked:
			why, err := db.Reason(ctx, k.ID)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			v.Now = why.Text
		}
		views = append(views, v)
	}
	return views, nil
}

func waitsFor(needs []store.Task, after string) string {
	if len(needs) == 0 {
		return "about to start"
	}
	now := "needs " + Short(needs[0].ID)
	if needs[0].State == store.TaskDone {
		now += " " + after
	}
	if len(needs) > 1 {
		now += fmt.Sprintf(" and %d more", len(needs)-1)
	}
	return now
}

// unbrought says why a task is in progress that was answered on another host: what was committed there is not here.
func unbrought(ctx context.Context, db *store.DB, k store.Task) (string, error) {
	if k.Assignee.Host() == "" || k.Brief == "" {
		return "", nil
	}
	list, err := db.Messages(ctx, store.MessageFilter{InReplyTo: k.Brief, From: k.Assignee, To: k.Starter})
	if err != nil || len(list.Items) == 0 {
		return "", err
	}
	why, err := reason(ctx, db, k)
	return cmp.Or(why, "answered; what it has committed is being brought here"), err
}

// reason returns why a task has not gone on since it was given out, or began to wait; "" if that is not recorded.
func reason(ctx context.Context, db *store.DB, k store.Task) (string, error) {
	why, err := db.Reason(ctx, k.ID)
	if errors.Is(err, store.ErrNotFound) || err == nil && why.Created < cmp.Or(k.Briefed, k.Updated) {
		return "", nil
	}
	return why.Text, err
}

// stuck says why nobody works on a task that is in progress.
func stuck(k store.Task, state func(agent.ID) (spawn.Status, bool), soon func(spawn.Status) bool) string {
	if !k.Assignee.IsAgent() {
		return ""
	}
	if st, known := state(k.Assignee); known {
		if why := Stalled(st, k.Assignee.Host() == "" && soon(st)); why != "" {
			return why
		}
	}
	if k.Brief != "" && k.Briefed == 0 {
		return "not sent yet"
	}
	return ""
}

// A Story is all that is on record about a task.
type Story struct {
	View
	Needs    []View           `json:"needs"`
	NeededBy []View           `json:"needed_by"`
	Starts   []task.Start     `json:"given"`
	Cost     []record.Cost    `json:"cost"`
	Checks   []record.Check   `json:"checks"`
	Landings []record.Landing `json:"landings"`
	Notes    []store.Note     `json:"notes"`
}

const (
	mostNotes = 200
)

// Tell returns a task's story. What it needs, and what needs it, is called what j says.
func Tell(ctx context.Context, db *store.DB, j *task.Judge, v View) (Story, error) {
	s := Story{View: v, Needs: []View{}, NeededBy: []View{}, Starts: []task.Start{}}
	records := record.Records{DB: db}
	var errs [6]error
	errs[0] = s.links(ctx, db, j)
	s.Starts, errs[1] = task.Given(ctx, db, v.Task)
	s.Cost, errs[2] = records.CostOf(ctx, v.ID)
	s.Checks, errs[3] = records.Checks(ctx, record.Filter{Task: v.ID, Limit: 10})
	s.Landings, errs[4] = records.Landings(ctx, record.Filter{Task: v.ID, Limit: 10})
	notes, err := db.Notes(ctx, store.NoteFilter{About: v.ID, Page: store.Page{Limit: mostNotes}})
	s.Notes, errs[5] = notes.Items, err
	slices.Reverse(s.Notes)
	return s, errors.Join(errs[:]...)
}

// links finds what the task needs, and what needs it.
func (s *Story) links(ctx context.Context, db *store.DB, j *task.Judge) error {
	deps, err := db.Dependencies(ctx, s.ID)
	for _, d := range deps {
		to, other := &s.Needs, d.Needs
		if d.Task != s.ID {
			to, other = &s.NeededBy, d.Task
		}
		k, err := db.Task(ctx, other)
		if err != nil {
			k = store.Task{ID: other} // it was removed
		}
		*to = append(*to, View{Task: k, Word: j.Word(ctx, k)})
	}
	return err
}

// Order sorts views as they are listed: what is being worked on first, what has ended last.
func Order(list []View) {
	slices.SortStableFunc(list, func(a, b View) int { return cmp.Compare(rank(a.Word), rank(b.Word)) })
}

func rank(word string) int {
	return slices.Index([]string{store.TaskInProgress, task.Waiting, store.TaskOpen, store.TaskBlocked, task.Claimed, task.Proved, task.Landed, task.Done, store.TaskCancelled}, word)
}
