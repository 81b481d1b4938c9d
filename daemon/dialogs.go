package daemon

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
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/store"
)

// unattended is how long an agent may wait at a dialog that came up later, and
// nobody be at its pane, until the owner is told.
const unattended = 30 * time.Second

// stands tells the owner of a dialog at which an agent waits whose receiver is
// there, unless somebody is attached to it. What was put before the owner as a
// question has been told already.
func (a *attendant) stands(ctx context.Context, la agent.Launch, c *attended, states *spawn.Statuses) error {
	r, err := a.d.o.Home.LoadReport(la.Agent)
	if err != nil || r.Start != la.Start || r.State != agent.Waiting || c.told[dialogID(la.Start, r.SinceMS)] {
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
	return a.tell(ctx, st, d, c, r.SinceMS)
}

// overlaidEvery is how often the screen is looked at of an agent that works on
// behind a dialog of its program's.
const overlaidEvery = 5 * time.Second

// overlaid looks for a dialog on the screen of such an agent, if that may have
// changed since the last look, and tells the owner of one that stays while nobody
// is at the pane.
func (a *attendant) overlaid(ctx context.Context, la agent.Launch, c *attended, r pane.Overlaid, states *spawn.Statuses) (err error) {
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
	if c.dialog.IsZero() && st.Changed().Before(last.Add(-2*time.Second)) {
		return nil
	}
	d, since, err := a.d.o.Launcher.LookOver(ctx, st, r)
	if err != nil {
		return err
	}
	c.dialog = since
	// Where the agent itself waits, it has said so, and stands tells of it.
	report, err := a.d.o.Home.LoadReport(la.Agent)
	if err != nil || since.IsZero() || st.Watched() || time.Since(since) < unattended || report.State == agent.Waiting {
		return err
	}
	return a.tell(ctx, st, d, c, since.UnixMilli())
}

// shown tells the owner of a dialog in the pane of an agent without its receiver.
func (a *attendant) shown(ctx context.Context, st spawn.Status, d agent.Dialog, c *attended) error {
	r, err := a.d.o.Home.LoadReport(st.Agent)
	if err != nil || r.Start != st.Start || r.State != agent.Waiting {
		return err // it has a receiver by now
	}
	return a.tell(ctx, st, d, c, r.SinceMS)
}

// dialogPrefix begins the ids of the mail about dialogs.
const dialogPrefix = "dialog-"

// dialogID is the id of the mail about the dialog at which an agent has stood
// since then.
func dialogID(start string, sinceMS int64) string {
	return fmt.Sprintf("%s%s-%d", dialogPrefix, start, sinceMS)
}

// tell tells the owner of a dialog, once.
func (a *attendant) tell(ctx context.Context, st spawn.Status, d agent.Dialog, c *attended, sinceMS int64) error {
	id := dialogID(st.Start, sinceMS)
	if c.told[id] {
		return nil
	}
	err := a.say(ctx, st, d, id)
	if err == nil {
		c.told[id] = true
	}
	return err
}

// A dialogMail is a message to the owner about a dialog that stands, or has just
// gone. Every daemon that found it has sent it: with the same id, as another file.
type dialogMail struct {
	agent   agent.ID
	start   string
	what    string // its name and text
	files   []string
	missing int // passes in a row that did not find the dialog
}

// goneAfter is how many passes must find a dialog gone: a screen may be half drawn.
const goneAfter = 2

// stand notes the dialogs at which an agent stands now, by the ids of the mail
// about them. It reports false if that can't be known.
func (a *attendant) stand(la agent.Launch, c *attended, standing map[string]bool) bool {
	r, err := a.d.o.Home.LoadReport(la.Agent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil && r.Start == la.Start && r.State == agent.Waiting {
		standing[dialogID(la.Start, r.SinceMS)] = true
	}
	if !c.dialog.IsZero() {
		standing[dialogID(la.Start, c.dialog.UnixMilli())] = true
	}
	return true
}

// settle marks mail about a dialog that has gone as read, as nothing is left to
// do about it, and puts on record how it went.
func (a *attendant) settle(ctx context.Context, standing map[string]bool, unknown map[agent.ID]bool) {
	if !a.opened {
		if err := a.reopen(); err != nil {
			a.d.o.Log.Warn("dialogs", "error", err)
			return
		}
		a.opened = true
	}
	for id, m := range a.open {
		if standing[id] || unknown[m.agent] {
			m.missing = 0
			continue
		}
		if m.missing++; m.missing < goneAfter {
			continue
		}
		how := "answered in the pane"
		if k, err := a.d.o.Home.LoadKeeper(m.agent); err != nil || k.Start != m.start || k.EndedMS != 0 {
			how = "gone with the agent's session"
		} else if a.d.o.Launcher.Pressed(m.agent, m.start, strings.SplitN(m.what, ": ", 2)[0]) {
			how = "answered by netsky"
		}
		if err := a.d.o.Home.MarkShown(m.files...); err != nil {
			a.d.o.Log.Warn("dialogs", "mail", id, "error", err)
			continue
		}
		a.d.record(ctx, store.AddLog{Key: id, Part: "approval", Actor: m.agent, About: id, Text: how + ": " + m.what})
		delete(a.open, id)
	}
}

// reopen takes up what earlier daemons have told the owner, and nobody has read.
func (a *attendant) reopen() error {
	shown, err := a.d.o.Home.ShownMail()
	if err != nil {
		return err
	}
	names, err := a.d.o.Bus.Mail(agent.Owner, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, bus.ErrNoMailbox) {
		return nil
	}
	if err != nil {
		return err
	}
	list, err := a.d.o.Bus.FindAll(agent.Owner, slices.DeleteFunc(names, func(name string) bool { return shown[name] }))
	for _, e := range list {
		if e.Err == nil && e.Envelope.Kind == envelope.KindApproval {
			a.opens(e.Envelope, e.Name)
		}
	}
	return err
}

// opens notes the mail about a dialog.
func (a *attendant) opens(e envelope.Envelope, file string) {
	rest, ok := strings.CutPrefix(e.ID, dialogPrefix)
	start, _, more := strings.Cut(rest, "-")
	if !ok || !more || e.Via != "code" {
		return
	}
	m := a.open[e.ID]
	if m == nil {
		_, what, _ := strings.Cut(e.Text, inItsPane)
		what, _, _ = strings.Cut(what, "\n")
		m = &dialogMail{agent: e.From, start: start, what: strings.Replace(what, "): ", ": ", 1)}
		a.open[e.ID] = m
	}
	if !slices.Contains(m.files, file) {
		m.files = append(m.files, file)
	}
}

// inItsPane stands before a dialog's name and text in the mail about it.
const inItsPane = " waits at a dialog in its pane ("

// say tells the owner of a dialog. The envelope has the same id whenever it is
// sent, so a daemon that knows nothing of an earlier one does not tell it twice.
func (a *attendant) say(ctx context.Context, st spawn.Status, d agent.Dialog, id string) error {
	what := strings.ReplaceAll(cmp.Or(d.Text, d.Name), "<", "&lt;") // no text of a pane's looks like a message
	text := fmt.Sprintf("%s%s%s): %s\nOnly you can answer it: netsky attach %s", st.Agent, inItsPane, d.Name, what, st.Agent)
	if r, ok := a.d.o.Runtimes[st.Runtime].(pane.Deciding); ok && r.Decidable(d.Name) {
		text += fmt.Sprintf(", or netsky approve %s (--deny says no, --all-same answers all agents at the same dialog)", st.Agent)
	}
	e := envelope.Envelope{
		ID: id, From: st.Agent, To: agent.Owner, Kind: envelope.KindApproval, Via: "code", Text: text,
		Time: time.Now(),
	}
	receipt, err := a.d.o.Bus.Send(ctx, e)
	if err == nil {
		a.opens(e, receipt.File)
		a.d.o.Log.Info("dialog", "agent", st.Agent, "dialog", d.Name)
	}
	return err
}
