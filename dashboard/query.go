package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsky/agent"
	"netsky/dashboard/access"
	"netsky/store"
)

// A query reads the parameters of a request. It remembers the first error and which
// parameters were read, so that a misspelt one is refused instead of ignored.
type query struct {
	path   func(string) string
	values url.Values
	known  []string
	err    error
}

func newQuery(r *http.Request) *query {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		err = badf("the query is malformed")
	}
	return &query{path: r.PathValue, values: v, err: err}
}

// done returns the first error of the query.
func (q *query) done() error {
	for name := range q.values {
		if q.err == nil && !slices.Contains(q.known, name) {
			q.err = badf("%s: unknown parameter; known are: %s", access.Quote(name), strings.Join(q.known, ", "))
		}
	}
	return q.err
}

func (q *query) wrong(name, what string) {
	if q.err == nil {
		q.err = badf("%s=%s: %s", name, access.Quote(q.values.Get(name)), what)
	}
}

func (q *query) text(name string) string {
	q.known = append(q.known, name)
	if len(q.values[name]) > 1 {
		q.wrong(name, "given more than once")
	}
	return q.values.Get(name)
}

func (q *query) number(name string, least, most int) int {
	s := q.text(name)
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		q.wrong(name, "not a number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
		return 0
	}
	return n
}

func (q *query) agent(name string) agent.ID {
	s := q.text(name)
	if s == "" {
		return ""
	}
	id, err := agent.ParseAddress(s)
	if err != nil {
		q.wrong(name, "not an address")
	}
	return id
}

func (q *query) word(name string, words ...string) string {
	s := q.text(name)
	if s != "" && !slices.Contains(words, s) {
		q.wrong(name, "not one of "+strings.Join(words, ", "))
	}
	return s
}

var deliveryStates = []string{
	string(store.Queued), string(store.SentOn), string(store.Arrived), string(store.Claimed), string(store.Delivered), string(store.Answered),
	string(store.Failed), string(store.Poisoned), string(store.Cancelled), string(store.Expired),
}

func (q *query) delivery(name string) store.DeliveryState {
	return store.DeliveryState(q.word(name, deliveryStates...))
}

func (q *query) time(name string) store.Time {
	s := q.text(name)
	if s == "" {
		return 0
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		q.wrong(name, "not a time like 2026-11-20T12:00:00Z")
	}
	return store.At(t)
}

func (q *query) page() store.Page {
	return store.Page{Cursor: q.text("cursor"), Limit: q.number("limit", 1, 1000)}
}

// parseLog parses the id of a log entry, which is also an event's id.
func parseLog(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 0 {
		return 0, badf("%s: not an event id", access.Quote(s))
	}
	return id, nil
}

func (q *query) sessions() store.SessionFilter {
	return store.SessionFilter{
		Actor: q.agent("actor"), Thread: q.text("thread"),
		Open: q.word("open", "true", "false") == "true", Page: q.page(),
	}
}

func (q *query) tasks() store.TaskFilter {
	return store.TaskFilter{
		State:    q.word("state", store.TaskOpen, store.TaskInProgress, store.TaskBlocked, store.TaskDone, store.TaskCancelled),
		Assignee: q.agent("assignee"), AskedBy: q.agent("asked_by"), Message: q.text("message"),
		Text: q.text("text"), Page: q.page(),
	}
}

func (q *query) messages() store.MessageFilter {
	return store.MessageFilter{
		ID: q.text("id"), From: q.agent("from"), To: q.agent("to"), With: q.agent("with"), Kind: q.text("kind"),
		Thread: q.text("thread"), InReplyTo: q.text("in_reply_to"), Text: q.text("text"), Since: q.time("since"), State: q.delivery("state"), Page: q.page(),
	}
}

func (q *query) deliveries() store.DeliveryFilter {
	return store.DeliveryFilter{
		Message: q.text("message"), From: q.agent("from"), Target: q.agent("target"),
		State: q.delivery("state"), Page: q.page(),
	}
}

func (q *query) notes() store.NoteFilter {
	return store.NoteFilter{About: q.text("about"), Author: q.text("author"), Text: q.text("text"), Page: q.page()}
}

func (q *query) logs() store.LogFilter {
	f := store.LogFilter{
		Level: q.word("level", store.LevelDebug, store.LevelInfo, store.LevelWarn, store.LevelError),
		Part:  q.text("part"), Actor: q.agent("actor"), About: q.text("about"), Text: q.text("text"), Page: q.page(),
	}
	if after := q.text("after"); after != "" {
		id, err := parseLog(after)
		if err != nil {
			q.wrong("after", "not an event id")
		}
		f.Forward, f.After = true, id
	}
	return f
}

// A badRequest reports an invalid request.
type badRequest string

func badf(format string, args ...any) error { return badRequest(fmt.Sprintf(format, args...)) }

func (e badRequest) Error() string { return string(e) }
