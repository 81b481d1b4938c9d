package chatdb

import (
	"encoding/json"
	"fmt"
	"slices"
)

// A cursor is how far a reader has come. It is JSON: the caller stores it and does not look in.
type cursor struct {
	Path  string  `json:"path"`
	ID    string  `json:"id,omitempty"`   // of the database, if it has one
	Row   int64   `json:"row"`            // the last row that was passed
	GUID  string  `json:"guid,omitempty"` // of that row
	Date  int64   `json:"date,omitempty"` // likewise
	Aside []aside `json:"aside,omitempty"`
}

// An aside is a row that was passed though it is not returned yet.
type aside struct {
	Row   int64 `json:"row"`
	Since int64 `json:"since"` // when it was first seen, in Unix milliseconds
}

const maxCursor = 64 << 10

func parseCursor(s string) (c cursor, err error) {
	if len(s) > maxCursor {
		return c, fmt.Errorf("cursor of %d bytes", len(s))
	}
	if err := json.Unmarshal([]byte(s), &c); err != nil {
		return c, fmt.Errorf("cursor: %w", err)
	}
	if c.Path == "" || c.Row < 0 || len(c.Aside) > maxAside {
		return c, fmt.Errorf("cursor: not one of chat.db's")
	}
	return c, nil
}

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers
	}
	return string(b)
}

func (c cursor) clone() cursor {
	c.Aside = slices.Clone(c.Aside)
	return c
}

// end returns the cursor of the database's last row.
func (v *view) end() (c cursor, err error) {
	c.Path = v.o.Path
	if c.ID, err = v.identity(); err != nil {
		return c, err
	}
	_, err = v.one("SELECT ROWID, "+guidColumn+", "+number("date")+" FROM message ORDER BY ROWID DESC LIMIT 1", nil, &c.Row, &c.GUID, &c.Date)
	return c, err
}

// identity returns what the database calls itself, or "".
func (v *view) identity() (id string, err error) {
	if !v.schema.has("_SqliteDatabaseProperties", "key value") {
		return "", nil
	}
	_, err = v.one("SELECT coalesce(value, '') FROM _SqliteDatabaseProperties WHERE key = '_UniqueIdentifier' LIMIT 1", nil, &id)
	return id, err
}

// foreign returns why a cursor does not belong to this database, or "".
func (v *view) foreign(c cursor) (why string, err error) {
	if c.Path != v.o.Path {
		return fmt.Sprintf("the cursor is of %s", c.Path), nil
	}
	id, err := v.identity()
	if err != nil {
		return "", err
	}
	if id != "" && c.ID != "" && id != c.ID {
		return "its identifier is another", nil
	}
	var guid string
	var date int64
	ok, err := v.one("SELECT "+guidColumn+", "+number("date")+" FROM message WHERE ROWID = ?", []any{c.Row}, &guid, &date)
	if err != nil {
		return "", err
	}
	if ok && guid != c.GUID && date != c.Date && (id == "" || c.ID == "") {
		return fmt.Sprintf("its row %d is another message", c.Row), nil
	}
	if ok || c.Row == 0 {
		return "", nil
	}
	last, err := v.last()
	if err != nil {
		return "", err
	}
	if last < c.Row {
		return fmt.Sprintf("it ends at row %d, before row %d", last, c.Row), nil
	}
	return "", nil
}

// last returns the highest ROWID that was ever given.
func (v *view) last() (n int64, err error) {
	if _, err := v.one("SELECT coalesce(max(ROWID), 0) FROM message", nil, &n); err != nil {
		return 0, err
	}
	var table, given int64
	if _, err := v.one("SELECT count(*) FROM sqlite_master WHERE name = 'sqlite_sequence'", nil, &table); err != nil || table == 0 {
		return n, err
	}
	_, err = v.one("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'message'", nil, &given)
	return max(n, given), err
}
