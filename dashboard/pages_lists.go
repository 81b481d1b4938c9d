package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"netsky/agent"
	"netsky/store"
)

// A listBody is one page of a list with its filters.
type listBody struct {
	Path   string
	Fields []field
	Set    []chip // controls that are not at "any"
	Chips  []chip
	Name   string // the items' template
	Groups []listGroup
	Items  any // if there are no groups
	Count  int
	Older  string // the next page's address; "" at the end
	Newest string // the first page's; "" on the first page
	Any    bool   // a filter is set
}

// A listGroup holds the items of a page that are in one state, or in states that are
// shown as one.
type listGroup struct {
	Title string
	Tone  string // a state's word
	Items []any
	All   string // how many there are, on all pages: "12", "100+"
	Only  string // the list of these alone; "" if it is this one
	More  string // what Only has, if it has more
	Parts []chip // of a group of several states: how many are in each, and its list
	group string // its first state
}

// countTo is the most records counted for a group.
const countTo = 100

// A grouper defines one group of a list.
type grouper struct {
	title  string
	states []string
	count  func(state string) (n int, more bool, err error) // nil: not counted, because most are in this group
	tone   string                                           // a word with a glyph, if it is not a state
	only   string                                           // the state to filter by, if it is not the group's own
}

// group splits the items of a page by state, in the order of the groups. A state that
// no group has goes to the last one.
func (b *listBody) group(q *query, param string, groups []grouper, items []any, stateOf func(any) string) error {
	asked := q.values.Get(param)
	b.Name = map[string]string{"/tasks": "task", "/messages": "letter", "/sessions": "session"}[b.Path]
	for i, g := range groups {
		out := listGroup{Title: g.title, Tone: cmp.Or(g.tone, g.states[0]), group: g.states[0]}
		for _, it := range items {
			state := stateOf(it)
			at := slices.IndexFunc(groups, func(o grouper) bool { return slices.Contains(o.states, state) })
			if at == i || at < 0 && i == len(groups)-1 {
				out.Items = append(out.Items, it)
			}
		}
		if len(out.Items) == 0 {
			continue
		}
		if len(g.states) == 1 && g.states[0] != "ended" && asked == "" {
			out.Only = q.with(b.Path, param, cmp.Or(g.only, g.states[0]))
		}
		out.All = strconv.Itoa(len(out.Items))
		if more := b.Older != "" || b.Newest != ""; more {
			out.All += " on this page"
			if g.count != nil && !b.Any {
				var err error
				if out.All, err = counted(g.count, g.states...); err != nil {
					return err
				}
				if out.Parts, err = b.parts(q, param, g); err != nil {
					return err
				}
			}
		}
		b.Groups = append(b.Groups, out)
	}
	return nil
}

// parts leads to the lists of the states of a group that has several.
func (b *listBody) parts(q *query, param string, g grouper) (list []chip, err error) {
	if len(g.states) < 2 || q.values.Get(param) != "" {
		return nil, nil
	}
	for _, s := range g.states {
		n, err := counted(g.count, s)
		if err != nil {
			return nil, err
		}
		if n != "0" {
			list = append(list, chip{s, n, q.with(b.Path, param, s)})
		}
	}
	return list, nil
}

// counted says how many records are in these states.
func counted(count func(state string) (n int, more bool, err error), states ...string) (string, error) {
	n, over, err := 0, false, error(nil)
	for _, s := range states {
		m, o, e := count(s)
		n, over, err = n+m, over || o, errors.Join(err, e)
	}
	text := strconv.Itoa(n)
	if over {
		text += "+"
	}
	return text, err
}

// anys converts a list to []any.
func anys[T any](list []T) []any {
	all := make([]any, len(list))
	for i := range list {
		all[i] = list[i]
	}
	return all
}

// A field is one control of a filter; one without options is a text field.
type field struct {
	Name, Label, Value string
	Options            []string
}

// A chip is a filter that has no control of its own, and the link that removes it.
type chip struct{ Name, Value, Without string }

