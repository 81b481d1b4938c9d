// This file tells an agent whose conversation has lost its memory what netsky's files
// and records hold: its objective, who is up, what is unanswered, which questions and tasks
// are open. A clone is told only of its own messages.
//
// What can't be read is left out, and what exceeds the limit is counted. state/recall/ has
// the agents that have yet to be told that all were down at once, that their program died, or
// what their conversation has forgotten; a crash after an agent was told makes it be told twice.

package watch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/spawn"
	"netsky/store"
)

const (
	// MostBriefing is the longest text, in bytes.
	MostBriefing = 4 << 10

	mostLines = 20 // of one kind
	mostWords = 100
	mostLast  = 8 // last lines of a dead program
	mostAim   = 2000
	reserved  = 200 // bytes for the counts of what is left out
)

// A Briefing is an agent's, for its courier.
type Briefing struct {
	l  *spawn.Launcher
	id agent.ID
}

// BriefingOf returns an agent's memory.
func BriefingOf(l *spawn.Launcher, id agent.ID) Briefing { return Briefing{l, id} }

// Facts returns what the agent is told whose conversation was compacted or cleared or, with
// fresh, is a new one: "" if nothing has happened that it should know. It is told of some of
// its messages anyway.
func (m Briefing) Facts(ctx context.Context, fresh bool, told []string) string {
	l, id := m.l, m.id
	f := facts{ctx: ctx, l: l, id: id, told: told}
	forgot := m.note().add(&f)
	if fresh {
		f.lost()
	}
	if fresh || forgot {
		f.objective()
	}
	f.mail()
	if !id.IsClone() {
		f.sent()
		f.questions()
	}
	f.tasks()
	if len(f.sections) == 0 && (fresh || id.IsClone()) {
		return ""
	}
	if !id.IsClone() {
		f.team()
	}
	why := "Your conversation was compacted or cleared. "
	switch {
	case !fresh && !forgot:
		why = ""
	case fresh:
		why = "This conversation is new; you have been at work before. "
	}
	return f.text(why + "What netsky's records hold now; check what is already done before you repeat anything.")
}

type facts struct {
	ctx      context.Context
	l        *spawn.Launcher
	id       agent.ID
	told     []string
	sections []section
}

// A section is a list of facts of one kind.
type section struct {
	title string
	lines []string
}

func (f *facts) add(title string, lines []string) {
	if len(lines) > 0 {
		f.sections = append(f.sections, section{title, lines})
	}
}

// text joins the sections, as much of them as fits.
func (f *facts) text(head string) string {
	var b strings.Builder
	b.WriteString(head)
	for _, s := range f.sections {
		left := 0
		for i, line := range s.lines {
			if i == 0 {
				line = s.title + "\n- " + line
			} else {
				line = "- " + line
			}
			if i >= mostLines || b.Len()+len(line)+1 > MostBriefing-reserved {
				left = len(s.lines) - i
				break
			}
			b.WriteString("\n" + line)
		}
		if left > 0 && b.Len() < MostBriefing-60 {
			fmt.Fprintf(&b, "\n(%d more: %s)", left, strings.ToLower(strings.TrimSuffix(s.title, ":")))
		}
	}
	return b.String()
}

// lost adds that the conversation before is gone, and the last messages of it.
func (f *facts) lost() {
	la, err := f.l.Home.LoadLaunch(f.id)
	if err != nil || la.Lost == (agent.Lost{}) {
		return
	}
	lines := []string{"none are on record"}
	if db, err := store.OpenRead(f.ctx, f.l.Home); err == nil {
		defer db.Close()
		list, err := db.Messages(f.ctx, store.MessageFilter{With: f.id, Without: envelope.ControlKinds(), Page: store.Page{Limit: mostLast}})
		if err == nil && len(list.Items) > 0 {
			lines = nil
		}
		for _, m := range slices.Backward(list.Items) {
			who := "from " + string(m.From)
			if m.From == f.id {
				who = "to " + string(m.To)
			}
			lines = append(lines, line(who, m.ID, m.Time.Time(), cmp.Or(m.Kind, "message"), m.Text))
		}
	}
	f.add("Your conversation before is gone ("+envelope.Line(la.Lost.Why, 2*mostWords)+"). Its last messages:", lines)
}

// mail adds the messages to the agent that it has not answered.
func (f *facts) mail() {
	var lines []string
	for _, d := range courier.ReadLedger(f.l.Home, f.id).Messages {
		if d.Wants && !slices.Contains(f.told, d.ID) {
			lines = append(lines, f.message("from "+string(d.From), d.ID, f.id, time.UnixMilli(d.SentMS), state(d)))
		}
	}
	f.add("Given to you and not answered:", lines)
	waiting, err := f.l.Bus.Count(f.id, bus.Inbox)
	if err == nil && waiting > 0 && !f.id.IsClone() {
		f.add("Mail that you will be given:", []string{fmt.Sprintf("%d waiting", waiting)})
	}
}

