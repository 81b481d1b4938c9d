package dashboard

import (
	"context"
	"errors"
	"slices"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/store"
	"netsky/view"
)

// A messageBody is a message, what led to it and what became of it.
type messageBody struct {
	Message    store.Message
	Recorded   bool // else it was sent a moment ago
	Poisoned   bool
	Unread     bool // by the owner
	Deliveries []store.Delivery
	Steps      []stage // of the first delivery
	Question   *store.Message
	Led        []letter            // replies that are not in the story
	Tasks      []Task              // that it asks for, gives, or answers
	Sessions   map[agent.ID]string // in which each recipient took it
	Others     []store.Message     // from other senders with the same id
	Story      story
}

// A stage is one of the three stages of a message's delivery.
type stage struct {
	Word  string
	Done  bool
	Past  bool // the next stage is done as well
	At    store.Time
	After string // how long after the stage before
}

func (p *pages) messagePage(ctx context.Context, sh *shell, q *query) (string, error) {
	id := q.path("id")
	sh.Section, sh.Sub = "messages", true
	b := messageBody{}
	db, err := p.records()
	if err == nil {
		b.Message, err = db.Message(ctx, id)
	}
	if b.Recorded = err == nil; err != nil {
		m, ok := p.sent.find(id)
		if !ok {
			return "", err
		}
		if !errors.Is(err, store.ErrNotFound) {
			sh.failed(err)
		}
		b.Message, b.Steps = m, stagesOf(store.Delivery{State: store.Queued, Queued: m.Time}, false)
	} else if err := p.messageRecords(ctx, db, &b); err != nil {
		return "", err
	}
	sh.Title = "Message from " + who(b.Message.From)
	if b.Message.To != "" {
		sh.Title += " to " + who(b.Message.To)
	}
	if to := b.Message.To; to.IsAgent() {
		sh.Draft.To = to
	} else if b.Message.From.IsAgent() {
		sh.Draft.To = b.Message.From
		if asked := b.Message.Kind == string(envelope.KindApproval) && bus.ByCode(b.Message.Via); b.Recorded && !asked { // netsky's own has an answer of its own
			sh.Draft.InReplyTo = b.Message.ID
		}
		one := []letter{{Message: b.Message}}
		p.unread.mark(one)
		b.Unread = one[0].Unread
	}
	sh.Body = b
	return "message", nil
}

