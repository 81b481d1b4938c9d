package spawn

import (
	"time"
)

// SetTimes shortens what takes long: up's wait for an agent to be ready, down's
// for one to close. 0 is the default.
func (l *Launcher) SetTimes(ready, down time.Duration) {
	l.times.ready, l.times.down = ready, down
}

// SetOrphanedTime shortens how long up waits for a program to end whose session
// has gone. 0 is the default.
func (l *Launcher) SetOrphanedTime(d time.Duration) { l.times.orphaned = d }

// SetPointTimes shortens what Point waits for: a quiet pane, a person to be
// gone, the time between two lines. 0 is the default.
func (l *Launcher) SetPointTimes(quiet, person, point time.Duration) {
	l.times.Quiet, l.times.Person, l.times.Again = quiet, person, point
}

// SetDialogTime shortens how long a dialog may stay after its answer. 0 is the
// default.
func (l *Launcher) SetDialogTime(goes time.Duration) { l.times.Goes = goes }

// SetAtOnce sets how many agents are started together. 0 is the default.
func (l *Launcher) SetAtOnce(n int) { l.times.atOnce = n }
