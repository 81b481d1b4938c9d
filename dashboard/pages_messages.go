package dashboard

import (
	"context"
	"strings"

	"netsky/store"
)

var deliveryStates = []store.DeliveryState{
	store.Queued, store.Claimed, store.Delivered, store.Answered, store.Failed, store.Poisoned, store.Cancelled, store.Expired,
}

func (p *pages) messagesPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Messages", "messages"
	f := q.messages()
	f.Limit = onPageOr(f.Limit)
	var words []string
	for _, s := range deliveryStates {
		words = append(words, string(s))
	}
	state := store.DeliveryState(q.word("state", words...))
	if err := q.done(); err != nil {
		return "", err
	}
	db, err := p.records()
	if err != nil {
		return "", err
	}
	list, cursor, err := p.messageList(ctx, db, f, state)
	sh.Body = q.list("/messages", list, len(list), cursor,
		field{Name: "with", Label: "With", Options: sh.names(true)},
		field{Name: "from", Label: "From", Options: sh.names(true)},
		field{Name: "to", Label: "To", Options: sh.names(true)},
		field{Name: "state", Label: "Became", Options: words},
		field{Name: "text", Label: "Text contains"})
	return "messages", err
}

func (p *pages) messageList(ctx context.Context, db Reader, f store.MessageFilter, state store.DeliveryState) ([]letter, string, error) {
	if state != "" {
		return byState(ctx, db, f, state)
	}
	l, err := db.Messages(ctx, f)
	if err != nil {
		return nil, "", err
	}
	list, err := letters(ctx, db, l.Items)
	return list, l.Cursor, err
}

// byState looks through the deliveries in a state for messages that the filter
// wants, a bounded number of them for one page; the cursor goes on after those.
func byState(ctx context.Context, db Reader, f store.MessageFilter, state store.DeliveryState) (list []letter, cursor string, err error) {
	const passes = 10
	d := store.DeliveryFilter{From: f.From, Target: f.To, State: state, Page: f.Page}
	for range passes {
		l, err := db.Deliveries(ctx, d)
		if err != nil {
			return nil, "", err
		}
		found, err := messagesOf(ctx, db, l.Items)
		if err != nil {
			return nil, "", err
		}
		for _, m := range found {
			if wants(f, m.Message) {
				list = append(list, m)
			}
		}
		if d.Cursor = l.Cursor; d.Cursor == "" || len(list) >= f.Limit {
			break
		}
	}
	return list, d.Cursor, nil
}

// wants reports whether the rest of the filter wants the message, as the
// records read it.
func wants(f store.MessageFilter, m store.Message) bool {
	return (f.ID == "" || f.ID == m.ID) && (f.With == "" || f.With == m.From || f.With == m.To) &&
		(f.Kind == "" || f.Kind == m.Kind) && (f.Thread == "" || f.Thread == m.Thread) &&
		(f.InReplyTo == "" || f.InReplyTo == m.InReplyTo) && (f.Since == 0 || m.Time >= f.Since) &&
		strings.Contains(m.Text, f.Text)
}
