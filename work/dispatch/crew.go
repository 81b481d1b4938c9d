// Package dispatch has agents work on tasks: it gives a task to a worker as a brief, and, in the daemon,
// sees that its answer closes the task, that a task which waits for others starts when those are
// done, and that nobody is left with the task of a worker that has ended.
//
// A task is given to at most one worker at a time. Who does it is on record before the brief is
// sent, and the brief's id is made of the task and of how often it was given: whoever finds it
// recorded and not sent sends it under the same id, and the worker's mailbox takes that once. So a
// crash between any two steps leaves a task that the next look at it brings on. An answer is the
// worker's word: it makes a task claimed, which package work/task tells apart from done.
//
// A worker may be an agent on another host of the team: the task stays on record here, its brief and its
// answer are mail, and the task is closed once what the worker has committed was brought here.
//
// The package does not start agents: the caller does, in the way that its verbs do, and reaches those on
// other hosts. It knows no git but for the commit that a worker is at.
package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/spawn"
	"netsky/store"
	"netsky/work/git"
	"netsky/work/task"
	"netsky/work/tree"
)

// A Crew gives out tasks on behalf of one address.
type Crew struct {
	Home    home.Dir
	Bus     *bus.Bus
	Records task.Records
	By      agent.ID
	Own     bool     // By may start and change only its own tasks, and those of nobody
	Environ []string // for HOME
	// Hold, if set, is called when a task has a worker, before that gets the brief: a budget that the task
	// has used up holds its worker.
	Hold func(ctx context.Context) error
	// Enough reports whether those may start that need a closed task; nil: it is.
	Enough func(ctx context.Context, k store.Task) bool
}

// Book returns the tasks as that address may change them.
func (c Crew) Book() task.Book {
	return task.Book{
		Home: c.Home, Records: c.Records, By: c.By, Own: c.Own, Enough: c.Enough,
		Head: func(ctx context.Context, id agent.ID) string {
			return Head(ctx, c.Home, id, execx.Value(c.Environ, "HOME"))
		},
		Mail: func(ctx context.Context, id string) bool {
			list, err := c.Bus.Received(ctx, c.By, id)
			return err == nil && len(list) > 0 && list[0].Envelope.ID == id
		},
	}
}

// Head returns the commit that an agent's directory is at, "" if it is in no repository. One that
// is, or contains, the user's home directory does not count.
func Head(ctx context.Context, h home.Dir, id agent.ID, userHome string) string {
	var r git.Repo
	w, err := tree.Load(h, id)
	if err == nil && w.Away != nil { // what was brought here
		commit, _ := git.Repo{Top: w.Repo}.Commit(ctx, w.Branch)
		return commit
	}
	if err == nil && w.Ready {
		if r, err = w.Git(); err != nil {
			return ""
		}
	} else {
		la, err := h.LoadLaunch(id)
		if err != nil || la.Dir == "" {
			return ""
		}
		if r, err = git.Open(ctx, la.Dir, userHome); err != nil {
			return ""
		}
	}
	_, commit, _ := r.Head(ctx)
	return commit
}

// A Wish is how a task is to be started.
type Wish struct {
	Agent  agent.ID // who does it; "" is its assignee
	Queue  bool     // the brief may wait for an agent that is down
	Anyway bool     // it waits for no other task any more
	Again  bool     // it may have ended
	// Status returns the state of an agent, and Up starts it, with an error if it does not come up.
	Status func(ctx context.Context, id agent.ID) (spawn.Status, error)
	Up     func(ctx context.Context, id agent.ID) error
	// Reach makes sure, with an error if it can't, that an agent on another host gets a task's brief and what that builds on,
	// and that its work can be brought here. With queue it need not be up.
	Reach func(ctx context.Context, id agent.ID, task string, queue bool) error
}

// A Started is what starting a task did.
type Started struct {
	Task  store.Task
	Waits []store.Task // what it waits for: it starts when these are done
	Kept  bool         // its worker had it, and goes on
	Own   bool         // it is of who started it, who is sent no brief
	Note  string       // about an earlier worker, or what is still to be done
}

// Errors that Start's match.
var (
	ErrTaken = errors.New("is being worked on")
	ErrEnded = errors.New("has ended")
	ErrNeeds = errors.New("needs a task that was cancelled")
)

