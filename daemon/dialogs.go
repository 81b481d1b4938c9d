package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/spawn"
)

// unattended is how long an agent may wait at a dialog that came up later, and
// nobody be at its pane, until the owner is told.
const unattended = 30 * time.Second

// stands tells the owner of a dialog at which an agent waits whose receiver is
// there, unless somebody is attached to it. What was put before the owner as a
// question has been told already.
func (a *attendant) stands(ctx context.Context, la agent.Launch, c *attended, states *spawn.Statuses) error {
	r, err := a.d.o.Home.LoadReport(la.Agent)
	if err != nil || r.Start != la.Start || r.State != agent.Waiting || r.SinceMS == c.stood {
		return nil
	}
	if since := time.Since(time.UnixMilli(r.SinceMS)); since < unattended {
		return nil
	}
	asked, err := a.d.o.Home.Approvals()
	if err != nil || slices.ContainsFunc(asked, func(p agent.Approval) bool { return p.Agent == la.Agent && p.Start == la.Start }) {
		return err
	}
	if *states == nil {
		if *states, err = a.d.o.Launcher.Inspect(ctx); err != nil {
			return nil // it can't be told who runs; the vigil says so
		}
	}
	st := states.Find(la.Agent)
	if st.Start != la.Start || !st.Asks() || st.Watched() {
		return nil
	}
	name, text, _ := strings.Cut(r.Detail, ": ")
	d := agent.Dialog{Name: cmp.Or(name, "unknown dialog"), Text: text}
	if err := a.say(ctx, st, d, fmt.Sprintf("dialog-%s-%d", st.Start, r.SinceMS)); err != nil {
		return err
	}
	c.stood = r.SinceMS
	return nil
}

// overlaidEvery is how often the screen is looked at of an agent that works on
// behind a dialog of its program's.
const overlaidEvery = 5 * time.Second

// overlaid looks for a dialog on the screen of such an agent, if that may have
// changed since the last look, and tells the owner of one that stays while nobody
// is at the pane.
func (a *attendant) overlaid(ctx context.Context, la agent.Launch, c *attended, r spawn.Overlaid, states *spawn.Statuses) (err error) {
	last := c.over
	if time.Since(last) < overlaidEvery {
		return nil
	}
	if *states == nil {
		if *states, err = a.d.o.Launcher.Inspect(ctx); err != nil {
			return nil // it can't be told who runs; the vigil says so
		}
	}
	c.over = time.Now()
	st := states.Find(la.Agent)
	if st.Start != la.Start || !st.Alive() || st.Pane() == "" {
		return nil
	}
	// tmux tells whole seconds.
	if !c.dialog && st.Changed().Before(last.Add(-2*time.Second)) {
		return nil
	}
	d, since, err := a.d.o.Launcher.LookOver(ctx, st, r)
	if err != nil {
		return err
	}
	c.dialog = !since.IsZero()
	// Where the agent itself waits, it has said so, and stands tells of it.
	report, err := a.d.o.Home.LoadReport(la.Agent)
	if err != nil || !c.dialog || st.Watched() || time.Since(since) < unattended || report.State == agent.Waiting {
		return err
	}
	return a.tell(ctx, st, d, c)
}

// tell tells the owner of a dialog, once under a start.
func (a *attendant) tell(ctx context.Context, st spawn.Status, d agent.Dialog, c *attended) error {
	if c.told[d.Name] {
		return nil
	}
	err := a.say(ctx, st, d, "dialog-"+st.Start+"-"+slug(d.Name))
	if err == nil {
		c.told[d.Name] = true
	}
	return err
}

// say tells the owner of a dialog. The envelope has the same id whenever it is
// sent, so a daemon that knows nothing of an earlier one does not tell it twice.
func (a *attendant) say(ctx context.Context, st spawn.Status, d agent.Dialog, id string) error {
	what := strings.ReplaceAll(cmp.Or(d.Text, d.Name), "<", "&lt;") // no text of a pane's looks like a message
	text := fmt.Sprintf("%s waits at a dialog in its pane (%s): %s\nOnly you can answer it: netsky attach %s", st.Agent, d.Name, what, st.Agent)
	if r, ok := a.d.o.Runtimes[st.Runtime].(spawn.Deciding); ok && r.Decidable(d.Name) {
		text += fmt.Sprintf(", or netsky approve %s (--deny says no, --all-same answers all agents at the same dialog)", st.Agent)
	}
	_, err := a.d.o.Bus.Send(ctx, bus.Envelope{
		ID: id, From: st.Agent, To: agent.Owner, Kind: bus.KindApproval, Via: "code", Text: text,
		Time: time.Now(),
	})
	if err == nil {
		a.d.o.Log.Info("dialog", "agent", st.Agent, "dialog", d.Name)
	}
	return err
}

// slug is a name as a part of an id.
func slug(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, name[:min(len(name), 60)])
}
