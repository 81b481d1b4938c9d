package dashboard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netsky/store"
)

// wordLimit is how long git may take for what tasks are called; what is not known by then is not claimed.
const wordLimit = 2 * time.Second

// called returns the tasks with their words.
func (s *Server) called(ctx context.Context, list []store.Task) []Task {
	out := s.told(ctx, list)
	if s.o.Work != nil && len(list) > 0 {
		ctx, cancel := context.WithTimeout(ctx, wordLimit)
		defer cancel()
		for i, word := range s.o.Work.Words(ctx, list) {
			out[i].Called = word
		}
	}
	return out
}

// told returns the tasks with what the records say: called by their state, and why those don't go on that are
// blocked or wait. What can't be read is left out.
func (s *Server) told(ctx context.Context, list []store.Task) []Task {
	out := make([]Task, len(list))
	db, err := s.records()
	for i, k := range list {
		if out[i] = (Task{Task: k, Called: k.Word()}); err != nil {
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
