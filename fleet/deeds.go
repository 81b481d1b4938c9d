package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netsky/agent"
	"netsky/internal/advice"
)

// deeds are what the control socket offers, one row each: its name, the row of rights.go that it is
// under, what it does, and the method that does it, whose types are those of the request and the result.
func deeds() []deed {
	return []deed{
		row("start", "up", "start agents that are not up, and the daemon", of(over.start)),
		row("down", "down", "end agents", of(over.down)),
		row("restart", "restart", "end agents and start them again on their conversations", (*Fleet).Restart),
		row("interrupt", "interrupt", "end an agent's running turn", of(Panes.Interrupt)),
		row("decide", "approve", "answer what an agent asks for, a dialog or a budget", of(over.decide)),
		row("forget", "forget", "remove agents that are down from status", (*Fleet).Forget),
		row("task-start", "task start", "give a task to an agent, which is started if it is not up", of(over.task)),
		row("peek", "", "show the last lines of an agent's pane", of(Panes.Peek)),
		row("task-add", "", "record a task", of(Tasks.Add)),
		row("task-edit", "", "change a task, or end it", of(Tasks.Edit)),
		row("note", "", "record a text about something that is on record", of(Tasks.Note)),
		row("check", "", "run the owner's check on what an agent's work would be once merged", of(over.check)),
		row("land", "land", "put an agent's checked work on its branch", of(Work.Land)),
		row("land-all", "land", "land the work of all agents whose check has passed", of(over.landAll)),
		row("undo", "undo", "take back what landed", of(Work.Undo)),
		row(workDeed, "task start", "tell how an agent's work is, and send, as steps, a git pack of the commits that the caller lacks", of(over.work)),
		row("retire", "work retire", "remove the worktrees of agents whose work has landed", of(Work.Retire)),
		row("quiet", "quiet", "hold off messages about agents that hang", of(Answers.Quiet)),
		row("send", "", "send a message", of(Mail.Send)),
		row("await", "", "wait until a message is delivered or answered", of(Mail.Await)),
		row("ask", "", "send an agent a message and wait for its answer", of(Mail.Ask)),
		row("reply", "", "answer a message", of(Mail.Reply)),
		row("cancel", "", "cancel a message that no agent is working on yet", of(Mail.Cancel)),
		row("poison-retry", "", "move a message that could not be read back, if it is valid now", of(Mail.Requeue)),
		row("poison-drop", "", "delete a message that could not be read", of(Mail.Drop)),
		row("schedule-add", "cron add", "send a text to an agent at set times", of(Schedules.Add)),
		row("schedule-list", "", "list the schedules", of(Schedules.List)),
		row("schedule-remove", "cron rm", "remove schedules", of(Schedules.Remove)),
	}
}

// afar are the deeds about agents that may be on other hosts.
var afar = []string{"ask", "task-start", "task-add", "task-edit", "check", "land", "retire"}

// A deed is one row of deeds.
type deed struct {
	name, right, about string
	request, result    reflect.Type
	do                 func(context.Context, *Fleet, jsontext.Value) (any, error)
}

func row[Q, R any](name, right, about string, do func(*Fleet, context.Context, Q) (R, error)) deed {
	return deed{
		name: name, right: right, about: about, request: reflect.TypeFor[Q](), result: reflect.TypeFor[R](),
		do: func(ctx context.Context, f *Fleet, body jsontext.Value) (any, error) {
			var q Q
			in := wire
			if slices.Contains(afar, name) {
				in = wireAt
			}
			if err := json.Unmarshal(body, &q, in); err != nil {
				return nil, unread(name, err)
			}
			if err := f.May(right); err != nil {
				return nil, err
			}
			return do(f, ctx, q)
		},
	}
}

// unread says what is wrong with a request, to whom the Go types that it is read into mean nothing.
func unread(name string, err error) error {
	var s *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		err = fmt.Errorf("is not JSON: byte %d: %w", syntax.ByteOffset+1, syntax.Err)
	case errors.Is(err, io.EOF):
		err = errors.New("is empty; want a JSON object")
	case errors.As(err, &s):
		about := cmp.Or(s.JSONPointer.LastToken(), "the whole")
		if err = s.Err; err == nil {
			err = fmt.Errorf("can't be a JSON %s", s.JSONKind)
		}
		if errors.Is(err, json.ErrUnknownName) {
			err = errors.New("no such field")
		}
		err = fmt.Errorf("%q: %w", about, err)
	}
	return advice.With(usagef("%s: request: %w", name, err), "`netsky api` prints what it takes")
}

