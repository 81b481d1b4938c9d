package watch

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
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/store"
)

const (
	// unattended is how long an agent may wait at a dialog with nobody at its pane before
	// the owner is notified.
	unattended = 30 * time.Second
	// overlaidEvery is how often the screen of an agent that keeps working behind a dialog
	// is looked at.
	overlaidEvery = 5 * time.Second
	// goneAfter is how many passes must miss a dialog before it counts as gone: a screen
	// may be half drawn.
	goneAfter = 2
)

// A dialogWatch is what is known of the dialogs of an agent.
type dialogWatch struct {
	told     map[string]bool // ids of the mail about them
	over     time.Time       // when the screen was last checked for one the agent does not know of
	overlay  time.Time       // since when that one has been there; zero: none
	standing []string        // those on the screen now, by the ids of the mail about them
	sure     bool            // standing is new to settleDialogs
}

// dialogID returns the id of the mail about the dialog at which an agent has waited since
// then.
func dialogID(start string, sinceMS int64) string { return fmt.Sprintf("dialog-%s-%d", start, sinceMS) }

// stands records the dialogs on the screen, by the agent's report and the last look at its
// screen.
func (c *dialogWatch) stands(start string, r agent.Report) {
	c.standing, c.sure = nil, true
	if r.State == agent.Waiting {
		c.standing = append(c.standing, dialogID(start, r.SinceMS))
	}
	if !c.overlay.IsZero() {
		c.standing = append(c.standing, dialogID(start, c.overlay.UnixMilli()))
	}
}

// heldDialogs notifies the owner of a dialog at which an agent with a receiver waits, or
// which covers the screen of one that does not know of it, unless somebody is attached to
// the session. A dialog that the owner was asked about as a question is not mentioned
// again.
func (l *loop) heldDialogs(ctx context.Context, w *ward, r spawn.Runtime) {
	c := &w.receiver
	c.stands(w.Start, w.Report)
	waits := w.Report.State == agent.Waiting && !c.told[dialogID(w.Start, w.Report.SinceMS)] &&
		time.Since(time.UnixMilli(w.Report.SinceMS)) >= unattended
	last := c.over
	overlaid, _ := r.(pane.Overlaid)
	if time.Since(last) < overlaidEvery {
		overlaid = nil
	}
	if !waits && overlaid == nil {
		return
	}
	id, start, stood, asked := w.Agent, w.Start, !c.overlay.IsZero(), time.Now()
	l.work(ctx, w, func(ctx context.Context) func() {
		now, err := l.roster.since(ctx, asked)
		st := now.list.Find(id)
		if err != nil || now.err != nil || st.Start != start || !st.Alive() {
			return nil // if it is unknown what runs, look reports that
		}
		if waits {
			waits, err = l.unasked(st)
		}
		// tmux reports whole seconds.
		looked := err == nil && overlaid != nil && st.Pane() != "" && (stood || !st.Changed().Before(last.Add(-2*time.Second)))
		var over agent.Dialog
		var since time.Time
		if looked {
			over, since, err = l.o.Launcher.Lookout(st, overlaid).LookOver(ctx)
		}
		return func() {
			c := &w.receiver
			if overlaid != nil {
				c.over = asked
			}
			l.failed(ctx, w, "attend", err)
			if waits {
				d := st.Report.Shown()
				d.Name = cmp.Or(d.Name, "unknown dialog")
				l.tell(ctx, w, st, d, st.Report.SinceMS)
			}
			if err != nil || !looked {
				return
			}
			c.overlay = since
			c.stands(start, st.Report)
			// If the agent itself waits, it has reported it.
			if !since.IsZero() && !st.Watched() && time.Since(since) >= unattended && st.Report.State != agent.Waiting {
				l.tell(ctx, w, st, over, since.UnixMilli())
			}
		}
	})
}

// settled is how long an agent may take to continue after an answer.
const settled = 15 * time.Second

// unasked reports whether the agent waits, nobody is at its pane, and the owner has no
// question from it.
func (l *loop) unasked(st spawn.Status) (bool, error) {
	if !st.Asks() || st.Watched() || st.Report.State != agent.Waiting {
		return false, nil
	}
	if slices.Contains(home.Approvals(l.o.Launcher.Home).JustSettled(settled), st.Agent) {
		return false, nil // what waits was answered a moment ago
	}
	asked, err := home.Approvals(l.o.Launcher.Home).List()
	return err == nil && !slices.ContainsFunc(asked, func(p agent.Approval) bool { return p.Agent == st.Agent && p.Start == st.Start }), err
}

// dialogs is state/watchdog/dialogs.json: the dialogs the owner was notified of, by the id
// of the mail, until they have gone. It is written before the mail is sent.
type dialogs map[string]*dialogMail

const dialogsFile = "state/watchdog/dialogs.json"

// A dialogMail is mail to the owner about a dialog that is on a screen, or has just gone.
// Each Watchdog that finds it sends it with the same id, as another file.
type dialogMail struct {
	Agent agent.ID `json:"agent"`
	Start string   `json:"start"`
	Name  string   `json:"name"`
	Text  string   `json:"text"`

	missing int // passes in a row that did not find the dialog
}

