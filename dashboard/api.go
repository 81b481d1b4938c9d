package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"

	"netsky/agent"
	"netsky/dashboard/access"
	"netsky/dashboard/live"
	"netsky/store"
	"netsky/view"
)

func (s *Server) routes() http.Handler {
	r := new(access.Routes)
	r.Get(access.EventsPath, s.events)
	r.Get(access.SocketPath, s.socket)
	r.Get(palettePath, paletteCSS)
	r.Post("/api/user-message", s.say)
	r.Post("/api/approval-answer", s.decisions.api)
	s.api(r)
	addPages(s, r)
	r.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		access.Refuse(w, req, http.StatusNotFound, "not found")
	})
	return r
}

func (s *Server) api(r *access.Routes) {
	r.Get("/api/snapshot", answer(s, func(ctx context.Context, q *query) (any, error) { return s.overview(ctx), nil }))
	r.Get("/api/agents", answer(s, func(ctx context.Context, q *query) (any, error) {
		list, err := s.o.Agents.Agents(ctx)
		return items(view.OfAPI(list), err)
	}))
	r.Get("/api/approvals", answer(s, func(ctx context.Context, q *query) (any, error) { return items(s.approvals()) }))
	r.Get("/api/pane/{agent}", answer(s, s.apiPane))
	r.Get("/api/work", answer(s, s.works.api))
	r.Get("/api/cost", answer(s, s.costs.api))

	r.Get("/api/actors", records(s, func(ctx context.Context, db Reader, q *query) (any, error) { return items(db.Actors(ctx)) }))
	r.Get("/api/actors/{id}", records(s, func(ctx context.Context, db Reader, q *query) (any, error) {
		id, err := agent.ParseAddress(q.path("id"))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, store.ErrNotFound)
		}
		return db.Actor(ctx, id)
	}))
	r.Get("/api/sessions", listed(s, (*query).sessions, Reader.Sessions))
	r.Get("/api/sessions/{id}", one(s, Reader.Session))
	r.Get("/api/tasks", listed(s, (*query).tasks, func(db Reader, ctx context.Context, f store.TaskFilter) (l store.List[Task], err error) {
		list, err := db.Tasks(ctx, f)
		return store.List[Task]{Items: s.tasks.called(ctx, list.Items), Cursor: list.Cursor}, err
	}))
	r.Get("/api/tasks/{id}", one(s, func(db Reader, ctx context.Context, id string) (k givenTask, err error) {
		task, err := db.Task(ctx, id)
		if err != nil {
			return k, err
		}
		k.Task = s.tasks.called(ctx, []store.Task{task})[0]
		k.Given, err = GivenOf(ctx, db, task)
		return k, err
	}))
	r.Get("/api/messages", listed(s, (*query).messages, Reader.Messages))
	r.Get("/api/messages/{id}", one(s, Reader.Message))
	r.Get("/api/deliveries", listed(s, (*query).deliveries, Reader.Deliveries))
	r.Get("/api/deliveries/{id}", one(s, deliveriesOf))
	r.Get("/api/notes", listed(s, (*query).notes, Reader.Notes))
	r.Get("/api/notes/{id}", one(s, Reader.Note))
	r.Get("/api/logs", listed(s, (*query).logs, Reader.Logs))
	r.Get("/api/logs/{id}", one(s, oneLog))
	r.Get("/api/updates", listed(s, (*query).page, Reader.Updates))
	r.Get("/api/timeline/{id}", one(s, Reader.Timeline))
}

// A givenTask is a task with its briefs and their answers.
type givenTask struct {
	Task
	Given []Given `json:"given"`
}

func records(s *Server, read func(context.Context, Reader, *query) (any, error)) http.HandlerFunc {
	return answer(s, func(ctx context.Context, q *query) (any, error) {
		db, err := s.records()
		if err != nil {
			return nil, err
		}
		return read(ctx, db, q)
	})
}

// listed returns a page of records, filtered by the query.
func listed[F, T any](s *Server, filter func(*query) F, read func(Reader, context.Context, F) (store.List[T], error)) http.HandlerFunc {
	return records(s, func(ctx context.Context, db Reader, q *query) (any, error) {
		f := filter(q)
		if err := q.done(); err != nil {
			return nil, err
		}
		l, err := read(db, ctx, f)
		if l.Items == nil {
			l.Items = []T{}
		}
		return l, err
	})
}

// one returns the record with the id in the path.
func one[T any](s *Server, read func(Reader, context.Context, string) (T, error)) http.HandlerFunc {
	return records(s, func(ctx context.Context, db Reader, q *query) (any, error) { return read(db, ctx, q.path("id")) })
}

// items wraps a list in the JSON of a page of records.
func items[T any](list []T, err error) (any, error) {
	if list == nil {
		list = []T{}
	}
	return store.List[T]{Items: list}, err
}

func deliveriesOf(db Reader, ctx context.Context, message string) (store.List[store.Delivery], error) {
	l, err := db.Deliveries(ctx, store.DeliveryFilter{Message: message})
	if err == nil && len(l.Items) == 0 {
		err = fmt.Errorf("deliveries of %s: %w", access.Quote(message), store.ErrNotFound)
	}
	return l, err
}

func oneLog(db Reader, ctx context.Context, text string) (store.Log, error) {
	id, err := parseLog(text)
	if err != nil {
		return store.Log{}, err
	}
	return db.Log(ctx, id)
}

func (s *Server) apiPane(ctx context.Context, q *query) (any, error) {
	id, err := pathAgent(q.path("agent"))
	if err != nil {
		return nil, err
	}
	n := q.number("history", 0, maxHistory)
	if err := q.done(); err != nil {
		return nil, err
	}
	return s.live.Pane(ctx, id, n)
}

// pathAgent parses the agent name in a path. Its error matches store.ErrNotFound.
func pathAgent(text string) (agent.ID, error) {
	id, err := agent.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, store.ErrNotFound)
	}
	return id, nil
}

// maxHistory is the most lines above a screen that may be requested.
const maxHistory = 5000

// events is GET /events.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	if sub, err := subscription(r); err != nil {
		s.fail(w, r, err)
	} else {
		s.live.ServeEvents(w, r, sub)
	}
}

// socket is GET /ws.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		access.Refuse(w, r, http.StatusUpgradeRequired, "expected a websocket handshake")
		return
	}
	if sub, err := subscription(r); err != nil {
		s.fail(w, r, err)
	} else {
		s.live.ServeSocket(w, r, sub)
	}
}

func subscription(r *http.Request) (sub live.Subscription, err error) {
	q := newQuery(r)
	after, watch := q.text("after"), q.text("watch")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		after = id // it has seen later events since
	}
	if sub.After = -1; after != "" {
		if sub.After, err = parseLog(after); err != nil {
			return sub, err
		}
	}
	if watch != "" {
		if sub.Watch, err = live.ParseWatch(strings.Split(watch, ",")); err != nil {
			return sub, badf("%s", err)
		}
	}
	return sub, q.done()
}

// palettePath is the style sheet of the panes' rows.
const palettePath = "/palette.css"

func paletteCSS(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "private, max-age=86400")
	w.Write(live.CSS())
}
