package pane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/store"
	"netsky/tmux"
)

// Screens is implemented by a runtime whose program can show dialogs before it
// reports anything.
type Screens interface {
	// Dialog returns the dialog on the screen of a pane in which the launch's program runs.
	// Keys is set if the launch implies a yes: the keys still to press, so it is called
	// again after each key but the last.
	Dialog(screen string, l agent.Launch) (agent.Dialog, bool)
}

// Deciding is implemented by a Screens with dialogs that the owner can answer without
// going to the pane.
type Deciding interface {
	Screens
	// Decidable reports whether dialogs of that name can be answered so.
	Decidable(name string) bool
	// Decide returns the dialog on the screen, if it can be answered, with the Keys still
	// to press for that answer.
	Decide(screen string, allow bool) (agent.Dialog, bool)
}

// Dismissing is implemented by a Screens whose program opens dialogs that nobody has asked
// for, and that its receiver closes.
type Dismissing interface {
	Screens
	// Dismisses reports whether dialogs of that name are such, and Escape closes them.
	Dismisses(name string) bool
}

// Decidable reports whether the owner can answer the runtime's dialogs of that name
// without going to the pane.
func Decidable(r any, name string) bool {
	d, ok := r.(Deciding)
	return ok && d.Decidable(name)
}

const (
	dialogEvery = 250 * time.Millisecond // between looks at a starting agent's pane
	// dialogAgain is the time between the two looks that must agree.
	dialogAgain = 200 * time.Millisecond
	// dialogLooks is how many looks must agree before a person is notified: a screen may be
	// half drawn.
	dialogLooks = 3
	// dialogGoes is how long a dialog may stay after its answer.
	dialogGoes = 5 * time.Second
	// dialogMoves is how long an arrow may stay in place after a key, on a busy machine;
	// less than an up waits, which then reports that a person has to answer.
	dialogMoves = 10 * time.Second
	// dialogStill is how long a dialog must be unchanged before each key. Claude Code
	// ignores keys in a menu's first 150 to 250 ms, by its own timers, which are late on a
	// busy machine.
	dialogStill = 500 * time.Millisecond
	// dialogJumps is how often an arrow may jump back.
	dialogJumps = 4
	// dialogPerson is how long no person may have used a pane in which keys are pressed.
	dialogPerson = 3 * time.Second
)

// Evidence is the evidence of a report that rests on what a pane shows.
const Evidence = "its pane"

// An answered is state/dialogs/<agent>.json: the names of the dialogs answered under one
// start, each written before its first key is pressed.
type answered struct {
	Start string   `json:"start"`
	Names []string `json:"names"`
	MS    int64    `json:"ms"` // when the last one was answered
}

func answeredFile(id agent.ID) string { return "state/dialogs/" + string(id) + ".json" }

// answeredOf returns what is on file for that start. A file that can't be read is an
// error: then nothing is answered.
func (l *Panes) answeredOf(la agent.Launch) (answered, error) {
	a, err := home.Load[answered](l.Home, answeredFile(la.Agent))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if a.Start != la.Start {
		a = answered{Start: la.Start}
	}
	return a, err
}

func sameDialog(a, b agent.Dialog) bool {
	return a.Name == b.Name && a.Text == b.Text && slices.Equal(a.Keys, b.Keys)
}

// A Lookout watches the pane of one agent.
type Lookout struct {
	l      *Panes
	launch agent.Launch
	pane   tmux.Pane
	r      Screens
	err    error // why there is nothing to look at

	answers string // who decided, for the record; "": implied by the launch
}

// look returns the dialog that the pane shows, without Keys if it has been answered under
// this start.
func (o Lookout) look(ctx context.Context) (d agent.Dialog, shown bool, at tmux.Look, err error) {
	if o.err != nil {
		return d, false, at, o.err
	}
	if at, err = o.l.Tmux.Look(ctx, o.pane); err != nil {
		return d, false, at, err
	}
	d, shown = o.r.Dialog(strings.Join(at.Screen, "\n"), o.launch)
	if !shown || d.Keys == nil {
		return d, shown, at, nil
	}
	a, err := o.l.answeredOf(o.launch)
	if err != nil || slices.Contains(a.Names, d.Name) {
		d.Keys = nil
	}
	return d, shown, at, err
}

