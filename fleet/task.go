package fleet

import (
	"context"
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

// Crew returns what gives out tasks on behalf of the actor.
func (f *Fleet) Crew() dispatch.Crew {
	return dispatch.Crew{
		Home: f.Home, Bus: f.Launcher.Bus, Records: task.Shelf{Journal: f.Launcher.Journal, Home: f.Home}, By: f.Actor, Environ: f.Environ,
		Hold: func(ctx context.Context) error {
			db, err := store.Open(ctx, f.Home)
			if err != nil {
				return err
			}
			defer db.Close()
			return cost.Hold(ctx, f.Launcher.Bus, db)
		},
		Enough: func(ctx context.Context, k store.Task) bool {
			db, err := store.OpenRead(ctx, f.Home)
			if err != nil {
				return k.State == store.TaskDone
			}
			defer db.Close()
			return Judge(f.Home, db, *f.Config).Enough(ctx, k)
		},
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

// StartTask gives a task to an agent, which is started if it is not up, or records that it is to be
// given once the tasks that it needs are done. If the result names no task, nothing was done.
func (f *Fleet) StartTask(ctx context.Context, r TaskRequest) (dispatch.Started, error) {
	s, err := f.Crew().Start(ctx, r.Task, dispatch.Wish{
		Agent: r.Agent, Queue: r.Queue, Anyway: r.Anyway, Again: r.Again,
		Status: func(ctx context.Context, id agent.ID) (spawn.Status, error) {
			list, err := f.Launcher.Inspect(ctx)
			return list.Find(id), err
		},
		Up: func(ctx context.Context, id agent.ID) error { return f.raise(ctx, id, r.Start) },
	})
	if s.Task.Brief == "" && err != nil {
		return s, err
	}
	if s.Note != "" {
		f.warn("%s", s.Note)
	}
	if werr := daemon.Wake(ctx, f.Home); werr != nil {
		f.warn("%v", werr)
	}
	if _, ping := daemon.Ping(ctx, f.Home); ping != nil && !s.Own {
		f.warn("the daemon, which sees the answer, is not running: the task goes on after `netsky up`")
	}
	if err != nil {
		err = partly(fmt.Errorf("task start: %w", err))
	}
	return s, err
}

// raise starts an agent for a task. One that is slow is no error: its mail waits.
func (f *Fleet) raise(ctx context.Context, id agent.ID, r StartRequest) error {
	if err := f.May("task start"); err != nil {
		return err
	}
	r.Agents = []agent.ID{id}
	_, err := f.Start(ctx, r)
	if err == nil {
		return nil
	}
	if list, ierr := f.Launcher.Inspect(ctx); ierr == nil && list.Find(id).Alive() {
		return nil
	}
	return err
}

// TaskStarted says what starting a task did.
func (f *Fleet) TaskStarted(s dispatch.Started) string {
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
		after := Judge(f.Home, nil, *f.Config).Needed()
		if after == task.Claimed {
			after = "closed"
		}
		return fmt.Sprintf("%s: starts with %s when these are %s: %s", k.ID, k.Assignee, after, strings.Join(short, ", "))
	}
	return fmt.Sprintf("%s: given to %s (%s)", k.ID, k.Assignee, k.Brief)
}
