package chatdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"netsky/phone/chat"
)

// Facts reports what can be read of the database. It names no account and no chat.
func (d *DB) Facts(ctx context.Context) []chat.Fact {
	var facts []chat.Fact
	err := d.use(ctx, func(c *conn) error {
		facts = append(facts, chat.Fact{Name: "chat.db", State: chat.OK, Detail: d.o.Path + " can be read"}, c.log())
		return nil
	})
	if err == nil {
		err = d.view(ctx, func(v *view) error {
			facts = append(facts, v.columns())
			more, err := v.content()
			facts = append(facts, more...)
			return err
		})
	}
	if err == nil {
		return facts
	}
	bad := chat.Fact{Name: "chat.db", State: chat.Bad, Detail: err.Error()}
	var degraded *chat.Degraded
	if errors.As(err, &degraded) {
		bad.Next = degraded.Next
	}
	if errors.Is(err, fs.ErrNotExist) {
		bad.State = chat.Unchecked
	}
	return append(facts, bad)
}

// Unknown returns the handles that no chat has seen.
func (d *DB) Unknown(ctx context.Context, handles []string) (list []string, err error) {
	list = slices.Clone(handles)
	err = d.view(ctx, func(v *view) error {
		return v.all("SELECT coalesce(id, '') FROM handle", nil, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			list = slices.DeleteFunc(list, func(h string) bool { return h == chat.Handle(id) })
			return err
		})
	})
	return list, err
}

// log reports on the write-ahead log.
func (c *conn) log() chat.Fact {
	f := chat.Fact{Name: "chat.db's log", State: chat.OK, Detail: "chat.db-wal is visible, so new messages are"}
	switch {
	case c.immutable:
		f.State = chat.Bad
		f.Detail = "chat.db could only be opened as immutable; new messages are seen when Messages writes them into the file itself"
		f.Next = "open Messages, and make sure that netsky may write in the directory of chat.db"
	case !c.files.wal.there:
		f.State = chat.Unchecked
		f.Detail = "there is no chat.db-wal; Messages has one while it runs"
		f.Next = "open Messages, and run this again"
	}
	return f
}

func (v *view) columns() chat.Fact {
	f := chat.Fact{Name: "chat.db's tables", State: chat.OK, Detail: "as of " + v.schema.profile()}
	if lacking := v.schema.lacking(); len(lacking) > 0 {
		f.Detail += "; not there, and done without: " + strings.Join(lacking, ", ")
	}
	return f
}

func (v *view) content() ([]chat.Fact, error) {
	var chats, date int64
	if _, err := v.one("SELECT count(*) FROM chat", nil, &chats); err != nil {
		return nil, err
	}
	ok, err := v.one("SELECT CAST(coalesce(date, 0) AS INTEGER) FROM message ORDER BY ROWID DESC LIMIT 1", nil, &date)
	if err != nil {
		return nil, err
	}
	f := chat.Fact{Name: "messages", State: chat.OK, Detail: fmt.Sprintf("%d chats", chats)}
	if at := timeOf(date); ok && !at.IsZero() {
		f.Detail += fmt.Sprintf("; the newest message is of %v ago", v.o.Now().Sub(at).Round(time.Second))
	} else {
		f.Detail += "; no message"
	}
	return []chat.Fact{f}, nil
}
