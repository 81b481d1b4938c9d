// Package loopmodel is a model on the loopback, for tests of programs that run Codex:
// an HTTP server that implements the part of the OpenAI Responses API that the real
// Codex CLI needs. It has no intelligence. It echoes the last thing said to it, and on
// request does what a model might do: be slow, fail, call tools, count what it was
// told.
//
// A request is answered by the newest rule (Handle) that accepts it, else by the orders
// in its last text (see Directives), else by an echo. Nothing is stored on disk, and
// Close ends everything in progress. Only tests import it.
package openai

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Model is a name for which Codex offers its shell tool to the model.
const Model = "gpt-5.5"

// maxRequest limits the body of a request, in bytes.
const maxRequest = 64 << 20

// A Server is a running model.
type Server struct {
	http *http.Server
	url  string
	stop chan struct{} // closed by Close
	done chan struct{} // closed when the server has ended
	once sync.Once

	mu    sync.Mutex // guards the fields below
	rules []func(Request) *Reply
	seen  []Request
	news  chan struct{} // closed and replaced at each request
	calls int
}

// Start starts a model on a free port of the loopback.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		url:  "http://" + l.Addr().String() + "/v1",
		stop: make(chan struct{}), done: make(chan struct{}), news: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", s.responses)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"models":[]}`)
	})
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

// URL returns the base URL for a model_provider of Codex's.
func (s *Server) URL() string { return s.url }

// Handle adds a rule; it returns nil for requests that it leaves to older ones.
func (s *Server) Handle(rule func(Request) *Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, rule)
}

// Requests returns all requests so far, without those for a thread's title.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
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

// WriteHome makes dir a CODEX_HOME whose only model is this one, without a login,
// dialogs and network access. extra are further lines of its config.toml, put before
// the first table.
func (s *Server) WriteHome(dir string, extra ...string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	config := fmt.Sprintf(`model = %q
model_provider = "loop"
check_for_update_on_startup = false
disable_paste_burst = true
%s
[model_providers.loop]
name = "Loop"
base_url = %q
wire_api = "responses"
env_key = "LOOPMODEL_KEY"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0

[features]
daemon_auto_start = false
unbounded_connection_retries = false

# Else Codex's screen begins with a dialog that offers this model instead.
[notice.model_migrations]
%q = "gpt-6-sol"

[tui]
animations = false
show_tooltips = false
screen_reader_detection_done = true
`, Model, strings.Join(extra, "\n"), s.url, Model)
	return os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600)
}

// Env returns what Codex needs in its environment to use that home.
func Env(dir string) []string { return []string{"CODEX_HOME=" + dir, "LOOPMODEL_KEY=x"} }

// responses answers one request of Codex's.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q, err := readRequest(r.Header, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply := s.decide(q)
	if reply.Delay > 0 || reply.Hold != nil {
		var timer <-chan time.Time
		if reply.Delay > 0 {
			timer = time.After(reply.Delay)
		}
		select {
		case <-timer:
		case <-reply.Hold:
		case <-r.Context().Done():
			return
		case <-s.stop:
			return
		}
	}
	if reply.Status != 0 {
		for name, value := range reply.Header {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(reply.Status)
		io.WriteString(w, reply.Body)
		return
	}
	s.mu.Lock()
	s.calls++
	n := s.calls
	s.mu.Unlock()
	stream(w, n, q, *reply)
}

// decide records the request and finds its answer.
func (s *Server) decide(q Request) *Reply {
	s.mu.Lock()
	rules := s.rules
	if !q.Title {
		s.seen = append(s.seen, q)
		close(s.news)
		s.news = make(chan struct{})
	}
	s.mu.Unlock()
	if q.Title {
		return &Reply{Text: "A title"}
	}
	for i := len(rules) - 1; i >= 0; i-- {
		if reply := rules[i](q); reply != nil {
			return reply
		}
	}
	return Directives(q)
}