func (p *pages) messageRecords(ctx context.Context, db Reader, b *messageBody) error {
	m := b.Message
	d, err := db.Deliveries(ctx, store.DeliveryFilter{Message: m.ID, From: m.From})
	if err != nil {
		return err
	}
	if b.Deliveries = d.Items; len(d.Items) > 0 {
		b.Steps, b.Poisoned = stagesOf(d.Items[0], b.Message.InReplyTo != ""), d.Items[0].State == store.Poisoned
	}
	if m.InReplyTo != "" {
		switch question, err := db.Message(ctx, m.InReplyTo); {
		case err == nil:
			b.Question = &question
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	led, err := p.unread.list(ctx, db, store.MessageFilter{InReplyTo: m.ID, Page: store.Page{Limit: 20}})
	if err != nil {
		return err
	}
	slices.Reverse(led)
	tasks, err := db.Tasks(ctx, store.TaskFilter{Message: m.ID})
	if err != nil {
		return err
	}
	if b.Tasks, err = p.tasks.of(ctx, db, m, tasks.Items); err != nil {
		return err
	}
	b.Sessions = make(map[agent.ID]string)
	for _, d := range b.Deliveries {
		if b.Sessions[d.Target], err = sessionAt(ctx, db, d); err != nil {
			return err
		}
	}
	same, err := db.Messages(ctx, store.MessageFilter{ID: m.ID})
	if err != nil {
		return err
	}
	b.Others = slices.DeleteFunc(same.Items, func(o store.Message) bool { return o.From == m.From })
	t, err := db.Timeline(ctx, m.ID)
	b.Story = storyOf(t, m.ID)
	b.Led = slices.DeleteFunc(led, func(l letter) bool { return b.Story.Has(l.ID) })
	if b.Question != nil && b.Story.Has(b.Question.ID) {
		b.Question = nil
	}
	return err
}

var stageWords = map[store.DeliveryState]string{store.SentOn: "on its way", store.Arrived: "in the inbox there"}

// stagesOf returns queued, delivered and answered, or the state in which the delivery
// ended instead. A reply to the owner needs no answer.
func stagesOf(d store.Delivery, answer bool) []stage {
	list := []stage{
		{Word: "queued", Done: d.Queued != 0 || d.State != "", At: d.Queued},
		{Word: "delivered", Done: d.Delivered != 0 || d.State == store.Answered, At: d.Delivered, After: elapsed(d.Queued, d.Delivered)},
		{Word: "answered", Done: d.State == store.Answered, At: d.Answered, After: elapsed(d.Delivered, d.Answered)},
	}
	switch d.State {
	case store.Failed, store.Poisoned, store.Cancelled, store.Expired:
		list[0].Past = true
		return []stage{list[0], {Word: string(d.State), Done: true, At: d.Ended, After: elapsed(d.Queued, d.Ended)}}
	case store.SentOn, store.Arrived:
		list[1] = stage{Word: stageWords[d.State], Done: true, At: d.Changed, After: elapsed(d.Queued, d.Changed)}
	case store.Claimed:
		list[1] = stage{Word: "in progress", Done: true, At: d.Claimed, After: elapsed(d.Queued, d.Claimed)}
	}
	for i := range list[:2] {
		list[i].Past = list[i+1].Done
	}
	if answer && d.Target == agent.Owner && !list[2].Done {
		return list[:2]
	}
	return list
}

// A sessionBody is one start of an agent, to its end.
type sessionBody struct {
	Session store.Session
	Live    bool // the agent's last session, not ended according to the records
	Running bool // and running now
	Agent   view.Agent
	Tasks   []Task // that it may have worked on
	Story   story
}

// notePage shows a note. What it is about may be unrecorded, or nothing.
func (p *pages) notePage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Section, sh.Sub = "find", true
	db, err := p.records()
	if err != nil {
		return "", err
	}
	n, err := db.Note(ctx, q.path("id"))
	if err != nil {
		return "", err
	}
	sh.Title, sh.Body = "Note", n
	if n.Author != "" {
		sh.Title += " by " + who(agent.ID(n.Author))
	}
	return "note", nil
}

func (p *pages) sessionPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Section, sh.Sub = "sessions", true
	db, err := p.records()
	if err != nil {
		return "", err
	}
	var b sessionBody
	if b.Session, err = db.Session(ctx, q.path("id")); err != nil {
		return "", err
	}
	if a, ok := sh.agent(b.Session.Actor); ok && a.Start == b.Session.Start && b.Session.Ended == 0 {
		b.Agent, b.Live, b.Running = a, true, a.State != agent.Dead && a.State != agent.CrashLooping && a.State != agent.Down
	}
	tasks, err := ofAgent(ctx, db, b.Session)
	if err != nil {
		return "", err
	}
	b.Tasks = p.tasks.told(ctx, tasks)
	t, err := db.Timeline(ctx, b.Session.Start)
	b.Story = storyOf(t, "")
	sh.Title, sh.Body = "Session of "+who(b.Session.Actor), b
	return "session", err
}

func (p *pages) updatesPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Updates of netsky", "updates"
	f := q.page()
	if f.Limit == 0 {
		f.Limit = 4 * onPage // a run has about ten steps
	}
	l, err := readList(ctx, p.records, q, f, Reader.Updates)
	sh.Body = q.list("/updates", updateRuns(l.Items), len(l.Items), l.Cursor)
	return "updates", err
}