// list makes the body for a list that has been read.
func (q *query) list(path string, items any, count int, cursor string, fields ...field) listBody {
	b := listBody{Path: path, Items: items, Count: count}
	for _, f := range fields {
		f.Value = q.values.Get(f.Name)
		b.Fields = append(b.Fields, f)
		if f.Value != "" {
			b.Set, b.Any = append(b.Set, chip{strings.ToLower(f.Label), f.Value, q.with(path, f.Name, "")}), true
		}
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

// with returns the list's address with one parameter changed. A changed filter starts
// at the first page.
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

// names returns the agents of this host, or of all hosts and the owner.
func (sh *shell) names(all bool) (list []string) {
	agents := sh.Agents
	if all {
		agents = sh.Everywhere()
	}
	for _, a := range agents {
		list = append(list, string(a.ID))
	}
	if all {
		list = append(list, string(agent.Owner))
	}
	return list
}

// readList reads what a list's page shows, or nothing if the query is invalid.
func readList[F, T any](ctx context.Context, records func() (Reader, error), q *query, f F, read func(Reader, context.Context, F) (store.List[T], error)) (l store.List[T], err error) {
	if err := q.done(); err != nil {
		return l, err
	}
	db, err := records()
	if err != nil {
		return l, err
	}
	return read(db, ctx, f)
}

// stateTitle returns a state as a heading.
func stateTitle(state string) string {
	s := strings.ReplaceAll(state, "_", " ")
	return strings.ToUpper(s[:1]) + s[1:]
}

func (p *pages) sessionsPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Sessions", "sessions"
	f := q.sessions()
	f.Limit = onPageOr(f.Limit)
	l, err := readList(ctx, p.records, q, f, Reader.Sessions)
	sh.asLive(l.Items)
	b := q.list("/sessions", nil, len(l.Items), l.Cursor,
		field{Name: "actor", Label: "Agent", Options: sh.names(false)},
		field{Name: "open", Label: "Open only", Options: []string{"true"}})
	if err == nil {
		err = b.group(q, "open", []grouper{{"Open", []string{"true"}, nil, "session_start", ""}, {"Ended", []string{"ended"}, nil, "session_end", ""}}, anys(l.Items), func(s any) string {
			if s.(store.Session).Ended == 0 {
				return "true"
			}
			return "ended"
		})
	}
	sh.Body = b
	return "sessions", err
}

func (p *pages) logsPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Logs", "logs"
	f := q.logs()
	f.Limit = onPageOr(f.Limit)
	l, err := readList(ctx, p.records, q, f, Reader.Logs)
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
	if id, err := agent.ParseArgAddress(text); err == nil {
		return pageOf(id), nil
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
	if id := t.Subject.ID; id != text && strings.HasPrefix(id, text) {
		return "", store.ErrNotFound // it only begins so
	}
	switch id := t.Subject.ID; t.Subject.Kind {
	case store.SubjectMessage:
		return href("messages", id), nil
	case store.SubjectSession:
		return href("sessions", id), nil
	case store.SubjectTask:
		return href("tasks", id), nil
	case store.SubjectNote:
		return href("notes", id), nil
	case store.SubjectActor:
		return href("agents", id), nil
	default:
		return withQuery("/messages", "thread", id), nil
	}
}

func (p *pages) messagesPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Messages", "messages"
	f := q.messages()
	f.Limit = onPageOr(f.Limit)
	l, err := readList(ctx, p.records, q, f, Reader.Messages)
	if err != nil {
		return "", err
	}
	db, err := p.records()
	if err != nil {
		return "", err
	}
	list, err := p.unread.letters(ctx, db, l.Items)
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
			{"Waiting", words(store.Queued, store.SentOn, store.Arrived, store.Claimed), count, "", ""},
			{"Delivered and answered", words(store.Delivered, store.Answered, store.Cancelled), nil, "", ""},
		}, anys(list), func(l any) string { return string(l.(letter).State) })
	}
	sh.Body = b
	return "messages", err
}

// A findBody is a query and its results.
type findBody struct {
	Query  string
	Places []foundPlace
	List   listBody
}

// find redirects from a whole id or a file name to its page; any other text is searched
// for: a word may be the beginning of an id by accident.
func (p *pages) find(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageLimit)
	defer cancel()
	q := newQuery(r)
	text, page := q.text("q"), q.page()
	err := q.done()
	to := ""
	if err == nil && text != "" {
		to, err = p.pageOf(ctx, text)
	}
	if err == nil && to != "" {
		redirect(w, to)
		return
	}
	sh := p.shell(ctx)
	sh.Update = r.Header.Get(updateHeader) != ""
	sh.Title, sh.Section = "Find", "find"
	var found store.List[store.Found]
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrAmbiguous) {
		page.Limit = onPageOr(page.Limit)
		var db Reader
		if db, err = p.records(); err == nil {
			found, err = db.Find(ctx, text, page)
		}
		if errors.Is(err, store.ErrSearch) {
			err = badf("%s", err.Error())
		}
	}
	if err != nil {
		p.wrong(w, r, sh, err)
		return
	}
	var places []foundPlace
	if page.Cursor == "" {
		places = p.works.places(ctx, sh, text)
	}
	sh.Body = findBody{text, places, q.list("/find", found.Items, len(found.Items), found.Cursor, field{Name: "q"})}
	p.render(w, r, http.StatusOK, "find", sh)
}

// foundPage returns the page of a result.
func foundPage(f store.Found) string {
	switch f.Kind {
	case store.SubjectMessage:
		return href("messages", f.ID)
	case store.SubjectTask:
		return href("tasks", f.ID)
	}
	return href("notes", f.ID)
}