// Start gives a task to a worker, or records that it is to be given once the tasks that it needs
// are done.
func (c Crew) Start(ctx context.Context, id string, w Wish) (s Started, err error) {
	k, err := c.Book().Find(ctx, id)
	if err != nil {
		return s, err
	}
	to, err := c.worker(k, w)
	if err != nil {
		return s, err
	}
	former, goesOn, err := c.former(ctx, k, to, w)
	if err != nil {
		return s, err
	}
	if !w.Anyway {
		if s.Waits, err = c.needs(ctx, k.ID); err != nil {
			return s, err
		}
	}
	if to != c.By {
		if err := c.ready(ctx, to, k.ID, w); err != nil {
			return s, err
		}
	}
	switch {
	case goesOn:
		s.Task, s.Kept = k, true
		return s, nil
	case len(s.Waits) > 0:
		s.Task, err = c.await(ctx, k, to)
		return s, err
	}
	if former != "" && !unheard(k) {
		s.Note = c.withdraw(ctx, k.Brief, former)
	}
	s.Own = to == c.By
	begun, err := c.begin(ctx, k, to, c.By, w.Anyway)
	if err != nil {
		return s, err
	}
	if !s.Own {
		if err = c.give(ctx, begun, former); errors.Is(err, errChanged) {
			return s, err // it is not what this has started
		}
	}
	s.Task = begun
	return s, err
}

// worker returns who is to do the task.
func (c Crew) worker(k store.Task, w Wish) (agent.ID, error) {
	to := w.Agent
	if to == "" {
		to = k.Assignee
	}
	switch {
	case c.Own && to == "" && k.Assignee == "":
		to = c.By
	case to == "":
		return "", advice.With(fmt.Errorf("%s: is assigned to nobody", k.ID), "`netsky task start %s --agent N` says who does it", Short(k.ID))
	case !to.IsAgent():
		return "", fmt.Errorf("%s: %s is not an agent", k.ID, to)
	}
	if c.Own && (to != c.By || k.Assignee != "" && k.Assignee != c.By) {
		return "", fmt.Errorf("%s: %w: %s may start only its own; tell agent0", k.ID, task.ErrNotYours, c.By)
	}
	return to, nil
}

// former returns who has the task now and has to give it back, "" for nobody; goesOn reports that
// it is the same agent, which has its brief.
func (c Crew) former(ctx context.Context, k store.Task, to agent.ID, w Wish) (former agent.ID, goesOn bool, err error) {
	switch k.State {
	case store.TaskDone, store.TaskCancelled:
		if !w.Again {
			return "", false, advice.With(fmt.Errorf("%s: %w: it is %s", k.ID, ErrEnded, k.Word()), "`netsky task start %s --again` starts it once more", Short(k.ID))
		}
	case store.TaskInProgress:
		if k.Assignee == c.By && to != c.By && k.Brief == "" {
			return "", false, nil // who does it hands it on
		}
		st, err := w.Status(ctx, k.Assignee)
		if err != nil {
			return "", false, err
		}
		if k.Assignee == to && !st.Alive() && k.Brief != "" {
			return "", true, nil
		}
		if st.Alive() {
			return "", false, advice.With(fmt.Errorf("%s: %s %w by %s", k.ID, envelope.Line(k.Title, 60), ErrTaken, k.Assignee),
				"`netsky task block %s REASON` or `netsky task cancel %[1]s` takes it from there first", Short(k.ID))
		}
	}
	if k.Brief == "" {
		return "", false, nil
	}
	st, err := w.Status(ctx, k.Assignee)
	if err != nil || !st.Alive() {
		return k.Assignee, false, err
	}
	still := fmt.Errorf("%s: %s %w by %s, which has not let go of it yet", k.ID, envelope.Line(k.Title, 60), ErrTaken, k.Assignee)
	switch {
	case courier.ReadLedger(c.Home, k.Assignee).Owes(k.Brief):
		err = advice.With(still, "`netsky interrupt %s` ends its turn", k.Assignee)
	case to != k.Assignee && c.untold(ctx, k.Brief, k.Assignee):
		err = advice.With(still, "its program can't be told; `netsky down %s` ends it", k.Assignee.N())
	}
	return k.Assignee, false, err
}

