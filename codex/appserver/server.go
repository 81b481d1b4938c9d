package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// ServerOptions configure a child app-server.
type ServerOptions struct {
	Program string   // the native program; see Find
	Config  []string // "key=value" in TOML; for this process only
	Env     []string // the whole environment
	Dir     string
}

// A Server is a connection to `codex app-server`: a child process, or one that other
// clients use as well. Its methods are safe for concurrent use.
type Server struct {
	peer    *peer
	version string
	shared  bool // others use it too, so a thread may be busy when it is opened

	mu        sync.Mutex // guards the fields below
	threads   map[string]*Thread
	questions map[string]*question // that wait for a decision, by the request's id
	sent      map[string]sent      // decisions that Codex has not confirmed, likewise
}

// A sent is a decision on its way.
type sent struct {
	q     *question
	d     Decision
	end   <-chan item // of what it is about; nil: that is not known
	taken func(Taken)
}

// quiet are the notifications that are not needed and come by the hundred.
var quiet = [...]string{
	"item/agentMessage/delta", "item/plan/delta", "item/reasoning/summaryTextDelta", "item/reasoning/summaryPartAdded",
	"item/reasoning/textDelta", "item/commandExecution/outputDelta", "item/fileChange/outputDelta",
	"item/fileChange/patchUpdated", "turn/diff/updated", "rawResponseItem/completed", "rawResponse/completed",
	"thread/readState/changed",
}

// StartServer starts an app-server and initializes the connection. The process ends
// with Close, and when netsky dies.
func StartServer(ctx context.Context, o ServerOptions) (*Server, error) {
	args := []string{"app-server"}
	for _, c := range o.Config {
		args = append(args, "-c", c)
	}
	p, err := start(ctx, o.Program, args, o.Env, o.Dir)
	if err != nil {
		return nil, err
	}
	return greet(ctx, p, false)
}

// greet initializes the connection; it owns the transport from the beginning.
func greet(ctx context.Context, t transport, shared bool) (*Server, error) {
	s := &Server{shared: shared, threads: make(map[string]*Thread), questions: make(map[string]*question), sent: make(map[string]sent)}
	s.peer = newPeer(t, s, "")
	s.peer.group.Go(func() {
		<-s.peer.done
		s.lose()
	})
	var hello struct {
		Agent string `json:"userAgent"`
	}
	err := s.peer.call(ctx, "initialize", map[string]any{
		"clientInfo":   map[string]any{"name": "netsky", "title": "netsky", "version": "1"},
		"capabilities": map[string]any{"experimentalApi": true, "optOutNotificationMethods": quiet},
	}, &hello)
	if err == nil {
		err = s.peer.note(ctx, "initialized", nil)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("codex app-server: %w", err)
	}
	_, version, _ := strings.Cut(hello.Agent, "/")
	s.version, _, _ = strings.Cut(version, " ")
	return s, nil
}

// Version returns Codex's version, as the server reports it.
func (s *Server) Version() string { return s.version }

// Recent returns an error that matches ErrOld if the server's Codex has to be driven
// through mcp-server.
func (s *Server) Recent() error {
	v, err := ParseVersion(s.version)
	if err != nil {
		return err
	}
	if v.Legacy() {
		return fmt.Errorf("codex %v: %w", v, ErrOld)
	}
	return nil
}

// Done is closed when the connection has ended; Err returns why.
func (s *Server) Done() <-chan struct{} { return s.peer.done }

// Err returns why the connection has ended, matching ErrLost; nil if it has not.
func (s *Server) Err() error { return s.peer.failure() }

// Close ends the connection, and the process if it is a child, and waits for it. A turn
// in progress is cut off; Codex stores it as interrupted.
func (s *Server) Close() error {
	return s.peer.close()
}

// lose reports to all threads that the connection has ended.
func (s *Server) lose() {
	s.mu.Lock()
	unconfirmed := s.sent
	s.sent = make(map[string]sent)
	s.mu.Unlock()
	for _, d := range unconfirmed {
		d.taken(Unknown)
	}
	for _, t := range s.open() {
		t.lose(s.peer.failure())
	}
}

func (s *Server) open() []*Thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.threads))
}