// of returns a method of a group of deeds as one of the fleet.
func of[T interface{ ~struct{ *Fleet } }, Q, R any](do func(T, context.Context, Q) (R, error)) func(*Fleet, context.Context, Q) (R, error) {
	return func(f *Fleet, ctx context.Context, q Q) (R, error) { return do(T(struct{ *Fleet }{f}), ctx, q) }
}

// An over is the deeds that mean something else over the control socket.
type over struct{ *Fleet }

// start is Start for a caller whose directory is not this process's.
func (f over) start(ctx context.Context, r StartRequest) (v Started, err error) {
	if len(r.Agents) == 0 {
		return v, usagef("start: agents: names none")
	}
	if err := f.agreed("start", r.Yes); err != nil {
		return v, err
	}
	if err := f.placed(r.Dir, r.Agents...); err != nil {
		return v, err
	}
	s, err := f.Start(ctx, r)
	for _, one := range s.Agents {
		v.Agents = append(v.Agents, progress(one))
	}
	v.Message = s.Message
	return v, err
}

// A Started is what a start did, as the control socket says it.
type Started struct {
	Agents  []Progress `json:"agents"`
	Message string     `json:"message,omitempty"` // the ID of the objective
}

// placed returns an error if a start would put agents into the daemon's own directory, or below
// it, as none was named for them now, earlier or for agent0.
func (f over) placed(dir string, ids ...agent.ID) error {
	if dir != "" && !filepath.IsAbs(dir) {
		return usagef("start: dir: %q: must be an absolute path", dir)
	}
	_, none := f.Home.LoadLaunch(agent.Root)
	for _, id := range ids {
		if _, err := f.Home.LoadLaunch(id); dir == "" && err != nil && none != nil && cmp.Or(f.Config.Agent[id].Dir, f.Config.Agents.Dir) == "" {
			return usagef("start: dir: needed, as %s was never started: the absolute path of the directory in which it works", id)
		}
	}
	return nil
}

// down is Down, without the daemon: this is in it.
func (f over) down(ctx context.Context, r DownRequest) (v DownResult, err error) {
	if r.All {
		return v, usagef("down: all: ends the daemon, whose socket this is; `netsky down --all` does it")
	}
	return f.Down(ctx, r)
}

func (f over) decide(ctx context.Context, r DecideRequest) (DecideResult, error) {
	if r.By = bySocket; f.host != "" {
		r.By = f.who()
		if r.Code == "" || r.Digest == "" {
			return DecideResult{}, usagef("decide: code, digest: both are needed from another host")
		}
	}
	return Answers(f).Decide(ctx, r)
}

// A TaskStarted is what giving out a task did.
type TaskStarted struct {
	Task string `json:"task"` // its ID
	Text string `json:"text"`
}

func (f over) task(ctx context.Context, r TaskRequest) (v TaskStarted, err error) {
	if err := f.agreed("task-start", r.Start.Yes); err != nil {
		return v, err
	}
	s, err := Tasks(f).Start(ctx, r)
	if v.Task = s.Task.ID; err == nil || s.Task.Brief != "" {
		v.Text = Tasks(f).Started(s)
	}
	return v, err
}

// A LandedAll is what became of the work of each agent.
type LandedAll struct {
	Agents []Progress `json:"agents"`
}

func (f over) landAll(ctx context.Context, r LandRequest) (v LandedAll, err error) {
	list, err := Work(f).LandAll(ctx, r)
	for _, one := range list {
		v.Agents = append(v.Agents, progress(Step{Landed: &one}))
	}
	return v, err
}

// whoMay names who may do a deed.
func whoMay(right string) (names []string) {
	all := map[string]agent.ID{"owner": agent.Owner, "agent0": agent.Root, "clones": agent.Clone(1), "agentinfinity": agent.Infinity}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if May(all[name], right) == nil {
			names = append(names, name)
		}
	}
	return names
}
