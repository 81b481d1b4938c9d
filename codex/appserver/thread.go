package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// ThreadOptions configure a thread. What is "" is left to Codex, or, for a thread that
// is resumed, unchanged.
type ThreadOptions struct {
	ID           string // the thread to resume; "" starts one
	Dir          string // where the model works; absolute
	Model        string
	Instructions string         // for a new thread only: they are part of it
	Sandbox      string         // read-only, workspace-write, danger-full-access
	Approval     string         // untrusted, on-request, never
	Config       map[string]any // configuration of this thread alone, such as mcp_servers
	Approve      Approver       // nil declines everything
	// Name, if not "", is given to a new thread, which is then on disk at once and can
	// be resumed before its first turn.
	Name string

	// Feed, if not nil, receives the thread's events, in addition to those of other
	// threads.
	Feed *Feed
}

// A Thread is one conversation with a model. Its methods are safe for
// concurrent use.
type Thread struct {
	id    string
	model string
	path  string
	s     *Server
	o     ThreadOptions
	feed  *Feed
	slot  chan struct{} // held while submitting

	mu        sync.Mutex // guards the fields below
	turns     map[string]*Turn
	active    *Turn                // the running turn, whoever started it
	free      chan struct{}        // closed while none runs
	submitted *submission          // in progress
	keep      int                  // while it is not 0, turns that have ended are kept
	quota     quota                // of the account
	retrying  string               // the turn whose request Codex is retrying
	items     map[string]item      // that have begun and not ended, by id
	ends      map[string]chan item // of those whose end is waited for
	lost      error
}

// A submission waits for Codex to show the input in the thread.
type submission struct {
	input string
	seen  chan struct{}
	turn  string // where it was seen; guarded by the thread's mu
}

// Open resumes a thread or starts one. The error matches ErrGone if there is no such
// thread, and ErrHeld if another process has it. A new thread is on disk only from its
// first turn on.
func (s *Server) Open(ctx context.Context, o ThreadOptions) (*Thread, error) {
	t := &Thread{
		id: o.ID, s: s, o: o, feed: o.Feed, slot: make(chan struct{}, 1),
		turns: make(map[string]*Turn), free: make(chan struct{}), items: make(map[string]item), ends: make(map[string]chan item),
	}
	close(t.free)
	if t.feed == nil {
		t.feed = new(Feed)
	}
	params := map[string]any{}
	for name, value := range map[string]string{"cwd": o.Dir, "model": o.Model, "sandbox": o.Sandbox, "approvalPolicy": o.Approval} {
		if value != "" {
			params[name] = value
		}
	}
	if o.Config != nil {
		params["config"] = o.Config
	}
	if o.ID == "" {
		return t, t.begin(ctx, params)
	}
	return t, t.resume(ctx, params)
}

// openedThread is the result of both ways to open a thread.
type openedThread struct {
	Thread struct {
		ID     string `json:"id"`
		Path   string `json:"path"`
		Status struct {
			Type string `json:"type"`
		} `json:"status"`
	} `json:"thread"`
	Model string `json:"model"`
}

func (t *Thread) begin(ctx context.Context, params map[string]any) error {
	if t.o.Instructions != "" {
		params["developerInstructions"] = t.o.Instructions
	}
	var got openedThread
	if err := t.s.peer.call(ctx, "thread/start", params, &got); err != nil {
		return err
	}
	t.id, t.model, t.path = got.Thread.ID, got.Model, got.Thread.Path
	if err := t.s.add(t); err != nil || t.o.Name == "" {
		return err
	}
	err := t.s.peer.call(ctx, "thread/name/set", map[string]any{"threadId": t.id, "name": t.o.Name}, nil)
	if err != nil {
		t.s.remove(t)
	}
	return err
}

func (t *Thread) resume(ctx context.Context, params map[string]any) error {
	params["threadId"], params["excludeTurns"] = t.id, true
	// Registered before it is open, so that no notification is missed.
	if err := t.s.add(t); err != nil {
		return err
	}
	var got openedThread
	err := t.s.peer.call(ctx, "thread/resume", params, &got)
	if err == nil {
		t.model, t.path = got.Model, got.Thread.Path
		if got.Thread.Status.Type == "active" {
			err = t.join(ctx)
		}
	}
	if err != nil {
		t.s.remove(t)
		return openError(err)
	}
	return nil
}

