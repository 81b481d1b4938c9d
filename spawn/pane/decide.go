package pane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/tmux"
)

// decided is a Deciding whose dialogs have that answer.
type decided struct {
	Deciding
	allow bool
}

func (d decided) Dialog(screen string, _ agent.Launch) (agent.Dialog, bool) {
	return d.Decide(screen, d.allow)
}

// Question is the dialog at which the agent waits, if the owner can answer it
// without going to its pane.
func (l *Panes) Question(ctx context.Context, la agent.Launch, p tmux.Pane, r Deciding) (agent.Dialog, bool, error) {
	d, shown, _, err := l.At(la, p, decided{Deciding: r}).look(ctx)
	return d, shown, err
}

// Errors of Decide.
var (
	ErrAtPane  = errors.New("somebody is at its pane")
	ErrChanged = errors.New("its pane shows something else by now, or the dialog was answered before")
)

// Decide gives the owner's answer to the dialog at which the agent waits, if that
// is still the one that Question has found, and returns when it has gone. It
// presses keys as an answer that the launch implies does: each only if the whole
// screen is as it is known, once under a start, and never where a person types.
func (l *Panes) Decide(ctx context.Context, la agent.Launch, p tmux.Pane, r Deciding, want agent.Dialog, allow bool) error {
	o := l.At(la, p, decided{r, allow})
	o.answers = "no, on the owner's word"
	if allow {
		o.answers = "yes, on the owner's word"
	}
	d, shown, at, err := o.look(ctx)
	switch {
	case err != nil:
		return err
	case !shown || d.Name != want.Name || d.Text != want.Text || d.Keys == nil:
		return fmt.Errorf("%s: %w: nothing was pressed", la.Agent, ErrChanged)
	case !free(at):
		return fmt.Errorf("%s: %w: nothing was pressed", la.Agent, ErrAtPane)
	}
	pressed, err := o.answer(ctx, d)
	if err != nil {
		return err
	}
	if !pressed {
		return fmt.Errorf("%s: %w: nothing was pressed", la.Agent, ErrChanged)
	}
	ctx = context.WithoutCancel(ctx)
	for end := time.Now().Add(cmp.Or(l.Goes, dialogGoes)); ; time.Sleep(20 * time.Millisecond) {
		now, shown, _, err := o.look(ctx)
		if err != nil {
			return err
		}
		if !shown || now.Name != d.Name || now.Text != d.Text {
			return o.gone()
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %s: answered, and still there", la.Agent, d.Name)
		}
	}
}
