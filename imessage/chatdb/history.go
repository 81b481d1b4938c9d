package chatdb

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"netsky/phone/chat"
)

// History returns the last messages of a chat, oldest first, at most limit and at most
// chat.MaxBatch. They are as they stand now: edited ones with their last text, unsent ones are
// left out, as are reactions and events.
func (d *DB) History(ctx context.Context, c chat.Chat, limit int) (list []chat.Message, err error) {
	limit = min(limit, chat.MaxBatch)
	err = d.view(ctx, func(v *view) error {
		list, err = v.history(c.Key, limit)
		return err
	})
	return list, err
}

func (v *view) history(key string, limit int) ([]chat.Message, error) {
	var chats []any
	var all []int64
	err := v.all("SELECT ROWID FROM chat", nil, func(rows *sql.Rows) error {
		var id int64
		defer func() { all = append(all, id) }()
		return rows.Scan(&id)
	})
	if err != nil {
		return nil, err
	}
	for _, id := range all {
		c, ok, err := v.chat(id)
		if err != nil {
			return nil, err
		}
		if ok && c.Key == key && len(chats) < 100 {
			chats = append(chats, id)
		}
	}
	if len(chats) == 0 || limit <= 0 {
		return nil, nil
	}
	query := `SELECT DISTINCT message.ROWID, CAST(coalesce(message.date, 0) AS INTEGER) AS at FROM chat_message_join AS j
		JOIN message ON message.ROWID = j.message_id WHERE j.chat_id IN (?` + strings.Repeat(", ?", len(chats)-1) + `)
		AND coalesce(` + v.schema.column("message", "item_type", "0") + `, 0) = 0
		AND coalesce(` + v.schema.column("message", "associated_message_type", "0") + `, 0) IN (0, 2, 3)
		ORDER BY at DESC, message.ROWID DESC LIMIT ?`
	var ids []int64
	err = v.all(query, append(chats, limit), func(rows *sql.Rows) error {
		var id, at int64
		defer func() { ids = append(ids, id) }()
		return rows.Scan(&id, &at)
	})
	if err != nil {
		return nil, err
	}
	var list []chat.Message
	read := 0
	for _, id := range ids {
		r, ok, err := v.row(id)
		if err != nil {
			return nil, err
		}
		if !ok || read > maxBodies {
			continue
		}
		read += len(r.text) + len(r.body)
		m, err := v.message(r)
		if err != nil {
			return nil, err
		}
		if m.Kind == chat.Text && !r.planned {
			list = append(list, m)
		}
	}
	slices.Reverse(list)
	return list, nil
}