// join finds the turn that was already running.
func (t *Thread) join(ctx context.Context) error {
	defer t.Hold()() // its end may be reported before the answer arrives
	turns, _, err := t.history(ctx, 1, "notLoaded", "")
	if err != nil || len(turns) == 0 || turns[0].Status != "inProgress" {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs(turns[0].ID)
	return nil
}

// ID returns the thread's id at Codex.
func (t *Thread) ID() string { return t.id }

// Model returns the model with which the thread was opened.
func (t *Thread) Model() string { return t.model }

// Subscribe reports what happens in the thread from now on, in order. A subscriber that
// is 256 events behind loses the oldest. stop ends it and closes the channel.
func (t *Thread) Subscribe() (events <-chan Event, stop func()) { return t.feed.Subscribe() }

// Submit waits until no turn runs, submits a text under an id and returns when Codex
// shows it in the thread: from then on it survives the death of every process. After an
// error that matches ErrLost, or ctx's, it is unknown whether the text was accepted;
// Find reports it, on a new connection. After any other error it was not.
func (t *Thread) Submit(ctx context.Context, id, text string) (*Turn, error) {
	select {
	case t.slot <- struct{}{}:
		defer func() { <-t.slot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	sub := &submission{input: id, seen: make(chan struct{})}
	if err := t.await(ctx, sub); err != nil {
		return nil, err
	}
	defer t.submittedNow()
	turn, err := t.start(ctx, id, text)
	if err != nil {
		return nil, err
	}
	select {
	case <-sub.seen:
	case <-turn.done:
		if _, err := turn.outcome(); err != nil && !sub.in(t) {
			return nil, fmt.Errorf("the turn ended before it took the text: %w", err)
		}
	case <-ctx.Done():
		turn.Wait(ctx, 0) // which interrupts it
		return nil, ctx.Err()
	}
	if sub.in(t) {
		return t.turn(sub.turn), nil
	}
	return turn, nil
}

// Start submits a text like Submit, but waits only for Codex's answer that a turn has
// started: events report what happens to the text. The caller knows that no turn runs.
// The connection to a server that has not answered at ctx's deadline is closed.
func (t *Thread) Start(ctx context.Context, id, text string) (*Turn, error) {
	defer t.Hold()() // its end may be reported before its id
	turn, err := t.start(ctx, id, text)
	if errors.Is(err, context.DeadlineExceeded) {
		t.s.Close()
	}
	return turn, err
}

func (t *Thread) start(ctx context.Context, id, text string) (*Turn, error) {
	var got struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	}
	err := t.s.peer.call(ctx, "turn/start", map[string]any{
		"threadId": t.id, "clientUserMessageId": id, "input": []any{map[string]any{"type": "text", "text": text}},
	}, &got)
	if err != nil {
		return nil, t.s.ended(err)
	}
	return t.turn(got.Turn.ID), nil
}

// Running returns the running turn, or nil.
func (t *Thread) Running() *Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active
}

// in reports whether the input has been seen in the thread.
func (s *submission) in(t *Thread) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.turn != ""
}

// await waits until no turn runs and registers a submission.
func (t *Thread) await(ctx context.Context, sub *submission) error {
	for {
		t.mu.Lock()
		free, lost := t.free, t.lost
		if lost == nil && t.active == nil {
			t.submitted = sub
			t.keep++
			t.mu.Unlock()
			return nil
		}
		t.mu.Unlock()
		if lost != nil {
			return lost
		}
		select {
		case <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// submittedNow ends a submission.
func (t *Thread) submittedNow() {
	t.mu.Lock()
	t.submitted = nil
	t.mu.Unlock()
	t.forget()
}

// Hold keeps turns that have ended until release is called: one that is found running
// may end before anyone waits for it.
func (t *Thread) Hold() (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep++
	return t.forget
}

// forget ends the time in which turns that have ended are kept.
func (t *Thread) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keep--; t.keep > 0 {
		return
	}
	for id, turn := range t.turns {
		if turn.Over() {
			delete(t.turns, id)
		}
	}
}

// Interrupt ends the running turn, if one runs.
func (t *Thread) Interrupt(ctx context.Context) error {
	if turn := t.Running(); turn != nil {
		return turn.interrupt(ctx)
	}
	return nil
}

// PauseGoal keeps Codex from beginning turns for the thread's goal, until a person resumes
// it; an error if there is none.
func (t *Thread) PauseGoal(ctx context.Context) error {
	return t.s.peer.call(ctx, "thread/goal/set", map[string]any{"threadId": t.id, "status": "paused", "origin": "automatic"}, nil)
}

// Compact has Codex compact the thread, in a turn of its own.
func (t *Thread) Compact(ctx context.Context) error {
	return t.s.peer.call(ctx, "thread/compact/start", map[string]any{"threadId": t.id}, nil)
}

// notify handles a notification about the thread.
func (t *Thread) notify(method string, params json.RawMessage) {
	var p struct {
		Turn      pastTurn   `json:"turn"`
		TurnID    string     `json:"turnId"`
		Item      item       `json:"item"`
		Error     *wireError `json:"error"`
		WillRetry bool       `json:"willRetry"`
		Usage     *wireUsage `json:"tokenUsage"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	switch method {
	case "turn/started":
		t.mu.Lock()
		t.runs(p.Turn.ID)
		t.mu.Unlock()
		t.emit(Event{Kind: TurnStarted, Turn: p.Turn.ID})
	case "item/started", "item/completed":
		t.item(p.TurnID, p.Item, method == "item/completed")
	case "thread/tokenUsage/updated":
		if p.Usage != nil {
			t.emit(Event{Kind: TokenUsage, Turn: p.TurnID, Usage: p.Usage.usage()})
		}
	case "error":
		if p.WillRetry && p.Error != nil {
			t.retry(p.TurnID, p.Error)
		}
	case "turn/completed":
		t.completed(p.Turn)
	case "thread/closed", "thread/deleted", "thread/archived":
		t.s.remove(t)
		t.lose(fmt.Errorf("%w: the thread was %s", ErrLost, method[len("thread/"):]))
	}
}
