package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/config"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/store"
	"netsky/work/land"
	"netsky/work/retire"
	"netsky/work/tree"
)

// A Work is the deeds of the agents' work: it is checked, landed, taken back and removed. What a crash
// leaves of each stands in package [land] and package [retire].
type Work struct{ *Fleet }

// desk returns what checks, lands and undoes on behalf of the actor; yes: the owner agrees to the check.
func (w Work) desk(yes bool) (land.Desk, error) {
	if err := w.Make(); err != nil {
		return land.Desk{}, err
	}
	environ, err := OwnersEnviron(w.Home, w.Actor, w.Environ)
	command := CheckOf(*w.Config)
	return land.Desk{
		Home: w.Home, Journal: w.Launcher.Journal, Records: w.records,
		Command: command, Within: w.Config.Work.CheckTime.Duration, Environ: environ, Asker: w.Actor,
		Agree: func() error {
			return w.Agree(command, "is run on the merged work of agents, in a worktree of its own", yes)
		},
		Say: w.warn, Wait: func(err error) { w.warn("%w; waiting until that is done", err) }, Tell: w.tell,
	}, err
}

// records opens the database for reading.
func (w Work) records(ctx context.Context) (*store.DB, error) {
	return Records(ctx, w.Home, w.bus, w.UI)
}

// tell sends an agent a message, once for each key. What was found is told, even if the deed is cut off.
func (w Work) tell(to agent.ID, key, text string) error {
	ctx, b := context.Background(), w.Launcher.Bus
	if list, err := b.Received(ctx, to, key); err != nil || len(list) > 0 {
		return err
	}
	_, again, err := b.SendOnce(ctx, envelope.Envelope{ID: key, From: w.Actor, To: to, Text: text, Via: "cli", Time: time.Now()})
	if err == nil && !again {
		w.warn("%s was told", to)
	}
	if errors.Is(err, bus.ErrUsed) {
		err = nil // with other words
	}
	return err
}

// A CheckRequest asks for the owner's check to be run on what an agent's work would be once merged.
type CheckRequest struct {
	Agent agent.ID `json:"agent,omitempty"` // "" is the actor, if that is a clone
	Onto  string   `json:"onto,omitempty"`  // the branch to merge into; "" is the worktree's own
	Again bool     `json:"again,omitempty"` // also if it has passed
	Set   *string  `json:"set,omitempty"`   // becomes the check first
	Yes   bool     `json:"yes,omitempty"`   // the owner agrees to the check's text
}

// Check runs the owner's check, or waits for one of the same agent that runs. What it prints is reported
// as steps. One that fails is no error; the result says so.
func (w Work) Check(ctx context.Context, r CheckRequest) (land.Checked, error) {
	switch {
	case r.Agent != "":
	case !w.Actor.IsClone():
		return land.Checked{}, usagef("check: needs the agent whose work to check")
	default:
		r.Agent = w.Actor
	}
	if _, err := land.Worktree(w.Home, r.Agent); errors.Is(err, land.ErrNoWorktree) {
		return land.Checked{}, err // setting a check would not help
	}
	if r.Agent.Host() != "" {
		w.Freshen(ctx, freshTime, r.Agent)
	}
	if r.Set != nil {
		if err := w.setCheck(*r.Set); err != nil {
			return land.Checked{}, err
		}
	}
	d, err := w.desk(r.Yes)
	if err != nil {
		return land.Checked{}, err
	}
	if d.Command.Text == "" {
		return land.Checked{}, &plan.UsageError{Err: land.ErrNoCheck}
	}
	out := &output{ui: w.UI}
	defer out.flush()
	return d.Check(ctx, r.Agent, land.CheckOptions{Onto: r.Onto, Again: r.Again, Out: out})
}

// setCheck makes a text the check, which the owner has agreed to by giving it.
func (w Work) setCheck(text string) error {
	if err := w.May("check --set"); err != nil {
		return err
	}
	if words.Blank(text) {
		return usagef("check: --set: needs the command, in quotes, such as --set \"make test\"")
	}
	if err := config.SetCheck(w.Home, text); err != nil {
		return err
	}
	w.Config.Work.Check = text
	w.warn("the check is set in %s: %s", w.tilde(w.Home.Path(home.ConfigFile)), words.Brief(text, 200))
	return CheckOf(*w.Config).Agree(w.Home)
}

// A LandRequest asks for work to be put on the owner's branch.
type LandRequest struct {
	Agent agent.ID `json:"agent,omitempty"` // not for LandAll
	land.LandOptions
	Yes bool `json:"yes,omitempty"` // the owner agrees to the check's text, with which LandAll may check again
}

// Land lands the work of one agent. If it returns an error, nothing has moved.
func (w Work) Land(ctx context.Context, r LandRequest) (land.Landing, error) {
	d, err := w.lander("land", r.Yes)
	if err != nil {
		return land.Landing{}, err
	}
	if r.Agent.Host() != "" {
		w.Freshen(ctx, freshTime, r.Agent)
	}
	return d.Land(ctx, r.Agent, r.LandOptions)
}

