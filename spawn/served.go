package spawn

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/agent/home"
)

// Served is implemented by a Runtime whose mailbox is held by a child of its program: the
// child can die while the program lives, and the program can't be made to start another.
type Served interface {
	Runtime
	// Idle reports whether the launch's program, process pid, runs no turn and no
	// background work, so that it may be ended; why says what it is doing, or why that is
	// unknown.
	Idle(ctx context.Context, l agent.Launch, pid int) (idle bool, why string)
}

// nobodys is the evidence of a report about an agent whose receiver has gone.
const nobodys = "no receiver holds its mailbox"

// Heard reports whether a receiver has reported for the agent under its start.
func (l *Launcher) Heard(st Status) bool {
	r, err := l.Home.LoadReport(st.Agent)
	return err == nil && st.Start != "" && r.Start == st.Start && r.State.Ready() && r.By != agent.ByPane
}

// ReceiverGone records that the agent's program runs without its receiver, and what is
// done about it. It does not overwrite the report of a receiver that is running again.
func (l *Launcher) ReceiverGone(st Status, what string) error {
	if _, held := l.Home.LockHolder(home.ReceiverLock(st.Agent)); held {
		return nil
	}
	r, err := l.Home.LoadReport(st.Agent)
	same := err == nil && r.Start == st.Start && r.By == agent.ByWatchdog
	if same && r.Detail == what {
		return nil
	}
	since := time.Now().UnixMilli()
	if same {
		since = r.SinceMS
	}
	return l.Home.SaveReport(st.Agent, agent.Report{
		Start: st.Start, State: agent.Waiting, SinceMS: since, Evidence: nobodys, Detail: what, By: agent.ByWatchdog,
	})
}
