package dashboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/cost"
	"netsky/dashboard/access"
	"netsky/dashboard/live"
	"netsky/store"
	"netsky/view"
	"netsky/work/tree"
)

// A paneBody is one terminal on a page.
type paneBody struct {
	Agent view.Agent
	Pane  live.Pane
	Why   string // why it can't be shown
	Above int    // the lines above the screen were requested
	Large bool
	Ended *ending // its program does not run
}

// An ending is what is known of an agent that does not run.
type ending struct {
	Session *store.Session    // its last session, if recorded
	Start   attention.Command // starts it again
}

// endingOf returns how an agent ended, if it has. If the records are unavailable, only
// the command is shown.
func endingOf(a view.Agent, last *store.Session) *ending {
	if a.State != agent.Dead && a.State != agent.CrashLooping && a.State != agent.Down {
		return nil
	}
	return &ending{Session: last, Start: startAgain(a.ID)}
}

// Screen and History are the rows on the screen and those above it. A small terminal is as
// high as its used rows, with the script, too.
func (b paneBody) Screen() []live.Row {
	rows := b.Pane.Rows[min(b.Pane.History, len(b.Pane.Rows)):]
	for n := len(rows); !b.Large && n > max(b.Pane.CursorY+1, 1) && blank(rows[n-1]); n-- {
		rows = rows[:n-1]
	}
	return rows
}

func blank(r live.Row) bool {
	return !slices.ContainsFunc(r, func(run live.Run) bool { return strings.TrimSpace(run.Text) != "" })
}

func (b paneBody) History() []live.Row { return b.Pane.Rows[:min(b.Pane.History, len(b.Pane.Rows))] }

// Columns is the class for the pane's width, rounded up to the next one there is.
func (b paneBody) Columns() string {
	n := (b.Pane.Width + 19) / 20 * 20
	return "c" + strconv.Itoa(min(max(n, 40), 240))
}

func (p *pages) paneBody(ctx context.Context, sh *shell, a view.Agent, above int) paneBody {
	b := paneBody{Agent: a, Above: above}
	if sh.Update && above == 0 { // the terminals come as events
		return b
	}
	var err error
	if b.Pane, err = p.live.Pane(ctx, a.ID, above); err != nil {
		b.Why = strings.TrimPrefix(err.Error(), string(a.ID)+": ")
		b.Pane = live.Pane{Agent: a.ID, Width: 80, CursorY: -1}
	}
	return b
}

// An agentBody is an agent with its terminal, its session and its work.
type agentBody struct {
	Agent    view.Agent
	Host     *host    // that it is on; nil for this one
	Live     bool     // its state is known now
	Before   agent.ID // its neighbours in the list; the last is followed by the first
	After    agent.ID
	Needs    []need
	Actor    store.Actor
	Pane     paneBody
	Session  *store.Session
	Sessions []store.Session // the ones before
	Tasks    []Task
	Queue    []letter // waiting in its inbox or on the way there, or claimed
	Mail     []letter
	Logs     []store.Log
	Branch   string        // of its worktree; "" if it has none
	Today    *cost.Amounts // what it used today
}

