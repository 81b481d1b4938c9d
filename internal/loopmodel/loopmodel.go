// Package loopmodel is what the two models on the loopback share, for tests of the
// programs that agents run: an HTTP server that finds an answer to each request,
// and what an answer can be. Whose API it is, how a request is read and how an
// answer is written, is for anthropic and openai, its children.
//
// A request is answered by the newest rule (Handle) that wants it, else by what the
// child has for it. Nothing is kept on disk, and Close ends all that is under way.
// Only tests import it.
package loopmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 64 << 20

// A Reply is what the model does with a request. The zero Reply says nothing.
type Reply struct {
	Delay  time.Duration   // before anything else
	Hold   <-chan struct{} // likewise: until it is closed, or Delay is over
	Status int             // not 0: an HTTP error with Body and Header instead
	Header map[string]string
	Body   string
	Breaks string // Claude's: the answer's stream ends early, with an error of this kind, or with none: Cut
	Text   string
	Calls  []Call // tools to call, after the text; the program asks again with their outputs
	Usage  *Usage // nil: made up from the sizes
	Fails  string // of Codex's: the code of an error in the stream, with Text as its message
	Cut    bool   // of Codex's: the stream ends after its first event
}

// Cut is a stream that ends without an error, as its connection does.
const Cut = "cut"

// A Call is a call of one of the program's tools. Claude Code's of an MCP server are
// named mcp__SERVER__TOOL.
type Call struct {
	Name      string
	Namespace string // with Codex, for a tool of an MCP server: "mcp__" and its name
	Arguments any
}

// Usage is what an answer costs, in tokens.
type Usage struct{ Input, Output, CacheRead, CacheWrite int }

// A Server is a running model, which is asked requests of type Q.
type Server[Q any] struct {
	http *http.Server
	url  string
	stop chan struct{} // closed by Close
	done chan struct{} // closed when the server has ended
	once sync.Once

	mu    sync.Mutex // guards what follows
	rules []func(Q) *Reply
	seen  []Q
	spent Usage
	news  chan struct{} // closed and replaced at each request
}

// Start starts a model on a free port of the loopback.
func Start[Q any](h http.Handler) (*Server[Q], error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server[Q]{
		http: &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}, url: "http://" + l.Addr().String(),
		stop: make(chan struct{}), done: make(chan struct{}), news: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		s.http.Serve(l) // ends with Close, and nothing else
	}()
	return s, nil
}

// Close ends the server and what it is answering. It may be called twice.
func (s *Server[Q]) Close() error {
	s.once.Do(func() { close(s.stop) })
	err := s.http.Close()
	<-s.done
	return err
}

// URL is where the server is, without a path.
func (s *Server[Q]) URL() string { return s.url }

// Handle adds a rule; it returns nil for what it leaves to older ones.
func (s *Server[Q]) Handle(rule func(Q) *Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, rule)
}

// Requests are all that came so far, without side requests.
func (s *Server[Q]) Requests() []Q {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Q(nil), s.seen...)
}

// Spend counts what an answer costs.
func (s *Server[Q]) Spend(u Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.spent
	t.Input, t.Output, t.CacheRead, t.CacheWrite = t.Input+u.Input, t.Output+u.Output, t.CacheRead+u.CacheRead, t.CacheWrite+u.CacheWrite
}

// Spent is what all answers so far cost, those to side requests too.
func (s *Server[Q]) Spent() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spent
}

// Wait returns the first request that matches, now or later, and false if done
// is closed before.
func (s *Server[Q]) Wait(done <-chan struct{}, match func(Q) bool) (q Q, ok bool) {
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
			return q, false
		}
	}
}

// Decide notes a request and finds its answer: that of the newest rule which wants
// it, else what otherwise says.
func (s *Server[Q]) Decide(q Q, otherwise func(Q) *Reply) *Reply {
	s.mu.Lock()
	rules := s.rules
	s.seen = append(s.seen, q)
	close(s.news)
	s.news = make(chan struct{})
	s.mu.Unlock()
	for i := len(rules) - 1; i >= 0; i-- {
		if reply := rules[i](q); reply != nil {
			return reply
		}
	}
	return otherwise(q)
}

// Pause waits as long as the reply wants, and reports whether it is still asked
// for.
func (s *Server[Q]) Pause(r *http.Request, reply *Reply) bool {
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

// Body is the body of a request.
func Body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
}

// Refuse answers with a reply that is an HTTP error.
func Refuse(w http.ResponseWriter, reply *Reply) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(reply.Status)
	io.WriteString(w, reply.Body)
}

// Event writes one event of an answer's stream.
func Event(w io.Writer, kind string, fields map[string]any) {
	fields["type"] = kind
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, JSON(fields))
}

// JSON is a value as JSON.
func JSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test gave arguments that are not JSON
	}
	return data
}

// Order takes a line "loop: WORD REST" apart. What stands for <, >, quotes and & in
// an envelope's rendering is read as that.
func Order(line string) (word, rest string, ok bool) {
	line, ok = strings.CutPrefix(strings.TrimSpace(line), "loop: ")
	word, rest, _ = strings.Cut(Unescape(line), " ")
	return word, rest, ok
}

// Unescape reads what stands for <, >, quotes and & as that.
func Unescape(text string) string { return unescape.Replace(text) }

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#34;", `"`, "&#39;", "'", "&apos;", "'", "&amp;", "&")
