// Package pane reads what agents' panes show, presses keys and types lines there: it
// answers a dialog if the launch implies a yes or the owner has decided, records dialogs
// that wait for a person, and tells a program that knows nothing of netsky that it has
// mail.
//
// Nothing is pressed unless the runtime knows the screen, no person is using the pane, and
// two looks agree. A dialog is answered once under a start, and a line about the same mail
// is typed at most once a minute. Both are recorded before the first key, so a crash may
// leave something unanswered but never answered twice: state/dialogs/, state/pointer/.
// What a look finds is in state/screens/ and, for an agent without its receiver, in its
// report; each look renews or withdraws it.
package pane

import (
	"context"
	"time"

	"netsky/bus"
	"netsky/home"
	"netsky/store"
	"netsky/tmux"
)

// Panes are those of one home. Its fields are set before its first use and not changed
// afterwards.
type Panes struct {
	Home   home.Dir
	Tmux   *tmux.Server
	Bus    *bus.Bus
	Record func(ctx context.Context, ops ...store.Op)
}

// Calm is how long a pane must be unchanged to count as idle. tmux reports whole seconds,
// so one is added.
const Calm = 5*time.Second + time.Second

// since returns how long ago t was, by the clock of the bus.
func (l *Panes) since(t time.Time) time.Duration { return l.Bus.Now().Sub(t) }