func (p *pages) agentPage(ctx context.Context, sh *shell, q *query) (string, error) {
	id, err := agent.ParseAddress(q.path("id"))
	if err != nil || !id.IsAgent() {
		return "", errors.Join(err, fmt.Errorf("%s: %w", access.Quote(q.path("id")), store.ErrNotFound))
	}
	above := q.number("history", 0, maxHistory)
	b, list := agentBody{}, sh.Agents
	if i := slices.IndexFunc(sh.Hosts, func(h host) bool { return h.Name == id.Host() }); i >= 0 {
		b.Host, list = &sh.Hosts[i], sh.Hosts[i].Agents
	} else if id.Host() != "" {
		return "", fmt.Errorf("%s: no host that tells this one how it is: %w", access.Quote(id.Host()), store.ErrNotFound)
	}
	if b.Agent, b.Live = find(list, id); !b.Live {
		b.Agent = view.Agent{ID: id, State: agent.Unknown, Evidence: "status unknown", Inbox: -1}
	}
	b.Before, b.After = neighbours(list, id)
	db, err := p.records()
	if err == nil {
		err = p.agentRecords(ctx, sh, db, id, &b)
	}
	if errors.Is(err, store.ErrNotFound) && !b.Live {
		return "", err
	}
	if !errors.Is(err, store.ErrNotFound) {
		sh.failed(err)
	}
	for _, n := range sh.Health.Waits {
		if slices.Contains(n.Agents, id) {
			b.Needs = append(b.Needs, aloneOf(n, id))
		}
	}
	p.works.steps(ctx, b.Needs)
	if w, err := tree.Load(p.o.Home, id); err == nil && p.o.Work != nil {
		b.Branch = w.Short()
	}
	sh.Title, sh.Section, sh.Sub, sh.Draft.To = string(id), "overview", true, id
	if b.Host == nil {
		b.Today, sh.Watch = p.costs.usedToday(ctx, sh, id), true
		b.Pane = p.paneBody(ctx, sh, b.Agent, above)
		b.Pane.Large, b.Pane.Ended = true, endingOf(b.Agent, b.Session)
	}
	sh.Body = b
	return "agent", nil
}

// neighbours returns the agents before and after one in the list, which is treated as a
// circle.
func neighbours(list []view.Agent, id agent.ID) (before, after agent.ID) {
	n := len(list)
	i := slices.IndexFunc(list, func(a view.Agent) bool { return a.ID == id })
	if n < 2 || i < 0 {
		return "", ""
	}
	return list[(i+n-1)%n].ID, list[(i+1)%n].ID
}

func (p *pages) agentRecords(ctx context.Context, sh *shell, db Reader, id agent.ID, b *agentBody) error {
	var err error
	if b.Actor, err = db.Actor(ctx, id); err != nil && !(b.Live && errors.Is(err, store.ErrNotFound)) {
		return err
	}
	sessions, err := db.Sessions(ctx, store.SessionFilter{Actor: id, Page: store.Page{Limit: 6}})
	if err != nil {
		return err
	}
	sh.asLive(sessions.Items)
	if b.Sessions = sessions.Items; len(b.Sessions) > 0 {
		b.Session, b.Sessions = &b.Sessions[0], b.Sessions[1:]
	}
	for _, state := range []string{store.TaskInProgress, store.TaskBlocked, store.TaskOpen} {
		l, err := db.Tasks(ctx, store.TaskFilter{Assignee: id, State: state, Page: store.Page{Limit: 10}})
		if err != nil {
			return err
		}
		b.Tasks = append(b.Tasks, p.tasks.told(ctx, l.Items)...)
	}
	for _, state := range []store.DeliveryState{store.Claimed, store.Arrived, store.SentOn, store.Queued} {
		l, err := inState(ctx, db, store.DeliveryFilter{Target: id, State: state, Page: store.Page{Limit: 5}})
		if err != nil {
			return err
		}
		b.Queue = append(b.Queue, l...)
	}
	if b.Mail, err = p.unread.list(ctx, db, store.MessageFilter{With: id, Without: envelope.ControlKinds(), Page: store.Page{Limit: 8}}); err != nil {
		return err
	}
	logs, err := db.Logs(ctx, store.LogFilter{Actor: id, Page: store.Page{Limit: 10}})
	b.Logs = logs.Items
	return err
}

// inState lists messages by delivery state.
func inState(ctx context.Context, db Reader, f store.DeliveryFilter) ([]letter, error) {
	l, err := db.Deliveries(ctx, f)
	if err != nil {
		return nil, err
	}
	sent := make([]store.Sent, len(l.Items))
	for i, d := range l.Items {
		sent[i] = store.Sent{ID: d.Message, From: d.From}
	}
	found, err := db.Messages(ctx, store.MessageFilter{Of: sent, Page: store.Page{Limit: 1000}})
	if err != nil {
		return nil, err
	}
	of := make(map[store.Sent]store.Message, len(found.Items))
	for _, m := range found.Items {
		of[store.Sent{ID: m.ID, From: m.From}] = m
	}
	all := make([]letter, 0, len(l.Items))
	for i, d := range l.Items {
		if m, ok := of[sent[i]]; ok {
			all = append(all, letter{Message: m, State: d.State, Why: d.Reason})
		}
	}
	return all, nil
}

