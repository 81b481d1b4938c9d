package dashboard

import "context"

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
	sh.Body = q.list("/messages", list, len(list), l.Cursor,
		field{Name: "with", Label: "With", Options: sh.names(true)},
		field{Name: "from", Label: "From", Options: sh.names(true)},
		field{Name: "to", Label: "To", Options: sh.names(true)},
		field{Name: "state", Label: "State", Options: deliveryStates},
		field{Name: "text", Label: "Text contains"})
	return "messages", err
}
