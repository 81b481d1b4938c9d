package dashboard

import (
	"context"

	"netsky/store"
)

func (p *pages) messagesPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Messages", "messages"
	f := q.messages()
	f.Limit = onPageOr(f.Limit)
	l, err := readList(ctx, p, q, f, Reader.Messages)
	if err != nil {
		return "", err
	}
	db, err := p.records()
	if err != nil {
		return "", err
	}
	list, err := p.letters(ctx, db, l.Items)
	b := q.list("/messages", nil, len(list), l.Cursor,
		field{Name: "with", Label: "With", Options: sh.names(true)},
		field{Name: "from", Label: "From", Options: sh.names(true)},
		field{Name: "to", Label: "To", Options: sh.names(true)},
		field{Name: "state", Label: "State", Options: deliveryStates},
		field{Name: "text", Label: "Text contains"})
	if err == nil {
		count := func(state string) (int, bool, error) {
			l, err := db.Deliveries(ctx, store.DeliveryFilter{State: store.DeliveryState(state), Page: store.Page{Limit: countTo}})
			return len(l.Items), l.Cursor != "", err
		}
		words := func(list ...store.DeliveryState) (words []string) {
			for _, s := range list {
				words = append(words, string(s))
			}
			return words
		}
		err = b.group(q, "state", []grouper{
			{"Not delivered", words(store.Failed, store.Poisoned, store.Expired), count, "", ""},
			{"Waiting", words(store.Queued, store.Claimed), count, "", ""},
			{"Delivered and answered", words(store.Delivered, store.Answered, store.Cancelled), nil, "", ""},
		}, anys(list), func(l any) string { return string(l.(letter).State) })
	}
	sh.Body = b
	return "messages", err
}
