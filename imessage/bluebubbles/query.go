package bluebubbles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

const (
	// pageRows is how many rows a query asks for. A message is a few kilobytes.
	pageRows = 200
	// maxPages is how many queries one look may take.
	maxPages = 200
)

// A condition is a part of a query in the server's form. It passes the statement on to the
// database; these two are what its own app sends, and others that speak its API know them.
type condition struct {
	Statement string           `json:"statement"`
	Args      map[string]int64 `json:"args"`
}

// A query is the body of message/query.
type query struct {
	Chat  string      `json:"chatGuid,omitempty"`
	With  []string    `json:"with"`
	Where []condition `json:"where,omitempty"`
	Sort  string      `json:"sort"`
	Limit int         `json:"limit"`

	Offset int `json:"offset,omitempty"`
}

var withAll = []string{"chat", "attachment"}

// ask makes one query. The rows come in the order of their dates.
func (a *api) ask(ctx context.Context, q query) ([]row, error) {
	var list []json.RawMessage
	if _, err := a.call(ctx, a.opts.Timeout, jsonRequest("message/query", q), &list); err != nil {
		return nil, err
	}
	return rows(list)
}

// span returns the rows above one number, up to a width above it or without end, by their
// numbers. It reports whether there may be more than it returns.
func (a *api) span(ctx context.Context, above, width int64, with []string) (list []row, more bool, err error) {
	q := query{With: with, Sort: "ASC", Limit: pageRows,
		Where: []condition{{"message.ROWID > :startRowId", map[string]int64{"startRowId": above}}}}
	if width > 0 {
		q.Where = append(q.Where, condition{"message.ROWID <= :endRowId", map[string]int64{"endRowId": above + width}})
	}
	list, err = a.ask(ctx, q)
	switch {
	case errors.Is(err, errTooLarge) && width == 1:
		r, err := a.tooLarge(ctx, q, above)
		return r, false, err
	case errors.Is(err, errTooLarge):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	}
	joined := 0
	for _, r := range list {
		if r.ID <= above || width > 0 && r.ID > above+width {
			return nil, false, fmt.Errorf("the server returns message %d, where those above %d were asked for", r.ID, above)
		}
		joined += r.joined()
	}
	slices.SortFunc(list, func(a, b row) int { return cmp.Compare(a.ID, b.ID) })
	return list, joined >= pageRows, nil
}

// tooLarge returns what stands for the row behind a number, which fits into no response: it must
// not hold back the others. An empty range shows first that the server can answer shortly at all.
func (a *api) tooLarge(ctx context.Context, q query, above int64) ([]row, error) {
	q.Where = []condition{q.Where[0], {q.Where[1].Statement, map[string]int64{"endRowId": above}}}
	if _, err := a.ask(ctx, q); err != nil {
		return nil, err
	}
	return []row{{ID: above + 1, GUID: fmt.Sprintf("number %d", above+1), unreadable: errTooLarge}}, nil
}

// scan visits the rows above a number in the order of their numbers, until visit returns false.
//
// The server sorts by date only, so a page that is full says nothing about which rows it left
// out. Then the numbers are gone through in pieces that are small enough.
func (a *api) scan(ctx context.Context, above int64, visit func([]row) bool) error {
	width, piece := int64(0), int64(pageRows/2)
	for range maxPages {
		list, more, err := a.span(ctx, above, width, withAll)
		switch {
		case err != nil:
			return err
		case more && width == 0:
			width = piece
			continue
		case more && width > 1:
			width = max(width/4, 1)
			piece = width
			continue
		case !visit(list) || width == 0:
			return nil
		}
		above += width
		if len(list) == 0 { // a gap, or the end
			piece = min(8*width, 1<<40)
		}
		if int64(len(list)) < (width+1)/2 {
			width = 0 // perhaps the rest fits into a page
		}
	}
	return fmt.Errorf("more than %d queries to find the messages above number %d", maxPages, above)
}

// newest returns the row with the highest number in the message table: the newest message by
// date, or what was inserted after it. It has the number 0 if there is none.
func (a *api) newest(ctx context.Context) (row, error) {
	q := query{With: []string{}, Sort: "DESC", Limit: 1}
	list, err := a.ask(ctx, q)
	for errors.Is(err, errTooLarge) && q.Offset < 10 { // one before it, then
		q.Offset++
		list, err = a.ask(ctx, q)
	}
	if err != nil {
		return row{}, err
	}
	top, more := row{}, false
	for range maxPages {
		if len(list) > 0 {
			top = list[len(list)-1]
		}
		if list, more, err = a.span(ctx, top.ID, 0, []string{}); err != nil {
			return row{}, err
		}
		if len(list) > 0 {
			continue
		}
		if more { // than fits into a response
			err = a.scan(ctx, top.ID, func(list []row) bool {
				if len(list) > 0 {
					top = list[len(list)-1]
				}
				return true
			})
		}
		return top, err
	}
	return row{}, fmt.Errorf("more than %d queries to find the newest message", maxPages)
}

// who returns what the server says about itself.
func (a *api) who(ctx context.Context) (info, error) {
	var i info
	_, err := a.call(ctx, a.opts.Timeout, request{method: "GET", path: "server/info"}, &i)
	return i, err
}
