package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/config"
	"netsky/cost"
	"netsky/daemon"
	"netsky/home"
	"netsky/spawn"
	"netsky/store"
	"netsky/work/check"
	"netsky/work/dispatch"
	"netsky/work/land"
	"netsky/work/record"
	"netsky/work/task"
)

// A TaskRequest asks for a task to be given to an agent.
type TaskRequest struct {
	Task   string   `json:"task"`             // an ID, or its beginning
	Agent  agent.ID `json:"agent,omitempty"`  // "" is its assignee
	Queue  bool     `json:"queue,omitempty"`  // the agent is not started: the task waits in its mailbox
	Anyway bool     `json:"anyway,omitempty"` // it waits for no other task any more
	Again  bool     `json:"again,omitempty"`  // it may have ended
	// Start is how the agent is started if it is not up.
	Start StartRequest `json:"start,omitzero"`
}

// Tasks are the deeds of tasks. What a crash leaves of each stands in packages [task] and [dispatch].
type Tasks struct{ *Fleet }

// crew returns what gives out tasks on behalf of the actor.
func (t Tasks) crew() dispatch.Crew {
	return dispatch.Crew{
		Home: t.Home, Bus: t.Launcher.Bus, Records: task.Shelf{Journal: t.Launcher.Journal, Home: t.Home}, By: t.Actor, Environ: t.Environ,
		Own: t.May(othersTasks) != nil,
		Hold: func(ctx context.Context) error {
			db, err := store.Open(ctx, t.Home)
			if err != nil {
				return err
			}
			defer db.Close()
			return cost.Hold(ctx, t.Launcher.Bus, db)
		},
		Enough: func(ctx context.Context, k store.Task) bool {
			db, err := store.OpenRead(ctx, t.Home)
			if err != nil {
				return k.State == store.TaskDone
			}
			defer db.Close()
			return Judge(t.Home, db, *t.Config).Enough(ctx, k)
		},
	}
}

// Book returns the tasks as the actor may read them.
func (t Tasks) Book() task.Book { return t.crew().Book() }

// Add records a task. If the error matches store.ErrSpooled, it will be one.
func (t Tasks) Add(ctx context.Context, w task.Wish) (store.Task, error) {
	if err := t.Make(); err != nil {
		return store.Task{}, err
	}
	return t.Book().Add(ctx, w)
}

// Edit changes a task, and takes it back from its worker if nobody is to work on it any more. If the error
// matches store.ErrSpooled, it will be so.
func (t Tasks) Edit(ctx context.Context, r task.Edit) (task.Edited, error) {
	if err := t.Make(); err != nil {
		return task.Edited{}, err
	}
	e, err := t.crew().Edit(ctx, r.Task, r.Change)
	if err == nil || errors.Is(err, store.ErrSpooled) {
		t.wake(ctx)
	}
	return e, err
}

// Note records a text about something, and returns the whole ID of that.
func (t Tasks) Note(ctx context.Context, n task.Note) (about string, err error) {
	if err := t.Make(); err != nil {
		return "", err
	}
	return t.Book().Note(ctx, n)
}

// Word returns what a task is called.
func (t Tasks) Word(ctx context.Context, k store.Task) string {
	db, err := store.OpenRead(ctx, t.Home)
	if err != nil {
		return k.Word()
	}
	defer db.Close()
	return Judge(t.Home, db, *t.Config).Word(ctx, k)
}

// wake has the daemon look at once at what has changed.
func (t Tasks) wake(ctx context.Context) {
	if err := daemon.Wake(ctx, t.Home); err != nil {
		t.warn("%v", err)
	}
}

// Judge returns what decides what tasks are called.
func Judge(h home.Dir, db *store.DB, c config.Config) *task.Judge {
	holder := &land.Holder{Home: h}
	j := &task.Judge{
		After: c.Work.After, Work: record.Records{DB: db}, Holds: holder.Holds, Owns: holder.Owns,
		Current: func(ctx context.Context, id agent.ID) (repo, tree string, err error) { return land.Current(ctx, h, id) },
	}
	if c.Work.Check != "" {
		j.Check = CheckOf(c).Digest()
	}
	return j
}

// CheckOf returns the check command of netsky.toml.
func CheckOf(c config.Config) check.Command { return check.Command{What: "check", Text: c.Work.Check} }

// Start gives a task to an agent, which is started if it is not up, or records that it is to be
// given once the tasks that it needs are done. If the result names no task, nothing was done.
func (t Tasks) Start(ctx context.Context, r TaskRequest) (dispatch.Started, error) {
	if err := t.Make(); err != nil {
		return dispatch.Started{}, err
	}
	s, err := t.crew().Start(ctx, r.Task, dispatch.Wish{
		Agent: r.Agent, Queue: r.Queue, Anyway: r.Anyway, Again: r.Again,
		Status: func(ctx context.Context, id agent.ID) (spawn.Status, error) {
			if id.Host() != "" {
				return Far(t.Home, id), nil
			}
			list, err := t.Launcher.Inspect(ctx)
			return list.Find(id), err
		},
		Reach: func(ctx context.Context, id agent.ID, task string, queue bool) error {
			if r.Start.Dir != "" || r.Start.Runtime != "" {
				return usagef("task start: %s: how an agent on another host is started is said by `netsky up %s`", id, id.N())
			}
			return t.reach(ctx, id, task, queue)
		},
		Up: func(ctx context.Context, id agent.ID) error { return t.raise(ctx, id, r.Start) },
	})
	if s.Task.Brief == "" && err != nil {
		return s, err
	}
	if s.Note != "" {
		t.warn("%s", s.Note)
	}
	t.wake(ctx)
	if _, ping := daemon.Ping(ctx, t.Home); ping != nil && !s.Own {
		t.warn("the daemon, which sees the answer, is not running: the task goes on after `netsky up`")
	}
	if err != nil {
		err = partly(fmt.Errorf("task start: %w", err))
	}
	return s, err
}

// raise starts an agent for a task. One that is slow is no error: its mail waits.
func (t Tasks) raise(ctx context.Context, id agent.ID, r StartRequest) error {
	if err := t.May("task start"); err != nil {
		return err
	}
	if t.checks != nil { // the current directory is the daemon's
		if err := over(t).placed(r.Dir, id); err != nil {
			return err
		}
	}
	r.Agents = []agent.ID{id}
	_, err := t.Fleet.Start(ctx, r)
	if err == nil {
		return nil
	}
	if list, ierr := t.Launcher.Inspect(ctx); ierr == nil && list.Find(id).Alive() {
		return nil
	}
	return err
}

// Started says what starting a task did.
func (t Tasks) Started(s dispatch.Started) string {
	k := s.Task
	switch {
	case s.Own:
		return fmt.Sprintf("%s: in progress; it is yours", k.ID)
	case s.Kept:
		return fmt.Sprintf("%s: %s has it already, and goes on", k.ID, k.Assignee)
	case len(s.Waits) > 0:
		short := make([]string, len(s.Waits))
		for i, w := range s.Waits {
			short[i] = dispatch.Short(w.ID)
		}
		after := Judge(t.Home, nil, *t.Config).Needed()
		if after == task.Claimed {
			after = "closed"
		}
		return fmt.Sprintf("%s: starts with %s when these are %s: %s", k.ID, k.Assignee, after, strings.Join(short, ", "))
	}
	return fmt.Sprintf("%s: given to %s (%s)", k.ID, k.Assignee, k.Brief)
}