// maxPanes is the most terminals on one page.
const maxPanes = 12

// A panesBody is a page of several terminals, filtered.
type panesBody struct {
	Panes  []paneBody
	Text   string // text that their names contain
	State  string
	States []string // states to choose from
	First  int      // the first one shown, from 1
	Last   int
	Of     int // how many match
	Any    bool
	Beside string // how many are side by side; "" is as many as fit
	Next   string // the next page's address; "" at the end
	Prev   string
}

func (p *pages) panesPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section, sh.Watch = "Panes", "panes", true
	b := panesBody{Text: q.text("name"), State: q.text("state")}
	b.Beside = q.word("columns", "1", "2", "3", "4")
	from := q.number("from", 0, 1<<20)
	q.known = append(q.known, "agent")
	chosen := map[agent.ID]bool{}
	for _, text := range q.values["agent"] {
		id, err := agent.Parse(text)
		if err != nil || !id.IsAgent() {
			return "", badf("agent: %s is not an agent", access.Quote(text))
		}
		chosen[id] = true
	}
	b.Any = len(chosen) > 0 || b.Text != "" || b.State != ""
	var fit []view.Agent
	for _, s := range agentStates {
		if slices.ContainsFunc(sh.Agents, func(a view.Agent) bool { return a.State == s }) {
			b.States = append(b.States, string(s))
		}
	}
	for _, a := range sh.Agents {
		switch {
		case len(chosen) > 0 && !chosen[a.ID], b.State != "" && string(a.State) != b.State, !named(a.ID, b.Text), !b.Any && a.State == agent.Down:
		default:
			fit = append(fit, a)
		}
	}
	from = min(from, max(len(fit)-1, 0)) / maxPanes * maxPanes
	to := min(from+maxPanes, len(fit))
	b.Of, b.First, b.Last = len(fit), from+1, to
	for _, a := range fit[from:to] {
		one := p.paneBody(ctx, sh, a, 0)
		one.Ended = endingOf(a, p.lastSession(ctx, a.ID))
		b.Panes = append(b.Panes, one)
	}
	if to < len(fit) {
		b.Next = q.with("/panes", "from", strconv.Itoa(to))
	}
	if from > 0 {
		b.Prev = q.with("/panes", "from", strings.TrimPrefix(strconv.Itoa(from-maxPanes), "0"))
	}
	sh.Body = b
	return "panes", nil
}

// Besides are the choices of how many are side by side.
func (panesBody) Besides() []string { return []string{"1", "2", "3", "4"} }

// named reports whether an agent matches a name filter: one of its words is the agent's
// number, or a part of its name that begins with a letter.
func named(id agent.ID, filter string) bool {
	words := strings.FieldsFunc(filter, func(r rune) bool { return r == ' ' || r == ',' })
	return len(words) == 0 || slices.ContainsFunc(words, func(w string) bool {
		if strings.Trim(w, "0123456789") == "" {
			return id.N() == w
		}
		return strings.Contains(string(id), strings.ToLower(w))
	})
}

// lastSession returns an agent's last session, or nil if none is recorded.
func (p *pages) lastSession(ctx context.Context, id agent.ID) *store.Session {
	db, err := p.records()
	if err != nil {
		return nil
	}
	l, err := db.Sessions(ctx, store.SessionFilter{Actor: id, Page: store.Page{Limit: 1}})
	if err != nil || len(l.Items) == 0 {
		return nil
	}
	return &l.Items[0]
}

// unixLines converts the line ends of a form's text.
func unixLines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
