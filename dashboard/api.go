package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"netsky/agent"
	"netsky/store"
)

// routes answer a path by its method, and any other method with 405.
type routes struct{ mux *http.ServeMux }

func (r *routes) get(path string, h http.HandlerFunc)  { r.add(http.MethodGet, path, h) }
func (r *routes) post(path string, h http.HandlerFunc) { r.add(http.MethodPost, path, h) }

// both answers GET and POST.
func (r *routes) both(path string, get, post http.HandlerFunc) {
	r.mux.HandleFunc("GET "+path, get)
	r.mux.HandleFunc("POST "+path, post)
	r.mux.HandleFunc(path, notAllowed("GET, HEAD, POST"))
}

func (r *routes) add(method, path string, h http.HandlerFunc) {
	r.mux.HandleFunc(method+" "+path, h)
	allow := method
	if method == http.MethodGet {
		allow = "GET, HEAD"
	}
	r.mux.HandleFunc(path, notAllowed(allow))
}

func notAllowed(allow string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Allow", allow)
		refuse(w, req, http.StatusMethodNotAllowed, "only "+allow)
	}
}

func (s *Server) routes() http.Handler {
	r := &routes{http.NewServeMux()}
	r.get(healthPath, func(w http.ResponseWriter, req *http.Request) {
		writeJSON(w, req, http.StatusOK, map[string]string{"status": "ok"})
	})
	r.both(loginPath, s.login, s.signIn)
	r.post(sessionPath, s.session)
	r.post(signOutPath, s.signOut)
	r.get(eventsPath, s.events)
	r.get(socketPath, s.socket)
	r.get(palettePath, s.paletteCSS)
	r.post("/api/user-message", s.say)
	s.api(r)
	s.pages(r)
	r.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		refuse(w, req, http.StatusNotFound, "nothing is here")
	})
	return r.mux
}

func (s *Server) api(r *routes) {
	r.get("/api/snapshot", answer(s, func(ctx context.Context, q *query) (any, error) { return s.overview(ctx), nil }))
	r.get("/api/agents", answer(s, func(ctx context.Context, q *query) (any, error) { return items(s.o.Agents.Agents(ctx)) }))
	r.get("/api/approvals", answer(s, func(ctx context.Context, q *query) (any, error) { return items(s.approvals()) }))
	r.get("/api/pane/{agent}", answer(s, s.apiPane))

	r.get("/api/actors", records(s, func(ctx context.Context, db Reader, q *query) (any, error) { return items(db.Actors(ctx)) }))
	r.get("/api/actors/{id}", records(s, func(ctx context.Context, db Reader, q *query) (any, error) {
		id, err := pathAgent(q.path("id"))
		if err != nil {
			return nil, err
		}
		return db.Actor(ctx, id)
	}))
	r.get("/api/sessions", listed(s, (*query).sessions, Reader.Sessions))
	r.get("/api/sessions/{id}", one(s, Reader.Session))
	r.get("/api/tasks", listed(s, (*query).tasks, Reader.Tasks))
	r.get("/api/tasks/{id}", one(s, Reader.Task))
	r.get("/api/messages", listed(s, (*query).messages, Reader.Messages))
	r.get("/api/messages/{id}", one(s, Reader.Message))
	r.get("/api/deliveries", listed(s, (*query).deliveries, Reader.Deliveries))
	r.get("/api/deliveries/{id}", one(s, deliveriesOf))
	r.get("/api/notes", listed(s, (*query).notes, Reader.Notes))
	r.get("/api/notes/{id}", one(s, Reader.Note))
	r.get("/api/logs", listed(s, (*query).logs, Reader.Logs))
	r.get("/api/logs/{id}", one(s, oneLog))
	r.get("/api/timeline/{id}", one(s, Reader.Timeline))
}

// answer makes a handler of what reads something; q refuses what it was not
// asked for.
func answer(s *Server, read func(context.Context, *query) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := newQuery(r)
		v, err := read(r.Context(), q)
		if wrong := q.done(); wrong != nil { // before what came of misreading it
			err = wrong
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		writeJSON(w, r, http.StatusOK, v)
	}
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

// listed is a page of records, by a filter that the query makes.
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

// one is what has the id in the path.
func one[T any](s *Server, read func(Reader, context.Context, string) (T, error)) http.HandlerFunc {
	return records(s, func(ctx context.Context, db Reader, q *query) (any, error) { return read(db, ctx, q.path("id")) })
}

// records is the database, or an error that matches errNoRecords.
func (s *Server) records() (Reader, error) {
	db, err := s.o.Records()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRecords, err)
	}
	return db, nil
}

// items is a list in the shape of those that have pages.
func items[T any](list []T, err error) (any, error) {
	if list == nil {
		list = []T{}
	}
	return store.List[T]{Items: list}, err
}

func deliveriesOf(db Reader, ctx context.Context, message string) (store.List[store.Delivery], error) {
	l, err := db.Deliveries(ctx, store.DeliveryFilter{Message: message})
	if err == nil && len(l.Items) == 0 {
		err = fmt.Errorf("deliveries of %s: %w", quote(message), store.ErrNotFound)
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
	return s.pane(ctx, id, n)
}

// pathAgent reads an agent's name in a path; no such agent, no such page.
func pathAgent(text string) (agent.ID, error) {
	id, err := agent.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, store.ErrNotFound)
	}
	return id, nil
}

// writeJSON writes a value whole or not at all. encoding/json leaves no "<" as
// it is, so no reader can take it for markup.
func writeJSON(w http.ResponseWriter, r *http.Request, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil { // the raw JSON in a record is broken
		refuse(w, r, http.StatusInternalServerError, "the record cannot be written as JSON")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(data, '\n'))
}
