package dashboard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/store"
	"netsky/view"
)

// An overviewBody is the first page: the agents, what needs the owner, and what has
// just happened.
type overviewBody struct {
	Cards  []card              // with many agents, only those that need attention
	Roster []roster            // with many agents, the others
	Down   []view.Agent        // as intended
	Ready  []attention.Command // what could be done with the agents' work, though nothing waits for it
	Tasks  []Task
	Mail   []letter
	Unread int
	UpTo   string // the newest unread file
	Logs   []store.Log
}

// A card is one agent on the overview.
type card struct {
	view.Agent
	Task  *store.Task    // its current task
	Tasks int            // assigned to it and not ended
	Says  string         // what it is doing
	Last  *store.Message // its last message, if Says is ""
}

// A roster lists the agents of one state, a line each.
type roster struct {
	State agent.State
	Cards []card
	Chips bool // only their names
}

// manyAgents is the number of agents from which most have a line instead of a card.
const manyAgents = 13

func (p *pages) overviewPage(ctx context.Context, sh *shell, _ *query) (string, error) {
	sh.Title, sh.Section = "Overview", "overview"
	var b overviewBody
	var snap store.Snapshot
	db, err := p.records()
	if err == nil {
		snap, err = db.Snapshot(ctx)
	}
	if err == nil {
		b.Mail, err = p.unread.list(ctx, db, store.MessageFilter{With: agent.Owner, Without: envelope.ControlKinds(), Page: store.Page{Limit: 6}})
		b.Mail = append(p.sent.unrecorded(b.Mail), b.Mail...)
	}
	sh.failed(err)
	var newest []letter
	if b.Unread, newest, err = p.unread.mail(); len(newest) > 0 {
		b.UpTo = newest[0].File
	}
	sh.failed(err)
	b.Tasks, b.Logs = p.tasks.told(ctx, snap.Tasks[:min(len(snap.Tasks), 8)]), snap.Logs[:min(len(snap.Logs), 12)]
	sh.failed(p.crew(ctx, db, sh.Agents, snap, &b))
	p.works.steps(ctx, sh.Health.Waits) // its groups are parts of them
	b.Ready = attention.Ready(p.works.soon(ctx))
	sh.Body = b
	return "overview", nil
}

// crew shows the agents: first those that need attention, then the others in list
// order, so that a card does not move while its agent works.
func (p *pages) crew(ctx context.Context, db Reader, list []view.Agent, snap store.Snapshot, b *overviewBody) error {
	var ill, well []card
	for _, a := range list {
		switch c := cardOf(a, snap); {
		case a.State == agent.Down && !a.Wanted:
			b.Down = append(b.Down, a)
		case isIll(a) || a.State == agent.Waiting:
			ill = append(ill, c)
		default:
			well = append(well, c)
		}
	}
	slices.SortStableFunc(ill, func(x, y card) int { return illRank(x.State) - illRank(y.State) })
	b.Cards = slices.Concat(ill, well)
	if len(b.Cards) < manyAgents {
		return lastWords(ctx, db, b.Cards)
	}
	b.Cards = nil
	for i, group := range [][]card{ill, well} {
		for _, s := range agentStates {
			r := roster{State: s, Chips: i == 0 || s == agent.Idle} // the dialog or failure is shown above
			for _, c := range group {
				if c.State == s || s == agent.Unknown && !slices.Contains(agentStates, c.State) {
					r.Cards = append(r.Cards, c)
				}
			}
			if len(r.Cards) > 0 {
				b.Roster = append(b.Roster, r)
			}
		}
	}
	return nil
}

// agentStates are the states in the order in which they are shown.
var agentStates = []agent.State{
	agent.Dead, agent.CrashLooping, agent.Hung, agent.Blocked, agent.Down, agent.Waiting, agent.Unknown, agent.Starting, agent.Busy, agent.Idle,
}

func illRank(s agent.State) int { return slices.Index(agentStates, s) }

func cardOf(a view.Agent, snap store.Snapshot) card {
	c := card{Agent: a, Says: a.Detail}
	for i, t := range snap.Tasks {
		if t.Assignee != a.ID {
			continue
		}
		if c.Tasks++; c.Task == nil && t.State == store.TaskInProgress {
			c.Task = &snap.Tasks[i]
		}
	}
	if c.Says == "" {
		c.Last = lastOf(a.ID, snap.Messages)
	}
	return c
}

// lastOf returns the agent's newest message with text. The messages are sorted, the
// newest first.
func lastOf(id agent.ID, list []store.Message) *store.Message {
	for i, m := range list {
		if m.From == id && m.Text != "" && !envelope.Kind(m.Kind).Control() {
			return &list[i]
		}
	}
	return nil
}

// lastWords looks further back for the agents' last messages.
func lastWords(ctx context.Context, db Reader, cards []card) error {
	var silent []agent.ID
	for _, c := range cards {
		if c.Says == "" && c.Last == nil {
			silent = append(silent, c.ID)
		}
	}
	if len(silent) == 0 || db == nil {
		return nil
	}
	last, err := db.LastFrom(ctx, silent, envelope.ControlKinds())
	for i, c := range cards {
		if m, ok := last[c.ID]; ok {
			cards[i].Last = &m
		}
	}
	return err
}

// Needs is the answer to GET /api/needs: what needs the owner, without anything that
// agents wrote.
type Needs struct {
	Headline string `json:"headline"`
	Items    []Need `json:"items"`
	Unread   []Need `json:"unread"` // the newest of the owner's unread mail
}

// A Need is one item. Its key does not change while it is the same item.
type Need struct {
	Key   string     `json:"key"`
	Kind  string     `json:"kind"`
	Agent agent.ID   `json:"agent"`
	Title string     `json:"title"`
	Since store.Time `json:"since,omitzero"`

	Code   string `json:"code,omitempty"`
	Digest string `json:"digest,omitempty"`
}

func (p *pages) needs(ctx context.Context, _ *query) (any, error) {
	sh := p.shell(ctx)
	if len(sh.Errors) > 0 {
		return nil, errors.New(sh.Errors[0])
	}
	v := Needs{Headline: sh.Health.Line, Items: []Need{}, Unread: []Need{}}
	for _, n := range sh.Health.Waits {
		one := Need{Key: n.Key, Kind: strings.ToLower(n.Kind.Title()), Title: n.Who() + " " + n.Title, Since: n.Since, Code: n.Code, Digest: n.Digest}
		if len(n.Agents) > 0 {
			one.Agent = n.Agents[0]
		}
		if n.Kind != attention.Unreadable {
			one.Title = n.Who() + " " + n.Phrase()
		}
		v.Items = append(v.Items, one)
	}
	_, newest, err := p.unread.mail()
	for _, l := range newest[:min(len(newest), 20)] {
		v.Unread = append(v.Unread, Need{Key: "mail-" + l.File, Kind: "mail", Agent: l.From, Title: who(l.From) + " wrote to you"})
	}
	return v, err
}
