package dashboard

import (
	"context"
	"net/url"
	"slices"

	"netsky/agent"
	"netsky/store"
)

// A listBody is one page of a list with the filters over it.
type listBody struct {
	Path   string
	Fields []field
	Chips  []chip
	Items  any
	Count  int
	Older  string // the next page's address; "" at the end
	Newest string // the first page's, unless this is it
	Any    bool   // something is filtered
}

// A field is one control of a filter; one without options is typed.
type field struct {
	Name, Label, Value string
	Options            []string
}

// A chip is a filter that has no control of its own, and the list without it.
type chip struct{ Name, Value, Without string }

// list makes the body of a list that has been read.
func (q *query) list(path string, items any, count int, cursor string, fields ...field) listBody {
	b := listBody{Path: path, Items: items, Count: count}
	for _, f := range fields {
		f.Value = q.values.Get(f.Name)
		b.Fields = append(b.Fields, f)
		b.Any = b.Any || f.Value != ""
	}
	for _, name := range q.known {
		control := slices.ContainsFunc(fields, func(f field) bool { return f.Name == name })
		if v := q.values.Get(name); v != "" && !control && name != "cursor" && name != "limit" {
			b.Chips = append(b.Chips, chip{name, v, q.with(path, name, "")})
			b.Any = true
		}
	}
	if cursor != "" {
		b.Older = q.with(path, "cursor", cursor)
	}
	if q.values.Get("cursor") != "" {
		b.Newest = q.with(path, "cursor", "")
	}
	return b
}

// with is the list's address with another value for one parameter. A changed
// filter begins at the first page.
func (q *query) with(path, name, value string) string {
	v := url.Values{}
	for k, list := range q.values {
		if k != "cursor" && k != name && list[0] != "" {
			v[k] = list
		}
	}
	if value != "" {
		v.Set(name, value)
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

func (sh *shell) names(owner bool) []string {
	var list []string
	for _, a := range sh.Agents {
		list = append(list, string(a.ID))
	}
	if owner {
		list = append(list, string(agent.Owner))
	}
	return list
}

// readList reads what a list's page shows, and nothing where the query is wrong.
func readList[F, T any](ctx context.Context, p *pages, q *query, f F, read func(Reader, context.Context, F) (store.List[T], error)) (l store.List[T], err error) {
	if err := q.done(); err != nil {
		return l, err
	}
	db, err := p.records()
	if err != nil {
		return l, err
	}
	return read(db, ctx, f)
}

var taskStates = []string{store.TaskOpen, store.TaskInProgress, store.TaskBlocked, store.TaskDone, store.TaskCancelled}

func (p *pages) tasksPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Tasks", "tasks"
	f := q.tasks()
	f.Limit = onPageOr(f.Limit)
	l, err := readList(ctx, p, q, f, Reader.Tasks)
	sh.Body = q.list("/tasks", l.Items, len(l.Items), l.Cursor,
		field{Name: "state", Label: "State", Options: taskStates},
		field{Name: "assignee", Label: "Worked on by", Options: sh.names(false)},
		field{Name: "asked_by", Label: "Asked by", Options: sh.names(true)},
		field{Name: "text", Label: "Title contains"})
	return "tasks", err
}

func (p *pages) sessionsPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Sessions", "sessions"
	f := q.sessions()
	f.Limit = onPageOr(f.Limit)
	l, err := readList(ctx, p, q, f, Reader.Sessions)
	sh.Body = q.list("/sessions", l.Items, len(l.Items), l.Cursor,
		field{Name: "actor", Label: "Agent", Options: sh.names(false)},
		field{Name: "open", Label: "Still open", Options: []string{"true"}})
	return "sessions", err
}

func (p *pages) logsPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Logs", "logs"
	f := q.logs()
	f.Limit = onPageOr(f.Limit)
	l, err := readList(ctx, p, q, f, Reader.Logs)
	sh.Body = q.list("/logs", l.Items, len(l.Items), l.Cursor,
		field{Name: "level", Label: "Level", Options: []string{store.LevelDebug, store.LevelInfo, store.LevelWarn, store.LevelError}},
		field{Name: "actor", Label: "Agent", Options: sh.names(true)},
		field{Name: "part", Label: "Part"},
		field{Name: "text", Label: "Text contains"})
	return "logs", err
}

func onPageOr(limit int) int {
	if limit == 0 {
		return onPage
	}
	return limit
}

func (p *pages) pageOf(ctx context.Context, text string) (string, error) {
	if id, err := agent.ParseArg(text); err == nil {
		if id == agent.Owner {
			return withQuery("/messages", "with", id), nil
		}
		return href("agents", id), nil
	}
	if m, ok := p.sent.find(text); ok {
		return href("messages", m.ID), nil
	}
	db, err := p.records()
	if err != nil {
		return "", err
	}
	t, err := db.Timeline(ctx, text)
	if err != nil {
		return "", err
	}
	switch id := t.Subject.ID; t.Subject.Kind {
	case store.SubjectMessage:
		return href("messages", id), nil
	case store.SubjectSession:
		return href("sessions", id), nil
	case store.SubjectTask:
		return href("tasks", id), nil
	case store.SubjectActor:
		return href("agents", id), nil
	default:
		return withQuery("/messages", "thread", id), nil
	}
}