// going reports whether the dialog was answered a moment ago and may be about to go.
func (o Lookout) going(d agent.Dialog) bool {
	a, err := o.l.answeredOf(o.launch)
	since := o.l.since(time.UnixMilli(a.MS))
	return err == nil && slices.Contains(a.Names, d.Name) && since >= 0 && since < dialogGoes
}

// free reports whether keys may be pressed: the program would receive them, and no person
// is using the pane.
func free(at tmux.Look) bool {
	return !at.InMode && !at.Dead && (at.Person.IsZero() || time.Since(at.Person) > dialogPerson)
}

// answer presses the dialog's keys, once under a start, whatever other callers and
// processes do. It continues when ctx ends: half an answer is worthless.
func (o Lookout) answer(ctx context.Context, d agent.Dialog) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*dialogMoves)
	defer cancel()
	lock, err := o.l.Home.Lock(home.DialogLock(o.launch.Agent))
	if errors.Is(err, home.ErrLocked) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Unlock()
	// Check again: another may have had the lock until now.
	now, shown, at, err := o.look(ctx)
	if err != nil || !shown || !sameDialog(now, d) || !free(at) {
		return false, err
	}
	a, err := o.l.answeredOf(o.launch)
	if err != nil {
		return false, err
	}
	a.Names, a.MS = append(a.Names, d.Name), o.l.Bus.Now().UnixMilli()
	if err := o.l.Home.Save(answeredFile(o.launch.Agent), a, false); err != nil {
		return false, err
	}
	if err := o.press(ctx, d); err != nil {
		return false, err
	}
	o.l.Record(ctx, store.AddLog{
		Part: "dialog", Actor: o.launch.Agent, About: o.launch.Start,
		Text: "answered with " + cmp.Or(o.answers, "yes, implied by how it was started") + ": " + d.String(),
	})
	return true, nil
}

// Pressed reports whether netsky has answered the dialog of that name under that start.
func (l *Panes) Pressed(id agent.ID, start, name string) bool {
	a, err := l.answeredOf(agent.Launch{Agent: id, Start: start})
	return err == nil && slices.Contains(a.Names, name)
}

// press presses the dialog's keys, each once the screen has been still with the previous
// ones done. An arrow that has jumped back is moved once more: Claude Code 2.1.329 redraws
// its menu, with the arrow on the first option (no), 150 ms after it appears and after
// each key that came too early.
func (o Lookout) press(ctx context.Context, d agent.Dialog) error {
	var last []string
	for range len(d.Keys) + dialogJumps {
		keys, ok := o.settled(ctx, d, last)
		if !ok {
			break
		}
		if err := o.l.Tmux.Keys(ctx, o.pane.ID, keys[0]); err != nil {
			return err
		}
		if len(keys) == 1 {
			return nil
		}
		last = keys
	}
	return fmt.Errorf("%s: %s: not answered: the menu's arrow did not move", o.launch.Agent, d.Name)
}

// settled waits until the pane has shown the dialog for dialogStill with the same keys
// left to press, other than those of the last key pressed; ok is false if that took too
// long, or a person came.
func (o Lookout) settled(ctx context.Context, d agent.Dialog, pressed []string) (keys []string, ok bool) {
	var since time.Time
	for end := time.Now().Add(dialogMoves); time.Now().Before(end); {
		at, err := o.l.Tmux.Look(ctx, o.pane)
		if err == nil && !free(at) {
			return nil, false
		}
		now, shown := o.r.Dialog(strings.Join(at.Screen, "\n"), o.launch)
		switch {
		case err != nil || !shown || now.Name != d.Name || now.Text != d.Text || len(now.Keys) == 0 || slices.Equal(now.Keys, pressed):
			since = time.Time{}
		case since.IsZero() || !slices.Equal(now.Keys, keys):
			keys, since, pressed = now.Keys, time.Now(), nil
		case time.Since(since) >= dialogStill:
			return keys, true
		}
		if proc.Sleep(ctx, 20*time.Millisecond) != nil {
			return nil, false
		}
	}
	return nil, false
}
