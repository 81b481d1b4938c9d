// Package pane reads what the panes of agents show, and presses keys and types lines
// there: it answers a dialog whose yes the launch implies or the owner has given,
// notes the dialogs that wait for a person, and tells a program that knows nothing
// of netsky that it has mail.
//
// Nothing is pressed unless the screen is one that the runtime knows, a person is
// not at the pane, and two looks have shown the same; a dialog is answered once
// under a start, and a line about the same mail typed once a minute at most. Both
// are noted before the first key, so a crash leaves something unanswered and never
// answered twice: state/dialogs/, state/pointer/. What a look has found is in
// state/screens/ and, for an agent without its receiver, in its report; each look
// renews it or takes it back.
package pane

import (
	"cmp"
	"context"
	"time"

	"netsky/agent/home"
	"netsky/bus"
	"netsky/store"
	"netsky/tmux"
)

// Panes are those of one home. All its fields are set before its first use and not
// changed afterwards.
type Panes struct {
	Home   home.Dir
	Tmux   *tmux.Server
	Bus    *bus.Bus
	Record func(ctx context.Context, ops ...store.Op)
	Times
}

// Times are how long things may take; 0 is the default.
type Times struct {
	Quiet  time.Duration // without output, before a pane counts as idle
	Person time.Duration // after a person's last key
	Again  time.Duration // between two lines typed into a pane
	Goes   time.Duration // until a dialog that was answered has gone
}

// quietTime is how long a pane must not have changed to count as idle. tmux tells
// whole seconds, so one is added.
const quietTime = 5*time.Second + time.Second

// Calm is how long a pane must not have changed to count as idle.
func (t Times) Calm() time.Duration { return cmp.Or(t.Quiet, quietTime) }