// objective adds what the agent was last started for, unless that is among the messages that
// it is given now.
func (f *facts) objective() {
	db, err := store.OpenRead(f.ctx, f.l.Home)
	if err != nil {
		return
	}
	defer db.Close()
	a, err := db.Actor(f.ctx, f.id)
	if err != nil || a.Objective == "" {
		return
	}
	var given []bus.Entry
	for _, id := range f.told {
		list, _ := f.l.Bus.Received(f.ctx, f.id, id)
		given = append(given, list...)
	}
	for _, p := range []bus.Place{bus.Claimed, bus.Inbox} {
		list, _ := f.l.Bus.List(f.id, p, 10*mostLines)
		given = append(given, list...)
	}
	if slices.ContainsFunc(given, func(e bus.Entry) bool { return e.Err == nil && e.Envelope.Text == a.Objective }) {
		return
	}
	lines := []string{envelope.Line(a.Objective, mostAim)}
	if len(a.Objective) > mostAim {
		lines = append(lines, fmt.Sprintf("that is its beginning; `netsky show %s` prints all of it", f.id))
	}
	f.add("What you were started for, your objective:", lines)
}

func state(m courier.Message) string {
	if m.State == courier.StateHeld {
		return "held by the vendor's limit"
	}
	return "in hand"
}

// message describes a message that an agent was given.
func (f *facts) message(who, id string, to agent.ID, sent time.Time, state string) string {
	text := ""
	if list, err := f.l.Bus.Received(f.ctx, to, id); err == nil && len(list) > 0 && list[0].Err == nil {
		text = list[0].Envelope.Text
	}
	return line(who, id, sent, state, text)
}

func line(who, id string, sent time.Time, state, text string) string {
	s := fmt.Sprintf("%s, %s, sent %s, %s", who, id, sent.UTC().Format("2006-01-02 15:04Z"), state)
	if text = envelope.Line(text, mostWords); text != "" {
		s += fmt.Sprintf(": %q", text)
	}
	return s
}

// team adds who is up.
func (f *facts) team() {
	list, err := f.l.Inspect(f.ctx)
	if err != nil && len(list) == 0 {
		return
	}
	var lines []string
	for _, st := range list {
		if st.Agent == f.id || st.Forgotten || st.State == agent.Down && !st.Wanted && st.Waiting() == 0 {
			continue
		}
		words := string(st.Agent) + " " + string(st.State)
		if detail := cmp.Or(st.Restart, st.Detail); detail != "" {
			words += " (" + envelope.Line(detail, mostWords) + ")"
		}
		if n := st.Inbox + st.Claimed; n > 0 {
			words += fmt.Sprintf(", %d messages waiting", n)
		}
		lines = append(lines, words)
	}
	f.add("Other agents:", lines)
}

// sent adds the agent's messages to others that nobody has finished.
func (f *facts) sent() {
	boxes, _ := f.l.Bus.Mailboxes()
	slices.SortFunc(boxes, agent.Compare)
	var lines []string
	for _, to := range boxes {
		if to == f.id || !to.IsAgent() {
			continue
		}
		known := make(map[string]bool)
		for _, d := range courier.ReadLedger(f.l.Home, to).Messages {
			if d.From == f.id && f.ctx.Err() == nil {
				known[d.ID] = true
				lines = append(lines, f.message("to "+string(to), d.ID, to, time.UnixMilli(d.SentMS), state(d)))
			}
		}
		for _, p := range []bus.Place{bus.Claimed, bus.Inbox} {
			list, _ := f.l.Bus.List(to, p, 10*mostLines)
			for _, e := range list {
				if e.Envelope.From == f.id && e.IsMessage() && !known[e.Envelope.ID] {
					known[e.Envelope.ID] = true
					lines = append(lines, line("to "+string(to), e.Envelope.ID, e.Envelope.Time, "not read yet", e.Envelope.Text))
				}
			}
		}
	}
	f.add("Your messages that are not answered yet:", lines)
}

// questions adds what agents have asked the owner.
func (f *facts) questions() {
	list, _ := home.Approvals(f.l.Home).List()
	var lines []string
	for _, a := range list {
		line, _ := a.Brief(mostWords)
		lines = append(lines, fmt.Sprintf("%s asks the owner (%s): %s %s", a.Agent, a.Code, a.Tool, line))
	}
	f.add("Open questions:", lines)
}

// tasks adds the open tasks: of a clone its own.
func (f *facts) tasks() {
	db, err := store.OpenRead(f.ctx, f.l.Home)
	if err != nil {
		return
	}
	defer db.Close()
	filter := store.TaskFilter{}
	if f.id.IsClone() {
		filter.Assignee = f.id
	}
	var lines []string
	for _, filter.State = range []string{store.TaskInProgress, store.TaskBlocked, store.TaskOpen} {
		filter.Limit = mostLines
		list, err := db.Tasks(f.ctx, filter)
		if err != nil {
			return
		}
		for _, t := range list.Items {
			lines = append(lines, fmt.Sprintf("%s, %s, %s: %s", t.ID, t.State, cmp.Or(string(t.Assignee), "nobody's"), envelope.Line(t.Title, mostWords)))
		}
	}
	f.add("Open tasks:", lines)
}
