// Package anthropic is a model on the loopback, for tests of what runs Claude
// Code: a loopmodel that speaks the part of the Anthropic Messages API that
// the real program needs, in a pane and with -p. It has no wits. It echoes what
// was said to it last, and does on request what a model might do: be slow, fail,
// call tools, count what it was told.
//
// A request is answered by the newest rule (Handle) that wants it, else by the
// orders in what was said last (see Directives), else by an echo. Nothing is
// kept on disk, and Close ends all that is under way. Only tests import it.
package anthropic

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"netsky/internal/loopmodel"
)

// A Server is a running model.
type Server struct {
	*loopmodel.Server[Request]

	mu      sync.Mutex // guards what follows
	strays  []string
	cached  map[string]int // by session: tokens of its last request
	failed  map[string]int // by session: how much had been said when it failed last
	answers int
}

// Start starts a model on a free port of the loopback. Its URL is what
// ANTHROPIC_BASE_URL must be.
func Start() (*Server, error) {
	s := &Server{cached: make(map[string]int), failed: make(map[string]int)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", s.count)
	mux.HandleFunc("HEAD /api/hello", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", s.stray)
	var err error
	if s.Server, err = loopmodel.Start[Request](mux); err != nil {
		return nil, err
	}
	return s, nil
}

// Strays are the methods and paths that were asked for and that the model does
// not have: each was answered with 404.
func (s *Server) Strays() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.strays...)
}

// messages answers one request for the model's next words.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	q, ok := s.read(w, r)
	if !ok {
		return
	}
	reply := s.decide(q)
	if !s.Pause(r, reply) {
		panic(http.ErrAbortHandler) // or it would be an empty answer
	}
	if reply.Status != 0 {
		s.fail(q)
		loopmodel.Refuse(w, reply)
		return
	}
	n, usage := s.account(q, reply)
	body := stream(n, q, reply, usage)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("request-id", "req_"+strconv.Itoa(n))
	if reply.Breaks != "" {
		broken(w, body, reply.Breaks)
		return
	}
	s.Spend(usage)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

// broken writes the first event of a stream and no other, or an error alone.
func broken(w http.ResponseWriter, body []byte, kind string) {
	if kind != loopmodel.Cut {
		loopmodel.Event(w, "error", map[string]any{"error": map[string]string{"type": kind, "message": kind}})
		return
	}
	first, _, _ := bytes.Cut(body, []byte("\n\n"))
	w.Write(append(first, "\n\n"...))
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// read reads a request, or answers that it is none.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (Request, bool) {
	body, err := loopmodel.Body(w, r)
	if err != nil {
		return Request{}, false
	}
	q, err := readRequest(r.Header, body)
	if err != nil {
		loopmodel.Refuse(w, failure(http.StatusBadRequest, "invalid_request_error", err.Error()))
		return Request{}, false
	}
	return q, true
}

// decide finds the answer to a request.
func (s *Server) decide(q Request) *Reply {
	if q.Title {
		return aside(q)
	}
	s.mu.Lock()
	if n := s.failed[q.Session]; n < len(q.Said) { // else it is tried again
		q.Fresh = min(q.Fresh, len(q.Said)-n)
	}
	s.mu.Unlock()
	return s.Decide(q, Directives)
}

// fail notes that a request failed: what it asked is not for the next answer,
// though the model has said nothing in between.
func (s *Server) fail(q Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !q.Title {
		s.failed[q.Session] = len(q.Said)
	}
}

// aside answers a side request.
func aside(q Request) *Reply {
	if strings.HasPrefix(q.Last(), summarise) {
		return &Reply{Text: "<analysis>none</analysis><summary>the user said " + strconv.Itoa(len(q.Said)-1) + " things</summary>"}
	}
	return &Reply{Text: `{"title":"A title"}`}
}

// account numbers an answer and says what it costs: what a session said before
// is read from the cache, the rest is written there.
func (s *Server) account(q Request, reply *Reply) (int, Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers++
	if reply.Usage != nil {
		return s.answers, *reply.Usage
	}
	total := tokens(q.Body)
	u := Usage{Input: 4, Output: 1 + tokens([]byte(reply.Text)) + 30*len(reply.Calls), CacheRead: min(s.cached[q.Session], total)}
	u.CacheWrite = total - u.CacheRead
	if !q.Title {
		s.cached[q.Session] = total
	}
	return s.answers, u
}

// tokens is a guess of the kind that people make.
func tokens(text []byte) int { return len(text) / 4 }

// count answers how many tokens a request would be.
func (s *Server) count(w http.ResponseWriter, r *http.Request) {
	if q, ok := s.read(w, r); ok {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]int{"input_tokens": tokens(bytes.TrimSpace(q.Body))})
	}
}

// stray answers what the model does not have.
func (s *Server) stray(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.strays = append(s.strays, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	loopmodel.Refuse(w, failure(http.StatusNotFound, "not_found_error", r.URL.Path+" not found"))
}
