package pane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
)

// decided makes a Deciding answer its dialogs with yes or with no.
type decided struct {
	Deciding
	allow bool
}

func (d decided) Dialog(screen string, _ agent.Launch) (agent.Dialog, bool) {
	return d.Decide(screen, d.allow)
}

// Question returns the dialog at which the agent waits, if the owner can answer it without
// going to its pane.
func (o Lookout) Question(ctx context.Context) (agent.Dialog, bool, error) {
	r, ok := o.r.(Deciding)
	if !ok {
		return agent.Dialog{}, false, o.err
	}
	o.r = decided{Deciding: r}
	d, shown, _, err := o.look(ctx)
	return d, shown, err
}

// Errors returned by Decide.
var (
	ErrAtPane  = errors.New("somebody is using its pane")
	ErrChanged = errors.New("its pane has changed, or the dialog was already answered")
)

// Decide gives the owner's answer to the dialog at which the agent waits, if it is still
// the one that Question returned, and returns when the dialog has gone. By is where the owner
// gave it, for the record. It follows the
// same rules as an answer implied by the launch: each key only if the whole screen is
// known, once under a start, and never where a person types.
func (o Lookout) Decide(ctx context.Context, want agent.Dialog, allow bool, by string) error {
	r, ok := o.r.(Deciding)
	if !ok {
		return cmp.Or(o.err, fmt.Errorf("%s: %w; no key was pressed", o.launch.Agent, ErrChanged))
	}
	o.r = decided{r, allow}
	o.answers = "no, as the owner decided, with " + by
	if allow {
		o.answers = "yes, as the owner decided, with " + by
	}
	d, shown, at, err := o.look(ctx)
	switch {
	case err != nil:
		return err
	case !shown || d.Name != want.Name || d.Text != want.Text || d.Keys == nil:
		return fmt.Errorf("%s: %w; no key was pressed", o.launch.Agent, ErrChanged)
	case !free(at):
		return fmt.Errorf("%s: %w; no key was pressed", o.launch.Agent, ErrAtPane)
	}
	pressed, err := o.answer(ctx, d)
	if err != nil {
		return err
	}
	if !pressed {
		return fmt.Errorf("%s: %w; no key was pressed", o.launch.Agent, ErrChanged)
	}
	ctx = context.WithoutCancel(ctx)
	for end := time.Now().Add(dialogGoes); ; time.Sleep(20 * time.Millisecond) {
		now, shown, _, err := o.look(ctx)
		if err != nil {
			return err
		}
		if !shown || now.Name != d.Name || now.Text != d.Text {
			return o.gone()
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %s: answered, but still on the screen", o.launch.Agent, d.Name)
		}
	}
}
