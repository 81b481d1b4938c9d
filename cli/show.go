package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/attention"
	"netsky/cli/view"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/store"
	agentview "netsky/view"
	"netsky/work/task"
)

func (a viewVerbs) showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print the history of a message, a task, an agent, a session, a thread or a note",
		ArgsUsage: "ID",
		Description: "ID is the id of a message, a task, a note or a session (one run of an agent; `netsky status -v` prints it as start), an agent\n" +
			"or owner, the name of a thread, or the name of a file that you dropped into an inbox. The first six or more characters\n" +
			"of an id are enough. Without the database it prints what the mailboxes still hold.",
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
			if who, err := agent.ParseArgAddress(id); err == nil {
				return a.showAddress(c, h, who)
			}
			t, err := a.timeline(c.Context, h, id)
			if errors.Is(err, store.ErrNotFound) || isNoDatabase(err) {
				err = a.showFromBus(c, id, err)
				if host := attention.Elsewhere(id); host != "" && err != nil {
					err = advice.With(fmt.Errorf("%s: %w here", id, store.ErrNotFound), "if it is of %s's log, `netsky --on %[1]s show %s` prints it", host, strings.TrimSuffix(id, "@"+host))
				}
				return err
			}
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return a.writeJSON(t)
			}
			for _, line := range append(view.Lines(t), taskOf(t)...) {
				a.print("%s", line)
			}
			return nil
		},
	}
}

// taskOf leads from a brief, or its answer, to the task, and from a task to its briefs and answers.
func taskOf(t store.Timeline) (lines []string) {
	if t.Task != nil && t.Task.Starts > 0 {
		return []string{fmt.Sprintf("its briefs and their answers: `netsky task show %s`", t.Task.ID)}
	}
	if t.Message == nil {
		return nil
	}
	for what, id := range map[string]string{"the brief of": t.Message.ID, "an answer to the brief of": t.Message.InReplyTo} {
		if k, ok := task.OfBrief(id); ok {
			lines = append(lines, fmt.Sprintf("it is %s a task: `netsky task show %s`", what, k))
		}
	}
	return lines
}

// elsewhere returns an agent of another host, and how old what is known of it is.
func elsewhere(h home.Dir, id agent.ID) (v agentview.Agent, asOf string, ok bool) {
	now := time.Now()
	hosts, _ := attention.Hosts(h, now) // `netsky needs` says what can't be read
	for _, one := range hosts {
		if i := slices.IndexFunc(one.Agents, func(v agentview.Agent) bool { return v.ID == id }); i >= 0 {
			return one.Agents[i], one.AsOf(now), true
		}
	}
	return v, "", false
}

// showAddress prints an agent's state, then its history.
func (a viewVerbs) showAddress(c *cli.Context, h home.Dir, id agent.ID) error {
	l, err := a.launcher()
	if err != nil {
		return err
	}
	var now any // what is shown of an agent
	if id.Host() != "" {
		if v, asOf, ok := elsewhere(h, id); ok {
			if now = v; !c.Bool("json") {
				a.print("%s", strings.TrimSpace(fmt.Sprintf("%s  %s  %s  %s", id, v.State, v.Words(), asOf)))
			}
		}
	} else if id.IsAgent() {
		list, err := l.Inspect(c.Context)
		if err != nil {
			a.warn("%v", err)
		}
		st := list.Find(id)
		if now = a.overviewOptions(l).Agent(st); !c.Bool("json") {
			a.showAgent(c.Context, l, st)
		}
	}
	t, err := a.timeline(c.Context, h, string(id))
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		t = store.Timeline{Subject: store.Subject{Kind: "actor", ID: string(id)}, Events: []store.TimelineEvent{}}
		if now == nil {
			a.warn("no records about %s: no mail was sent or received yet", id)
		}
	case err != nil:
		a.warn("the records can't be read: %v", err)
		a.advise(err)
	}
	if c.Bool("json") {
		return a.writeJSON(struct {
			Status any `json:"status,omitempty"`
			store.Timeline
		}{now, t})
	}
	if err == nil {
		for _, line := range view.Lines(t) {
			a.print("%s", line)
		}
	}
	return nil
}

func isNoDatabase(err error) bool {
	return err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrAmbiguous)
}

func (a viewVerbs) timeline(ctx context.Context, h home.Dir, id string) (store.Timeline, error) {
	db, err := a.freshRecords(ctx, h)
	if err != nil {
		return store.Timeline{}, err
	}
	defer db.Close()
	return db.Timeline(ctx, id)
}

// showAgent prints an agent's state, and the last lines of a dead one.
func (a viewVerbs) showAgent(ctx context.Context, l *spawn.Launcher, st spawn.Status) {
	v := a.overviewOptions(l).Agent(st)
	since := ""
	if !st.Since.IsZero() {
		since = ", for " + words.Ago(time.Since(st.Since))
	}
	a.print("%s: %s%s%s", v.ID, v.State, since, words.Note(v.Words()))
	a.print("  evidence  %s", v.Evidence)
	if v.Start != "" {
		where := ""
		if v.Pane != "" {
			where = fmt.Sprintf(", pid %d, pane %s", v.PID, v.Pane)
		}
		a.print("  start     %s, %s%s", v.Start, v.Runtime, where)
		a.print("  directory %s", tilde(a.app, v.Dir))
		if talk := conversation(ctx, l.Home, v.Start); talk != "" {
			a.print("  conversation %s", talk)
		}
	}
	if !st.Died() {
		return
	}
	lines, err := l.LastLines(ctx, st, 20)
	if err != nil { // the pane is gone; the history may have them
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

// conversation returns the runtime's id of the conversation that a start continues, ""
// if it is not recorded.
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

// showFromBus prints what the mailboxes hold of a message that is not recorded.
func (a viewVerbs) showFromBus(c *cli.Context, id string, why error) error {
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
			return fmt.Errorf("%s: %w: in no mailbox, and there are no records yet", id, store.ErrNotFound)
		case isNoDatabase(why):
			return fmt.Errorf("%s: in no mailbox, and the records can't be read: %w", id, why)
		}
		return why
	}
	if isNoDatabase(why) && !errors.Is(why, fs.ErrNotExist) {
		a.warn("the records can't be read (%v); this is what the mailboxes hold", why)
		a.advise(why)
	} else {
		a.warn("not recorded yet; this is what the mailboxes hold")
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
		if _, err := fmt.Fprint(a.stdout(), view.Mail(e)); err != nil {
			return err
		}
	}
	return nil
}