// lander returns what lands and undoes, if the actor may.
func (w Work) lander(deed string, yes bool) (d land.Desk, err error) {
	if err = w.MayLand(deed); err == nil {
		err = w.agreed(deed, yes)
	}
	if err == nil {
		d, err = w.desk(yes)
	}
	return d, err
}

// LandAll lands the work of all agents whose check has passed, and reports each as a step.
func (w Work) LandAll(ctx context.Context, r LandRequest) (list []land.Outcome, err error) {
	d, err := w.lander("land", r.Yes)
	if err != nil {
		return nil, err
	}
	w.Freshen(ctx, freshTime)
	out := &output{ui: w.UI}
	defer out.flush()
	err = d.LandAll(ctx, r.LandOptions, out, func(one land.Outcome) {
		list = append(list, one)
		w.UI.Step(Step{Landed: &one})
	})
	return list, err
}

// An UndoRequest asks for what has landed to be taken back.
type UndoRequest struct {
	Landing string `json:"landing"` // an ID, or its beginning
}

// Undo takes back what has landed. If it returns an error, nothing has moved.
func (w Work) Undo(ctx context.Context, r UndoRequest) (land.Undone, error) {
	d, err := w.lander("undo", false)
	if err != nil {
		return land.Undone{}, err
	}
	return d.Undo(ctx, r.Landing)
}

// Settle finishes what a netsky has left that was killed while it landed or checked work.
func (w Work) Settle(ctx context.Context) {
	if d, err := w.desk(false); err == nil { // a broken home has nothing to finish it with
		d.Recover(ctx)
	}
}

// A RetireRequest asks for worktrees to be removed.
type RetireRequest struct {
	Agents []agent.ID `json:"agents"`
}

// A Retired is a worktree that was removed, with its branch.
type Retired struct {
	Agent  agent.ID `json:"agent"`
	Dir    string   `json:"dir"`
	Branch string   `json:"branch"`
	Ref    string   `json:"ref,omitempty"` // what keeps its last commit; "" if that has landed as it is
}

// ErrStayed is returned by a Retire after which worktrees stay; the warnings say why.
var ErrStayed = errors.New("not all worktrees were removed")

// Retire removes the worktrees and branches of agents that are down, if all in them has landed. Each that
// stays is warned of.
func (w Work) Retire(ctx context.Context, r RetireRequest) (done []Retired, err error) {
	if err := w.May("work retire"); err != nil {
		return nil, err
	}
	if len(r.Agents) == 0 {
		return nil, usagef("work retire: needs an agent that is down; `netsky work` lists their work")
	}
	lock, err := w.Home.WaitLock(ctx, home.UpLock, nil) // nothing is started meanwhile
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	list, err := w.Launcher.Inspect(ctx)
	if err != nil { // an agent may run unseen
		return nil, err
	}
	for _, id := range r.Agents {
		one := Retired{Agent: id}
		t, err := tree.Load(w.Home, id)
		switch st := list.Find(id); {
		case errors.Is(err, fs.ErrNotExist):
			err = land.NoWorktree(w.Home, id)
		case err == nil && (st.State != agent.Down && st.State != "" || st.Wanted):
			err = advice.With(fmt.Errorf("%s: is %s", id, st.State), "`netsky down %s` ends it", id)
		case err == nil:
			if lerr := w.Planner().Leave(id); lerr != nil { // a crash before it is removed changes nothing by that
				w.UI.Warn(lerr)
			}
			one.Dir, one.Branch = t.Dir, t.Short()
			one.Ref, err = retire.Retire(ctx, retire.Options{Home: w.Home, Record: w.Launcher.Journal.Record}, id)
		}
		if err != nil {
			w.UI.Warn(err)
			continue
		}
		done = append(done, one)
	}
	switch {
	case len(done) == len(r.Agents):
		return done, nil
	case len(done) > 0:
		return done, partly(ErrStayed)
	}
	return nil, ErrStayed
}

// An output reports what a command of the owner's prints, a line a step.
type output struct {
	ui   UI
	rest []byte
}

// maxLine is where a line without an end is broken.
const maxLine = 8 << 10

func (o *output) Write(data []byte) (int, error) {
	for o.rest = append(o.rest, data...); len(o.rest) > 0; {
		line, after, ended := bytes.Cut(o.rest, []byte("\n"))
		if !ended && len(o.rest) < maxLine {
			break
		}
		o.ui.Step(Step{Output: cmp.Or(string(line), " ")})
		o.rest = append(o.rest[:0], after...)
	}
	return len(data), nil
}

// flush reports a last line that has no end.
func (o *output) flush() {
	if len(o.rest) > 0 {
		_, _ = o.Write([]byte("\n"))
	}
}
