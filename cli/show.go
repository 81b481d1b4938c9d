package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/spawn"
	"netsky/store"
)

func (a *app) showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "the story of a message, an agent, a session, a thread, a note or the owner",
		ArgsUsage: "ID",
		Description: "ID is the id of a message or a note, a start id, a thread's name, an agent or owner; the first characters of an id do, six at\n" +
			"least. The name of a file that you dropped into an inbox stands for the message in it.\n" +
			"Without the database it shows what the mailboxes still hold.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Action: func(c *cli.Context) error {
			id, err := one(c, "one id")
			if err != nil {
				return err
			}
			h, err := a.home()
			if err != nil {
				return err
			}
			if who, err := agent.ParseArg(id); err == nil {
				return a.showAddress(c, h, who)
			}
			t, err := a.timelineSoon(c.Context, h, id)
			if errors.Is(err, store.ErrNotFound) || isNoDatabase(err) {
				return a.showFromBus(c, id, err)
			}
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return a.writeJSON(t)
			}
			a.drawTimeline(t)
			return nil
		},
	}
}

// showAddress tells how an agent is, then what is on record about it.
func (a *app) showAddress(c *cli.Context, h home.Dir, id agent.ID) error {
	l, err := a.launcher()
	if err != nil {
		return err
	}
	var now *agentView
	if id.IsAgent() {
		list, err := l.Inspect(c.Context)
		if err != nil {
			a.warn("%v", err)
		}
		st := list.Find(id)
		v := viewOf(st)
		if now = &v; !c.Bool("json") {
			a.showAgent(c.Context, l, st)
		}
	}
	t, err := a.timeline(c.Context, h, string(id))
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		t = store.Timeline{Subject: store.Subject{Kind: "actor", ID: string(id)}, Events: []store.TimelineEvent{}}
		if now == nil {
			a.warn("nothing is on record about %s: no mail was sent or received yet", id)
		}
	case err != nil:
		a.warn("the records can't be read: %v", err)
		a.advise(err)
	}
	if c.Bool("json") {
		return a.writeJSON(struct {
			Status *agentView `json:"status,omitempty"`
			store.Timeline
		}{now, t})
	}
	if err == nil {
		a.drawTimeline(t)
	}
	return nil
}

func isNoDatabase(err error) bool {
	return err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrAmbiguous)
}