// add registers a thread, so that it gets its notifications.
func (s *Server) add(t *Thread) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.peer.failure(); err != nil {
		return err
	}
	if s.threads[t.id] != nil {
		return fmt.Errorf("thread %s: already open on this connection", t.id)
	}
	s.threads[t.id] = t
	return nil
}

func (s *Server) remove(t *Thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.threads[t.id] == t {
		delete(s.threads, t.id)
	}
}

func (s *Server) thread(id string) *Thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.threads[id]
}

// notify passes a notification on to its thread.
func (s *Server) notify(method string, params json.RawMessage) {
	var p struct {
		Thread  string          `json:"threadId"`
		Request json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	if method == "serverRequest/resolved" {
		s.resolved(string(p.Request))
	}
	if method == "account/rateLimits/updated" { // about the account, so for all threads
		for _, t := range s.open() {
			t.limits(params)
		}
	}
	if t := s.thread(p.Thread); t != nil {
		t.notify(method, params)
	}
}

// resolved records that a question has been answered, here or by another client.
func (s *Server) resolved(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.questions[id]; q != nil {
		q.settled = true
		q.cancel()
	}
	if d, ok := s.sent[id]; ok {
		delete(s.sent, id)
		s.peer.group.Go(func() { s.confirm(d) })
	}
}

const (
	refusedWithin = 2 * time.Second        // for Codex to show that it does not do what was declined
	beganWithin   = 300 * time.Millisecond // for it to show that somebody else declined what was accepted
)

// confirm finds out whether the item went as was decided: two clients may have answered at
// the same time, and Codex does not say whose answer it took.
func (s *Server) confirm(d sent) {
	if d.end == nil {
		d.taken(AsSent)
		return
	}
	within := beganWithin
	if d.d == Decline {
		within = refusedWithin
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	declined := false
	select {
	case i := <-d.end:
		declined = i.Status == "declined"
	case <-timer.C:
	case <-s.peer.done:
		d.taken(Unknown)
		return
	}
	if declined == (d.d == Decline) {
		d.taken(AsSent)
	} else {
		d.taken(Elsewhere)
	}
}

// over ends the questions of a turn that has ended: nobody waits for them.
func (s *Server) over(turn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.questions {
		if q.approval.Turn == turn {
			q.cancel()
		}
	}
	for id, d := range s.sent {
		if d.q.approval.Turn == turn { // Codex has said nothing of it
			delete(s.sent, id)
			s.peer.group.Go(func() { d.taken(Unknown) })
		}
	}
}

// request answers a request from Codex.
func (s *Server) request(ctx context.Context, id, method string, params json.RawMessage) (any, bool, error) {
	q := asked(method, params, func(thread, id string) item {
		if t := s.thread(thread); t != nil {
			return t.begun(id)
		}
		return item{}
	})
	if q == nil {
		result, err := plain(method)
		return result, true, err
	}
	ctx, q.cancel = context.WithCancel(ctx)
	defer q.cancel()
	s.mu.Lock()
	s.questions[id] = q
	s.mu.Unlock()
	decision, taken := Decline, func(Taken) {}
	t := s.thread(q.approval.Thread)
	if t != nil {
		t.emit(q.event(ApprovalAsked))
		if t.o.Approve != nil {
			d, f := t.o.Approve(ctx, q.approval)
			if decision = d; f != nil {
				taken = f
			}
		}
	}
	if decision == Leave && s.shared {
		<-ctx.Done() // answered elsewhere, or over
	}
	var end <-chan item
	if t != nil && q.item != "" {
		end = t.end(q.item)
	}
	s.mu.Lock()
	delete(s.questions, id)
	settled := q.settled
	if !settled {
		s.sent[id] = sent{q, decision, end, taken}
	}
	s.mu.Unlock()
	if t != nil {
		t.emit(q.event(ApprovalSettled))
	}
	if settled {
		taken(Elsewhere)
		return nil, false, nil
	}
	return q.answer(decision), true, nil
}

// ended returns the error of a call that may have failed because ctx or the connection
// ended.
func (s *Server) ended(err error) error {
	if failure := s.peer.failure(); failure != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("%w (%w)", err, failure)
	}
	return err
}
