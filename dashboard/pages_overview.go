package dashboard

import (
	"context"
	"slices"

	"netsky/agent"
	"netsky/store"
)

// An overviewBody is the first page: is all well, who does what, what waits for
// me, what has just happened.
type overviewBody struct {
	Cards  []card
	Tasks  []store.Task
	Mail   []letter
	Unread int
	Logs   []store.Log
}

// A card is one agent on the overview.
type card struct {
	Agent
	Task  *store.Task // at hand
	Tasks int         // assigned to it and not ended
	Says  string      // what it does
}

// A letter is a message with what became of it. State is "" if that is not on
// record.
type letter struct {
	store.Message
	State  store.DeliveryState
	Why    string
	Unread bool // `netsky inbox` has not shown it to the owner yet
}

func (p *pages) overviewPage(ctx context.Context, sh *shell, _ *query) (string, error) {
	sh.Title, sh.Section = "Overview", "overview"
	var b overviewBody
	var snap store.Snapshot
	db, err := p.records()
	if err == nil {
		snap, err = db.Snapshot(ctx)
	}
	if err == nil {
		b.Mail, err = p.mail(ctx, db, store.MessageFilter{With: agent.Owner, Page: store.Page{Limit: 6}})
		b.Mail = append(p.unrecorded(b.Mail), b.Mail...)
	}
	sh.failed(err)
	b.Unread, _, err = p.unread.mail()
	sh.failed(err)
	b.Tasks, b.Logs = snap.Tasks[:min(len(snap.Tasks), 8)], snap.Logs[:min(len(snap.Logs), 14)]
	for _, a := range sh.Agents {
		b.Cards = append(b.Cards, cardOf(a, snap.Tasks))
	}
	sh.Body = b
	return "overview", nil
}

func cardOf(a Agent, tasks []store.Task) card {
	c := card{Agent: a, Says: a.Detail}
	if c.Says == "" {
		c.Says = a.evidence()
	}
	for i, t := range tasks {
		if t.Assignee != a.ID {
			continue
		}
		if c.Tasks++; c.Task == nil && t.State == store.TaskInProgress {
			c.Task = &tasks[i]
		}
	}
	return c
}

// mail lists messages with what became of each.
func (p *pages) mail(ctx context.Context, db Reader, f store.MessageFilter) ([]letter, error) {
	l, err := db.Messages(ctx, f)
	if err != nil {
		return nil, err
	}
	return p.letters(ctx, db, l.Items)
}

func (p *pages) letters(ctx context.Context, db Reader, list []store.Message) ([]letter, error) {
	all := make([]letter, 0, len(list))
	for _, m := range list {
		d, err := db.Deliveries(ctx, store.DeliveryFilter{Message: m.ID, From: m.From, Page: store.Page{Limit: 1}})
		if err != nil {
			return nil, err
		}
		one := letter{Message: m}
		if len(d.Items) > 0 {
			one.State, one.Why = d.Items[0].State, d.Items[0].Reason
		}
		all = append(all, one)
	}
	p.markUnread(all)
	return all, nil
}

// markUnread marks what the owner was not shown. Where that can't be found out,
// the overview says so.
func (p *pages) markUnread(list []letter) {
	if !slices.ContainsFunc(list, func(l letter) bool { return l.To == agent.Owner }) {
		return
	}
	_, newest, _ := p.unread.mail()
	for i, l := range list {
		list[i].Unread = l.To == agent.Owner &&
			slices.ContainsFunc(newest, func(u letter) bool { return u.ID == l.ID && u.From == l.From })
	}
}

// unrecorded are the owner's last messages that have been sent and are not on
// record yet.
func (p *pages) unrecorded(known []letter) []letter {
	last := p.sent.last()
	if last.ID == "" {
		return nil
	}
	for _, l := range known {
		if l.ID == last.ID {
			return nil
		}
	}
	if len(known) > 0 && known[0].Time > last.Time {
		return nil // it has been on record, and others came
	}
	return []letter{{Message: last, State: store.Queued}}
}