// timelineSoon gives the daemon, where it runs, a moment to put on record what
// has only just happened.
func (a *app) timelineSoon(ctx context.Context, h home.Dir, id string) (store.Timeline, error) {
	for i := 0; ; i++ {
		t, err := a.timeline(ctx, h, id)
		if _, running := h.LockHolder(agent.DaemonName); !errors.Is(err, store.ErrNotFound) || !running || i == 5 {
			return t, err
		}
		select {
		case <-ctx.Done():
			return t, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (a *app) timeline(ctx context.Context, h home.Dir, id string) (store.Timeline, error) {
	db, err := a.records(ctx, h)
	if err != nil {
		return store.Timeline{}, err
	}
	defer db.Close()
	return db.Timeline(ctx, id)
}

// showAgent prints how an agent is now, and what a dead one said last.
func (a *app) showAgent(ctx context.Context, l *spawn.Launcher, st spawn.Status) {
	v := viewOf(st)
	since := ""
	if !st.Since.IsZero() {
		since = ", for " + ago(time.Since(st.Since))
	}
	a.print("%s: %s%s%s", v.Agent, v.State, since, note(agentWords(v)))
	a.print("  evidence  %s", v.Evidence)
	if v.Start != "" {
		where := ""
		if v.Pane != "" {
			where = fmt.Sprintf(", pid %d, pane %s", v.PID, v.Pane)
		}
		a.print("  start     %s, %s%s", v.Start, v.Runtime, where)
		a.print("  directory %s", tilde(a, v.Dir))
		if talk := conversation(ctx, l.Home, v.Start); talk != "" {
			a.print("  conversation %s", talk)
		}
	}
	if v.State != agent.Dead {
		return
	}
	lines, err := l.LastLines(ctx, st, 20)
	if err != nil { // the pane is gone; the record below may have them
		if k, err := l.Home.LoadKeeper(st.Agent); err == nil && k.Start == st.Start && k.Lost != "" {
			a.print("  last lines none: the pane closed with its keeper")
		}
		return
	}
	a.print("  last lines of its pane:")
	for _, line := range lines {
		a.print("    %s", line)
	}
}

// conversation is the runtime's own name of what a start goes on with, "" if it
// is not on record.
func conversation(ctx context.Context, h home.Dir, start string) string {
	db, err := store.OpenRead(ctx, h)
	if err != nil {
		return ""
	}
	defer db.Close()
	s, err := db.Session(ctx, start)
	if err != nil {
		return ""
	}
	return s.Thread
}

// showFromBus tells what the mailboxes hold of a message that is not on record.
func (a *app) showFromBus(c *cli.Context, id string, why error) error {
	b, err := a.bus()
	if err != nil {
		return err
	}
	list, err := b.Locate(c.Context, id)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		switch {
		case errors.Is(why, fs.ErrNotExist):
			return fmt.Errorf("%s: %w: in no mailbox, and nothing is on record yet", id, store.ErrNotFound)
		case isNoDatabase(why):
			return fmt.Errorf("%s: in no mailbox, and the records can't be read: %w", id, why)
		}
		return why
	}
	if isNoDatabase(why) && !errors.Is(why, fs.ErrNotExist) {
		a.warn("the records can't be read (%v); this is what the mailboxes hold", why)
		a.advise(why)
	} else {
		a.warn("not on record yet; this is what the mailboxes hold")
	}
	if c.Bool("json") {
		var found []map[string]any
		for _, e := range list {
			found = append(found, map[string]any{"mailbox": e.Mailbox, "place": e.Place, "file": e.Name, "envelope": e.Envelope})
		}
		return a.writeJSON(map[string]any{"found": found})
	}
	for _, e := range list {
		a.print("%s in %s's mailbox", e.Place, e.Mailbox)
		if _, err := fmt.Fprint(a.stdout(), mailText(e)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) drawTimeline(t store.Timeline) {
	switch {
	case t.Message != nil:
		m := t.Message
		a.print("message %s", m.ID)
		a.print("  from %s to %s%s, sent %s", m.From, m.To, viaWords(m.Via), stamp(m.Time))
		for l := range strings.SplitSeq(m.Text, "\n") {
			a.print("  | %s", l)
		}
	case t.Session != nil:
		s := t.Session
		a.print("session %s of %s on %s", s.Start, s.Actor, s.Runtime)
		a.print("  started %s%s", stamp(s.Started), endWords(*s))
		if s.Thread != "" {
			a.print("  conversation %s", s.Thread)
		}
		for l := range strings.SplitSeq(strings.TrimRight(s.LastLines, "\n"), "\n") {
			if l != "" {
				a.print("  | %s", l)
			}
		}
	case t.Note != nil:
		a.drawNote(*t.Note)
	case t.Task != nil:
		a.print("task %s: %s (%s)", t.Task.ID, t.Task.Title, t.Task.State)
	case t.Actor != nil:
		a.print("on record: %s%s", t.Actor.ID, note(agent.RoleWord(t.Actor.Role)))
		if t.Actor.Objective != "" {
			a.print("  objective %s", t.Actor.Objective)
		}
	default:
		a.print("%s %s", t.Subject.Kind, t.Subject.ID)
	}
	if t.More {
		a.print("  …")
	}
	day := ""
	for _, e := range t.Events {
		at := e.Time.Time().Local()
		if d := at.Format("2006-01-02"); d != day {
			day = d
			a.print("%s", day)
		}
		who := string(e.Actor)
		if e.To != "" {
			who += " → " + string(e.To)
		}
		a.print("  %s  %-10s %-20s %s%s", at.Format("15:04:05.000"), strings.ReplaceAll(e.Kind, "_", " "), who, brief(e.Text, 90), refWords(e.Ref, t.Subject.ID))
	}
}

func (a *app) drawNote(n store.Note) {
	about := ""
	if n.About != "" {
		about = " about " + n.About
	}
	a.print("note %s", n.ID)
	a.print("  by %s%s, written %s", cmp.Or(n.Author, "nobody"), about, stamp(n.Created))
	for l := range strings.SplitSeq(n.Text, "\n") {
		a.print("  | %s", l)
	}
}

func viaWords(via string) string {
	if via == "" {
		return ""
	}
	return " by " + via
}

func refWords(ref, subject string) string {
	if ref == "" || ref == subject {
		return ""
	}
	return "  (" + ref + ")"
}

func endWords(s store.Session) string {
	switch {
	case s.Ended == 0:
		return ", open: " + string(s.State)
	case s.Status != nil:
		return fmt.Sprintf(", ended %s with status %d%s", stamp(s.Ended), *s.Status, note(s.Reason))
	case s.Signal != "":
		return fmt.Sprintf(", ended %s by %s%s", stamp(s.Ended), s.Signal, note(s.Reason))
	}
	if s.Reason == store.EndedUnseen {
		return fmt.Sprintf(", ended before %s; when and how is not known", stamp(s.Ended))
	}
	return fmt.Sprintf(", ended %s%s", stamp(s.Ended), note(s.Reason))
}

func stamp(t store.Time) string { return t.Time().Local().Format("2006-01-02 15:04:05") }
