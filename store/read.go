package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netsky/agent"
)

// A List is one page of records. Cursor, if not "", is for the filter of the next page.
type List[T any] struct {
	Items  []T    `json:"items"`
	Cursor string `json:"cursor,omitempty"`
}

// ErrCursor reports a cursor that no list has returned.
var ErrCursor = errors.New("cursor")

func badCursor(s string) error { return fmt.Errorf("%w: %q is not valid", ErrCursor, s) }

// A Sent identifies a message: an ID is unique per sender.
type Sent struct {
	ID   string
	From agent.ID
}

// of adds the condition that a record is about one of the messages.
func (w *where) of(id string, list []Sent) {
	if list == nil {
		return
	}
	pairs := make([][2]string, len(list))
	for i, s := range list {
		pairs[i] = [2]string{s.ID, string(s.From)}
	}
	text, err := json.Marshal(pairs)
	if err != nil {
		panic(err) // strings always encode as JSON
	}
	w.add("("+id+", sender) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))", string(text))
}

// A Page selects a part of a list.
type Page struct {
	Cursor string // from the previous page; "" is the first page
	Limit  int    // 0 is 100; at most 1000
}

func (p Page) limit() int {
	if p.Limit <= 0 {
		return 100
	}
	return min(p.Limit, 1000)
}

// A Querier is a pool or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Collect returns what scan makes of each row that a query finds; [] in JSON, not null, if it finds none.
func Collect[T any](ctx context.Context, q Querier, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, v)
	}
	return found, rows.Err()
}

// first returns the one record a query finds, or ErrNotFound with its name.
func first[T any](ctx context.Context, q Querier, scan func(*sql.Rows) (T, error), what, query string, args ...any) (T, error) {
	found, err := Collect(ctx, q, scan, query, args...)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}

// where collects a filter's conditions; each is a constant.
type where struct {
	conds  []string
	args   []any
	either []string // columns of which one must have this value
	value  any
}

func (w *where) add(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
}

// is adds the condition if the filter has a value for it.
func (w *where) is(cond, value string) {
	if value != "" {
		w.add(cond, value)
	}
}

// narrow turns either into a condition, for the records that come first. Each column is
// read by its own index, in order: given both at once SQLite would fetch and sort all that
// match.
func (w *where) narrow(table, order string) {
	if w.either == nil {
		return
	}
	var parts []string
	var args []any
	for _, column := range w.either {
		one := where{conds: slices.Concat([]string{column + " = ?"}, w.conds), args: slices.Concat([]any{w.value}, w.args)}
		parts = append(parts, "SELECT seq FROM (SELECT seq FROM "+table+one.String()+order+")")
		args = append(args, one.args...)
	}
	w.conds, w.args = []string{"seq IN (" + strings.Join(parts, " UNION ") + ")"}, args
}

func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

// paged runs a query in descending order of (time, seq), and derives the cursor from the
// last record.
func paged[T any](ctx context.Context, q Querier, w *where, p Page, scan func(*sql.Rows) (T, error), columns, table, time string, place func(T) (Time, int64)) (List[T], error) {
	if p.Cursor != "" {
		at, seq, err := parseCursor(p.Cursor)
		if err != nil {
			return List[T]{}, err
		}
		w.add("("+time+", seq) < (?, ?)", at, seq)
	}
	n := p.limit()
	order := " ORDER BY " + time + " DESC, seq DESC LIMIT " + strconv.Itoa(n+1)
	w.narrow(table, order)
	items, err := Collect(ctx, q, scan, "SELECT "+columns+" FROM "+table+w.String()+order, w.args...)
	if err != nil {
		return List[T]{}, err
	}
	l := List[T]{Items: items}
	if len(items) > n {
		l.Items = items[:n]
		at, seq := place(l.Items[n-1])
		l.Cursor = strconv.FormatInt(int64(at), 10) + "." + strconv.FormatInt(seq, 10)
	}
	return l, nil
}

func parseCursor(s string) (at, seq int64, err error) {
	left, right, ok := strings.Cut(s, ".")
	if ok {
		at, err = strconv.ParseInt(left, 10, 64)
	}
	if ok && err == nil {
		seq, err = strconv.ParseInt(right, 10, 64)
	}
	if !ok || err != nil {
		return 0, 0, badCursor(s)
	}
	return at, seq, nil
}

// toJSON returns a column's text for a value that has no table of its own; "" for an empty
// one.
func toJSON(v any) (string, error) {
	data, err := json.Marshal(v)
	if s := string(data); err != nil || s == "null" || s == "[]" || s == "{}" {
		return "", err
	}
	return string(data), nil
}

// fromJSON is a scanner for a column that holds JSON.
func fromJSON[T any](s string, to *T) error {
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), to)
}
