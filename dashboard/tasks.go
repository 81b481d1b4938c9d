package dashboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/cost"
	"netsky/store"
	"netsky/work/dispatch"
)

// tasks are the pages of tasks, and how other pages and the API show one.
type tasks struct {
	records func() (Reader, error)
	works   *works
	costs   *costs
}

// wordLimit is how long git may take for what tasks are called; what is not known by then is not claimed.
const wordLimit = 2 * time.Second

// called returns the tasks with their words.
func (t *tasks) called(ctx context.Context, list []store.Task) []Task {
	out := t.told(ctx, list)
	if t.works.Work != nil && len(list) > 0 {
		ctx, cancel := context.WithTimeout(ctx, wordLimit)
		defer cancel()
		for i, word := range t.works.Words(ctx, list) {
			out[i].Word = word
		}
	}
	return out
}

// told returns the tasks with what the records say: called by their state, and why those don't go on that are
// blocked or wait. What can't be read is left out.
func (t *tasks) told(ctx context.Context, list []store.Task) []Task {
	out := make([]Task, len(list))
	db, err := t.records()
	for i, k := range list {
		if out[i] = (Task{dispatch.View{Task: k, Word: k.Word()}}); err != nil {
			continue
		}
		switch {
		case k.State == store.TaskBlocked:
			why, _ := db.Reason(ctx, k.ID)
			out[i].Now = why.Text
		case out[i].Waits():
			out[i].Now = waitsFor(ctx, db, k)
		}
	}
	return out
}

// waitsFor names what a task needs that is not closed.
func waitsFor(ctx context.Context, db Reader, k store.Task) string {
	list, err := db.Dependencies(ctx, k.ID)
	if err != nil {
		return ""
	}
	text, n := "", 0
	for _, d := range list {
		if d.Task != k.ID {
			continue
		}
		need, err := db.Task(ctx, d.Needs)
		if err != nil && !errors.Is(err, store.ErrNotFound) || err == nil && !Unfinished(need) {
			continue
		}
		if n++; n == 1 {
			if text = need.Title; text == "" {
				text = d.Needs
			}
		}
	}
	switch n {
	case 0:
		return "is about to start"
	case 1:
		return "waits for: " + text
	}
	return fmt.Sprintf("waits for %d tasks: %s, …", n, text)
}

// ofAgent lists the tasks that the agent may have worked on from one time to another, 0 being now.
func ofAgent(ctx context.Context, db Reader, s store.Session) (list []store.Task, err error) {
	l, err := db.Tasks(ctx, store.TaskFilter{Assignee: s.Actor, Page: store.Page{Limit: 100}})
	for _, k := range l.Items {
		if k.Started != 0 && (s.Ended == 0 || k.Started <= s.Ended) && (k.Ended == 0 || k.Ended >= s.Started) {
			list = append(list, k)
		}
	}
	return list, err
}

// sessionAt returns the session of an agent at a time, "" if none is on record.
func sessionAt(ctx context.Context, db Reader, d store.Delivery) (start string, err error) {
	at := max(d.Delivered, d.Claimed)
	if !d.Target.IsAgent() || at == 0 {
		return "", nil
	}
	l, err := db.Sessions(ctx, store.SessionFilter{Actor: d.Target, Page: store.Page{Limit: 100}})
	for _, s := range l.Items {
		if s.Started <= at && (s.Ended == 0 || s.Ended >= at) {
			return s.Start, err
		}
	}
	return "", err
}

// A taskBody is a task with the message that asked for it, the sessions that worked on
// it, and its proof.
type taskBody struct {
	Task     Task
	Cause    *store.Message
	Needs    []Task
	NeededBy []Task
	Used     *cost.Amounts
	Sessions []store.Session // that may have worked on it
	Given    []Given         // its briefs and their answers
	Story    story
}

// of adds to the tasks that a message asks for the one that it gives, or whose brief it answers.
func (t *tasks) of(ctx context.Context, db Reader, m store.Message, list []store.Task) ([]Task, error) {
	for _, brief := range []string{m.ID, m.InReplyTo} {
		id, ok := BriefOf(brief)
		if !ok || slices.ContainsFunc(list, func(k store.Task) bool { return k.ID == id }) {
			continue
		}
		switch k, err := db.Task(ctx, id); {
		case err == nil:
			list = append(list, k)
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	return t.told(ctx, list), nil
}

func (t *tasks) one(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Section, sh.Sub = "tasks", true
	db, err := t.records()
	if err != nil {
		return "", err
	}
	var b taskBody
	k, err := db.Task(ctx, q.path("id"))
	if err != nil {
		return "", err
	}
	b.Task, b.Used = t.called(ctx, []store.Task{k})[0], t.costs.used(ctx, sh, cost.Filter{Task: k.ID})
	if k.Message != "" {
		switch m, err := db.Message(ctx, k.Message); {
		case err == nil:
			b.Cause = &m
		case !errors.Is(err, store.ErrNotFound):
			return "", err
		}
	}
	if err := t.dependencies(ctx, db, &b); err != nil {
		return "", err
	}
	if b.Sessions, err = worked(ctx, db, k); err != nil {
		return "", err
	}
	if b.Given, err = GivenOf(ctx, db, k); err != nil {
		return "", err
	}
	line, err := db.Timeline(ctx, k.ID)
	if b.Story = storyOf(line, ""); b.Story.Has(k.Message) {
		b.Cause = nil
	}
	sh.Title, sh.Body = excerpt(60, k.Title), b
	return "task", err
}

func (t *tasks) dependencies(ctx context.Context, db Reader, b *taskBody) error {
	list, err := db.Dependencies(ctx, b.Task.ID)
	if err != nil {
		return err
	}
	for _, d := range list {
		id, to := d.Needs, &b.Needs
		if d.Needs == b.Task.ID {
			id, to = d.Task, &b.NeededBy
		}
		k, err := db.Task(ctx, id)
		if err != nil {
			return err
		}
		*to = append(*to, t.called(ctx, []store.Task{k})...)
	}
	return nil
}

// worked lists the assignee's sessions that may have worked on the task.
func worked(ctx context.Context, db Reader, k store.Task) ([]store.Session, error) {
	if k.Assignee == "" || k.Started == 0 {
		return nil, nil
	}
	l, err := db.Sessions(ctx, store.SessionFilter{Actor: k.Assignee, Page: store.Page{Limit: 20}})
	return slices.DeleteFunc(l.Items, func(s store.Session) bool {
		return s.Ended != 0 && s.Ended < k.Started || k.Ended != 0 && s.Started > k.Ended
	}), err
}