// needs lists the unfinished tasks that the task needs.
func (c Crew) needs(ctx context.Context, id string) (list []store.Task, err error) {
	list, err = c.Book().Unfinished(ctx, id)
	for _, n := range list {
		if n.State == store.TaskCancelled {
			return nil, advice.With(fmt.Errorf("%s: %w: %s %s", id, ErrNeeds, n.ID, envelope.Line(n.Title, 60)),
				"`netsky task start %s --anyway` starts it without", Short(id))
		}
	}
	return list, err
}

// ready makes sure that the agent gets a brief.
func (c Crew) ready(ctx context.Context, to agent.ID, task string, w Wish) error {
	if to.Host() != "" {
		return w.Reach(ctx, to, task, w.Queue)
	}
	st, err := w.Status(ctx, to)
	if err != nil || st.Alive() {
		return err
	}
	if !w.Queue {
		return w.Up(ctx, to)
	}
	if !c.Bus.Exists(to) {
		return spawn.NeedsUp(st, "it has no mailbox yet, so nothing can wait there")
	}
	return nil
}

// await records that the task is to be started when what it needs is done.
func (c Crew) await(ctx context.Context, k store.Task, to agent.ID) (store.Task, error) {
	defer step()
	return c.Book().Alter(ctx, k.ID, func(now *store.Task) ([]store.Op, error) {
		if err := same(k, *now); err != nil {
			return nil, err
		}
		renew(now, to)
		now.State, now.Assignee, now.Starter, now.Brief, now.Briefed, now.Ended = store.TaskOpen, to, c.By, "", 0, 0
		return nil, nil
	})
}

// begin records that the worker does the task from now on. starter gets its answer. anyway frees the
// task from what it needs.
func (c Crew) begin(ctx context.Context, k store.Task, to, starter agent.ID, anyway bool) (store.Task, error) {
	defer step()
	head := c.Book().Head(ctx, to) // before the lock is taken, as git may be slow
	return c.Book().Alter(ctx, k.ID, func(now *store.Task) (ops []store.Op, err error) {
		if err := same(k, *now); err != nil {
			return nil, err
		}
		if anyway {
			ops = append(ops, task.Free(k.ID))
		} else if err := c.stillReady(ctx, *now); err != nil {
			return nil, err
		}
		renew(now, to)
		now.Begun = cmp.Or(now.Begun, head)
		if now.State != store.TaskInProgress || now.Started == 0 {
			now.Started = store.At(time.Now())
		}
		now.State, now.Assignee, now.Starter, now.Brief, now.Briefed = store.TaskInProgress, to, starter, "", 0
		now.Ended, now.ClosedBy, now.Head, now.Proof, now.ActualMinutes = 0, "", "", "", 0
		if to != starter {
			now.Starts++
			now.Brief = task.BriefID(now.ID, now.Starts)
		}
		return ops, nil
	})
}

// stillReady returns an error if a task that is not in progress has come to wait for another since
// that was looked at: its worker may have taken a while to come up.
func (c Crew) stillReady(ctx context.Context, k store.Task) error {
	if k.State == store.TaskInProgress {
		return nil
	}
	left, err := c.Book().Unfinished(ctx, k.ID)
	if err != nil || len(left) == 0 {
		return err
	}
	return fmt.Errorf("%s: %w: it needs %s now", k.ID, errChanged, Short(left[0].ID))
}

// renew forgets where the task was begun, unless its worker goes on with it.
func renew(k *store.Task, to agent.ID) {
	if k.Assignee != to || k.Ended != 0 {
		k.Begun = ""
	}
}

// errChanged is returned for a task that others have changed since it was read.
var errChanged = errors.New("was changed meanwhile")

func changed(now store.Task) error {
	return fmt.Errorf("%s: %w: it is %s now", now.ID, errChanged, strings.ReplaceAll(now.Word(), "_", " "))
}

// same returns an error if somebody has started or ended the task since it was read.
func same(before, now store.Task) error {
	if before.State != now.State || before.Starts != now.Starts || before.Assignee != now.Assignee {
		return changed(now)
	}
	return nil
}

// step is called after each step that survives a crash; a test ends the process there.
var step = func() {}

// Short returns as much of a task's id as a person needs to write.
func Short(id string) string { return id[:min(len(id), 10)] }
