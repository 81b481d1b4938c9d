package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ThreadOptions say which thread is wanted. What is "" is left to Codex, or, of
// a thread that is resumed, stays as it was.
type ThreadOptions struct {
	ID           string // the thread to resume; "" begins one
	Dir          string // where the model works; absolute
	Model        string
	Instructions string         // for a new thread only: they are part of it
	Sandbox      string         // read-only, workspace-write, danger-full-access
	Approval     string         // untrusted, on-request, never
	Config       map[string]any // configuration of this thread alone, such as mcp_servers
	Approve      Approver       // nil declines everything
	// Name, if not "", is given to a new thread, which is on disk from then on
	// and can be resumed before its first turn.
	Name string

	// Feed, if not nil, is where the thread's events go, beside those of others.
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
	slot  chan struct{} // taken by the one who submits

	mu        sync.Mutex // guards what follows
	turns     map[string]*Turn
	active    *Turn         // the turn that runs, ours or another's
	free      chan struct{} // closed while none runs
	submitted *submission   // under way
	keep      int           // while it is not 0, turns that have ended are kept
	resets    time.Time     // when the used up quota is renewed
	lost      error
}

// A submission waits for Codex to show the input in the thread.
type submission struct {
	input string
	seen  chan struct{}
	turn  string // where it was seen; guarded by the thread's mu
}

// Open resumes a thread or begins one. The error matches ErrGone if there is no
// such thread, and ErrHeld if another process has it. A new thread is on disk
// only from its first turn on.
func (s *Server) Open(ctx context.Context, o ThreadOptions) (*Thread, error) {
	t := &Thread{
		id: o.ID, s: s, o: o, feed: o.Feed, slot: make(chan struct{}, 1),
		turns: make(map[string]*Turn), free: make(chan struct{}),
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

// openedThread is what both ways to open a thread answer.
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
	// Known before it is open: what happens in it from now on is told at once.
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

// join finds the turn that was running when we came.
func (t *Thread) join(ctx context.Context) error {
	defer t.Hold()() // its end may be told before we have heard of it
	turns, err := t.history(ctx, 1, "notLoaded")
	if err != nil || len(turns) == 0 || turns[0].Status != "inProgress" {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs(turns[0].ID)
	return nil
}

// ID is the thread's name at Codex.
func (t *Thread) ID() string { return t.id }

// Model is the model that the thread was opened with.
func (t *Thread) Model() string { return t.model }

// Subscribe tells what happens in the thread from now on, in order. A
// subscriber that is 256 events behind loses the oldest. stop ends it and
// closes the channel.
func (t *Thread) Subscribe() (events <-chan Event, stop func()) { return t.feed.Subscribe() }

// Submit waits until no turn runs, submits a text under an id and returns when
// Codex shows it in the thread: from then on it survives the death of all of us.
// An error that matches ErrLost, or ctx's, leaves open whether it was accepted;
// Find tells, on a new connection. After any other it was not.
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

// Start submits a text like Submit, but waits for nothing but Codex's word that a
// turn begins: what becomes of the text is told by events. The caller knows that
// no turn runs. A server that has not answered at ctx's deadline is left.
func (t *Thread) Start(ctx context.Context, id, text string) (*Turn, error) {
	defer t.Hold()() // its end may be told before its number
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

// Running is the turn that runs; nil: none.
func (t *Thread) Running() *Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active
}

// in says whether the input has been seen in the thread.
func (s *submission) in(t *Thread) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.turn != ""
}

// await waits until no turn runs and announces a submission.
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

// Hold keeps turns that have ended until release is called: one that is found
// running may end before somebody waits for it.
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

// A pastTurn is a turn as the thread's history has it.
type pastTurn struct {
	ID     string     `json:"id"`
	Status string     `json:"status"`
	Items  []item     `json:"items"`
	Error  *wireError `json:"error"`
}

// history is the thread's last turns, the newest first.
func (t *Thread) history(ctx context.Context, most int, view string) ([]pastTurn, error) {
	var got struct {
		Data []pastTurn `json:"data"`
	}
	err := t.s.peer.call(ctx, "thread/turns/list", map[string]any{
		"threadId": t.id, "limit": most, "sortDirection": "desc", "itemsView": view,
	}, &got)
	return got.Data, err
}

// A Past is a turn of the thread's history that took an input.
type Past struct {
	// Running is the turn if it has not ended; then there is no Result.
	Running *Turn
	Result  Result
	Err     error // why it did not complete
}

// Find looks for a turn by its ID, or without one for the last that took the
// input; nil if there is none.
func (t *Thread) Find(ctx context.Context, input, id string) (*Past, error) {
	turns, err := t.history(ctx, 10, "full")
	if err != nil {
		return nil, err
	}
	for _, turn := range turns {
		took := func(i item) bool { return i.ClientID != nil && *i.ClientID == input }
		switch {
		case turn.ID != id && (id != "" || !slices.ContainsFunc(turn.Items, took)):
		case turn.Status == "inProgress":
			return &Past{Running: t.turn(turn.ID)}, nil
		default:
			res, err := turn.result(t.id, time.Time{})
			return &Past{Result: res, Err: err}, nil
		}
	}
	return nil, nil
}

// notify takes in what Codex tells of the thread.
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
			t.emit(Event{Kind: Retrying, Turn: p.TurnID, Text: p.Error.Message})
		}
	case "turn/completed":
		t.completed(p.Turn)
	case "thread/closed", "thread/deleted", "thread/archived":
		t.s.remove(t)
		t.lose(fmt.Errorf("%w: the thread was %s", ErrLost, method[len("thread/"):]))
	}
}