// openDialogs reads the file once.
func (l *loop) openDialogs() error {
	if l.dialogs != nil {
		return nil
	}
	open, err := home.Load[dialogs](l.o.Launcher.Home, dialogsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if l.dialogs = open; open == nil {
		l.dialogs = make(dialogs)
	}
	return nil
}

func (l *loop) saveDialogs() {
	if err := l.o.Launcher.Home.Save(dialogsFile, l.dialogs, false); err != nil {
		l.o.Log.Warn("dialogs", "error", err)
	}
}

// tell notifies the owner of a dialog, once.
func (l *loop) tell(ctx context.Context, w *ward, st spawn.Status, d agent.Dialog, sinceMS int64) {
	id := dialogID(st.Start, sinceMS)
	c := &w.receiver
	if c.told[id] {
		return
	}
	d.Text = strings.ReplaceAll(d.Text, "<", "&lt;") // a pane's text must not look like a message
	if err := l.openDialogs(); err != nil {
		l.o.Log.Warn("dialogs", "error", err) // it is sent anyway, and stays unread when the dialog has gone
	} else {
		l.dialogs[id] = &dialogMail{Agent: st.Agent, Start: st.Start, Name: d.Name, Text: d.Text}
		l.saveDialogs()
	}
	if err := l.say(ctx, st, d, id); err != nil {
		l.failed(ctx, w, "attend", err)
		return
	}
	if c.told == nil {
		c.told = make(map[string]bool)
	}
	c.told[id] = true
}

// say sends the mail. Its id is always the same, so the owner gets it once even from a
// Watchdog that does not know of an earlier one.
func (l *loop) say(ctx context.Context, st spawn.Status, d agent.Dialog, id string) error {
	text := fmt.Sprintf("%s is waiting at a dialog in its pane (%s): %s\nOnly you can answer it: netsky attach %s",
		st.Agent, d.Name, cmp.Or(d.Text, d.Name), st.Agent)
	if pane.Decidable(l.o.Runtimes()[st.Runtime], d.Name) {
		text += fmt.Sprintf(", or netsky approve %s (--deny says no, --all-same answers all agents at the same dialog)", st.Agent)
	}
	_, err := l.o.Launcher.Bus.Send(ctx, envelope.Envelope{
		ID: id, From: st.Agent, To: agent.Owner, Kind: envelope.KindApproval, Via: "code", Text: text, Time: time.Now(),
	})
	if err == nil {
		l.o.Log.Info("dialog", "agent", st.Agent, "dialog", d.Name)
		l.event(ctx, "told-"+id, store.LevelInfo, st.Agent, st.Start, "told you that it is waiting at a dialog: "+d.Name)
	}
	return err
}

// settleDialogs marks mail about a dialog that has gone as read or settled, as nothing is left
// to do about it, and records how it went.
func (l *loop) settleDialogs(ctx context.Context) {
	if err := l.openDialogs(); err != nil {
		l.o.Log.Warn("dialogs", "error", err)
		return
	}
	settled := false
	for id, m := range l.dialogs {
		w := l.wards[m.Agent]
		switch {
		case w != nil && w.Start == m.Start && !w.receiver.sure:
			continue // a look at it is in progress
		case w != nil && slices.Contains(w.receiver.standing, id):
			m.missing = 0
			continue
		}
		if m.missing++; m.missing < goneAfter {
			continue
		}
		how, mark := l.howGone(m), l.settled
		if how == inPane {
			mark = l.markRead
		}
		if err := mark(id); err != nil {
			l.o.Log.Warn("dialogs", "mail", id, "error", err)
			continue
		}
		l.o.Records.Record(ctx, store.AddLog{
			Key: id, Part: "approval", Actor: m.Agent, About: id,
			Text: how + ": " + agent.Dialog{Name: m.Name, Text: m.Text}.String(),
		})
		delete(l.dialogs, id)
		settled = true
	}
	for _, w := range l.wards {
		w.receiver.sure = false
	}
	if settled {
		l.saveDialogs()
	}
}

func (l *loop) howGone(m *dialogMail) string {
	if k, err := l.o.Launcher.Home.LoadKeeper(m.Agent); err != nil || k.Start != m.Start || k.EndedMS != 0 {
		return "gone with the agent's session"
	}
	if l.o.Launcher.Pressed(m.Agent, m.Start, m.Name) {
		return "answered by netsky"
	}
	return inPane
}

const inPane = "answered in the pane"

// markRead marks all mail of that id as read: the owner has acted on it.
func (l *loop) markRead(id string) error { return l.mark(id, home.ShownMail(l.o.Launcher.Home).Mark) }

// settled marks all mail of that id as settled by itself. What the owner has not read stays
// new, and says so.
func (l *loop) settled(id string) error { return l.mark(id, home.ShownMail(l.o.Launcher.Home).MarkSettled) }

func (l *loop) mark(id string, as func(files ...string) error) error {
	return attention.MarkMail(l.o.Launcher.Home, l.o.Launcher.Bus, id, as)
}
