// Package loopmodel is a model on the loopback, for tests of programs that run Claude
// Code: an HTTP server that implements the part of the Anthropic Messages API that the
// real program needs, in a pane and with -p. It has no intelligence. It echoes what was
// said to it last, and on request does what a model might do: be slow, fail, call
// tools, count what it was told.
//
// A request is answered by the newest rule (Handle) that accepts it, else by the orders
// in what was said last (see Directives), else by an echo. Nothing is stored on disk,
// and Close ends everything in progress. Only tests import it.
package anthropic

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxRequest limits the body of a request, in bytes.
const maxRequest = 64 << 20

// A Server is a running model.
type Server struct {
	http *http.Server
	url  string
	stop chan struct{} // closed by Close
	done chan struct{} // closed when the server has ended
	once sync.Once

	mu      sync.Mutex // guards the fields below
	rules   []func(Request) *Reply
	seen    []Request
	strays  []string
	news    chan struct{}  // closed and replaced at each request
	cached  map[string]int // by session: tokens of its last request
	failed  map[string]int // by session: how much had been said when it last failed
	answers int
}

// Start starts a model on a free port of the loopback.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		url:  "http://" + l.Addr().String(),
		stop: make(chan struct{}), done: make(chan struct{}),
		news: make(chan struct{}), cached: make(map[string]int), failed: make(map[string]int),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", s.count)
	mux.HandleFunc("HEAD /api/hello", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", s.stray)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		s.http.Serve(l) // ends with Close, and nothing else
	}()
	return s, nil
}

// Close ends the server and the answers in progress. It may be called twice.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.stop) })
	err := s.http.Close()
	<-s.done
	return err
}

// URL returns the value for ANTHROPIC_BASE_URL.
func (s *Server) URL() string { return s.url }

// Handle adds a rule; it returns nil for requests that it leaves to older ones.
func (s *Server) Handle(rule func(Request) *Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, rule)
}

// Requests returns all requests so far, without side requests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// Strays returns the methods and paths that were requested and that the model does not
// have: each was answered with 404.
func (s *Server) Strays() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.strays...)
}

// Wait returns the first request that matches, now or later, and false if done is
// closed first.
func (s *Server) Wait(done <-chan struct{}, match func(Request) bool) (Request, bool) {
	for next := 0; ; {
		s.mu.Lock()
		list, news := s.seen, s.news
		s.mu.Unlock()
		for ; next < len(list); next++ {
			if match(list[next]) {
				return list[next], true
			}
		}
		select {
		case <-news:
		case <-done:
			return Request{}, false
		}
	}
}

// messages answers one request for the model's next words.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	q, ok := s.read(w, r)
	if !ok {
		return
	}
	reply := s.decide(q)
	if !s.pause(r, reply) {
		panic(http.ErrAbortHandler) // otherwise it would be an empty answer
	}
	if reply.Status != 0 {
		s.fail(q)
		refuse(w, reply)
		return
	}
	n, usage := s.account(q, reply)
	body := stream(n, q, reply, usage)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("request-id", "req_"+strconv.Itoa(n))
	w.Write(body)
}

// read reads a request, or answers that it is invalid.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (Request, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return Request{}, false
	}
	q, err := readRequest(r.Header, body)
	if err != nil {
		refuse(w, failure(http.StatusBadRequest, "invalid_request_error", err.Error()))
		return Request{}, false
	}
	return q, true
}

// pause waits as long as the reply wants, and reports whether the client is still
// waiting.
func (s *Server) pause(r *http.Request, reply *Reply) bool {
	if reply.Delay <= 0 && reply.Hold == nil {
		return true
	}
	var over <-chan time.Time
	if reply.Delay > 0 {
		timer := time.NewTimer(reply.Delay)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-reply.Hold:
	case <-r.Context().Done():
		return false
	case <-s.stop:
		return false
	}
	return true
}

// decide records the request and finds its answer.
func (s *Server) decide(q Request) *Reply {
	s.mu.Lock()
	rules := s.rules
	if n := s.failed[q.Session]; n < len(q.Said) { // otherwise it is retried
		q.Fresh = min(q.Fresh, len(q.Said)-n)
	}
	if !q.Title {
		s.seen = append(s.seen, q)
		close(s.news)
		s.news = make(chan struct{})
	}
	s.mu.Unlock()
	if q.Title {
		return aside(q)
	}
	for i := len(rules) - 1; i >= 0; i-- {
		if reply := rules[i](q); reply != nil {
			return reply
		}
	}
	return Directives(q)
}

// fail records that a request failed: its text is not for the next answer, though the
// model has said nothing in between.
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

// account numbers an answer and computes its cost: what a session said before is read
// from the cache, the rest is written there.
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

// tokens is a rough estimate.
func tokens(text []byte) int { return len(text) / 4 }

// count answers how many tokens a request would be.
func (s *Server) count(w http.ResponseWriter, r *http.Request) {
	if q, ok := s.read(w, r); ok {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]int{"input_tokens": tokens(bytes.TrimSpace(q.Body))})
	}
}

// stray answers requests for what the model does not have.
func (s *Server) stray(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.strays = append(s.strays, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	refuse(w, failure(http.StatusNotFound, "not_found_error", r.URL.Path+" not found"))
}

func refuse(w http.ResponseWriter, reply *Reply) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(reply.Status)
	io.WriteString(w, reply.Body)
}
