package chatdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"netsky/phone/chat"
)

// A schema is which columns the database has: by table, then by column.
type schema map[string]map[string]bool

// needed are the columns without which nothing can be read.
var needed = []struct{ table, columns string }{
	{"message", "guid text date is_from_me handle_id service"},
	{"handle", "id"},
	{"chat", "guid style"},
	{"chat_message_join", "chat_id message_id"},
}

// optional are the further columns that are read where they exist.
var optional = []struct{ table, columns string }{
	{"message", "attributedBody error cache_has_attachments item_type associated_message_guid associated_message_type " +
		"associated_message_emoji balloon_bundle_id message_summary_info thread_originator_guid reply_to_guid date_retracted schedule_type schedule_state subject is_auto_reply"},
	{"chat", "chat_identifier service_name"},
	{"attachment", "guid filename mime_type transfer_name transfer_state total_bytes hide_attachment"},
	{"message_attachment_join", "message_id attachment_id"},
	{"_SqliteDatabaseProperties", "key value"},
}

func readSchema(ctx context.Context, c *sql.Conn, path string) (schema, error) {
	s := make(schema)
	for _, t := range slices.Concat(needed, optional) {
		if s[t.table] != nil {
			continue
		}
		s[t.table] = make(map[string]bool)
		rows, err := c.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", t.table)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var name string
			if err = rows.Scan(&name); err != nil {
				break
			}
			s[t.table][name] = true
		}
		rows.Close()
		if err == nil {
			err = rows.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	var missing []string
	for _, t := range needed {
		missing = append(missing, s.missing(t.table, t.columns)...)
	}
	if len(missing) > 0 {
		return nil, &chat.Degraded{
			Reason: fmt.Sprintf("%s: not a database of Messages that netsky can read: it has no %s", path, strings.Join(missing, ", ")),
			Next:   "update netsky; if there is no newer one, report which macOS this is",
		}
	}
	return s, nil
}

func (s schema) missing(table, columns string) (list []string) {
	for c := range strings.FieldsSeq(columns) {
		if !s[table][c] {
			list = append(list, table+"."+c)
		}
	}
	return list
}

// has reports whether a table has all these columns.
func (s schema) has(table, columns string) bool { return len(s.missing(table, columns)) == 0 }

// column returns an expression for a column, which is otherwise if there is none.
func (s schema) column(table, name, otherwise string) string {
	if s[table][name] {
		return table + "." + name
	}
	return otherwise
}

// lacking returns the optional columns that do not exist.
func (s schema) lacking() (list []string) {
	for _, t := range optional {
		list = append(list, s.missing(t.table, t.columns)...)
	}
	return list
}

// profile guesses which macOS made the tables, by the columns that each release added.
func (s schema) profile() string {
	for _, p := range []struct{ column, name string }{
		{"is_time_sensitive", "macOS 26 or later"},
		{"schedule_type", "macOS 15"},
		{"is_kt_verified", "macOS 14"},
		{"date_edited", "macOS 13"},
		{"was_delivered_quietly", "macOS 12"},
	} {
		if s["message"][p.column] {
			return p.name
		}
	}
	return "macOS 11 or earlier"
}
