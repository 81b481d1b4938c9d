package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

// A Turn is one turn of a thread, running or ended.
type Turn struct {
	ID string

	t     *Thread
	done  chan struct{} // closed when it has ended
	last  string        // what the model said last; guarded by t.mu, as is tools
	tools int
	res   Result // this and err are valid when done is closed
	err   error
}

// A Result is the result of a completed turn.
type Result struct {
	Thread string
	Turn   string
	Text   string // what the model said last
	Tools  int    // how many tools it used, as far as observed
}

// answerTime is how long an interrupted turn may take to end. It has been measured to
// take 10 ms; a server that needs longer is stuck.
const answerTime = 10 * time.Second

// Done is closed when the turn has ended.
func (u *Turn) Done() <-chan struct{} { return u.done }

// Over reports whether it has ended.
func (u *Turn) Over() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

// outcome is valid when the turn has ended.
func (u *Turn) outcome() (Result, error) { return u.res, u.err }

// Wait waits for the end of the turn. If limit > 0 and the turn runs longer, or if ctx
// ends, it is interrupted, and the connection to a server that does not obey is closed;
// then the error matches ErrTimeout or is ctx's. Otherwise it is a *TurnError, or
// matches ErrInterrupted or ErrLost.
func (u *Turn) Wait(ctx context.Context, limit time.Duration) (Result, error) {
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	var why error
	select {
	case <-u.done:
		return u.outcome()
	case <-late:
		why = fmt.Errorf("%w: over %v", ErrTimeout, limit)
	case <-ctx.Done():
		why = ctx.Err()
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	err := u.interrupt(stop)
	if err == nil {
		select {
		case <-u.done:
			if res, err := u.outcome(); err == nil {
				return res, nil // it completed just in time
			} else if !errors.Is(err, ErrInterrupted) {
				return res, fmt.Errorf("%w (%w)", why, err)
			}
			return Result{}, why
		case <-stop.Done():
			err = errors.New("the turn did not end")
		}
	}
	u.t.s.Close()
	return Result{}, fmt.Errorf("%w; interrupt: %w", why, err)
}

// BreakOff interrupts the turn and waits for its end. The connection to a server that
// does not obey is closed.
func (u *Turn) BreakOff() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	u.Wait(ctx, 0)
}

// interrupt asks Codex to end the turn. A refusal means that it has ended or is about
// to, so its end will be reported.
func (u *Turn) interrupt(ctx context.Context) error {
	err := u.t.s.peer.call(ctx, "turn/interrupt", map[string]any{"threadId": u.t.id, "turnId": u.ID}, nil)
	var refused *remoteError
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// turn returns the turn with that id, and registers it if it is new.
func (t *Thread) turn(id string) *Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known(id)
}

func (t *Thread) known(id string) *Turn {
	u := t.turns[id]
	if u == nil {
		u = &Turn{ID: id, t: t, done: make(chan struct{})}
		if t.lost != nil {
			u.err = t.lost
			close(u.done)
		}
		t.turns[id] = u
	}
	return u
}

// runs records that a turn is running. The caller holds mu.
func (t *Thread) runs(id string) {
	u := t.known(id)
	if u.Over() {
		return
	}
	if t.active == nil {
		t.free = make(chan struct{})
	}
	t.active = u
}

// maxItems is how many items are kept while they run; Codex runs a few at a time.
const maxItems = 64

// keepItem keeps an item while it runs, and reports its end. The caller holds mu.
func (t *Thread) keepItem(i item, ended bool) {
	if !ended {
		if len(t.items) < maxItems {
			t.items[i.ID] = i
		}
		return
	}
	delete(t.items, i.ID)
	if end := t.ends[i.ID]; end != nil {
		delete(t.ends, i.ID)
		end <- i // it has room for one
	}
}

// begun returns an item that runs, as Codex announced it.
func (t *Thread) begun(id string) item {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.items[id]
}

// end returns where the item's end is reported, if it has not ended yet.
func (t *Thread) end(id string) <-chan item {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends[id] == nil {
		t.ends[id] = make(chan item, 1)
	}
	return t.ends[id]
}

// item handles an item that began or ended.
func (t *Thread) item(turn string, i item, ended bool) {
	t.mu.Lock()
	t.keepItem(i, ended)
	resumed := t.retrying == turn && i.Type != "userMessage"
	if resumed {
		t.retrying = ""
	}
	t.mu.Unlock()
	if resumed {
		t.emit(Event{Kind: Resumed, Turn: turn})
	}
	e, ok := itemEvent(i, ended)
	if !ok {
		return
	}
	e.Turn = turn
	t.mu.Lock()
	switch e.Kind {
	case Message:
		t.known(turn).last = e.Text
	case ToolStarted:
		t.known(turn).tools++
	case Accepted:
		if s := t.submitted; s != nil && s.input == e.Input && s.turn == "" {
			s.turn = turn
			close(s.seen)
		}
	}
	t.mu.Unlock()
	t.emit(e)
}

// completed handles the end of a turn.
func (t *Thread) completed(p pastTurn) {
	t.mu.Lock()
	u := t.known(p.ID)
	if u.Over() {
		t.mu.Unlock()
		return
	}
	u.res, u.err = p.result(t.id, t.quota)
	if u.res.Text == "" {
		u.res.Text = u.last
	}
	u.res.Tools = u.tools
	t.close(u)
	t.mu.Unlock()
	t.s.over(p.ID)
	e := Event{Kind: TurnCompleted, Turn: p.ID, Text: u.res.Text, Err: u.err}
	switch {
	case errors.Is(u.err, ErrInterrupted):
		e.Kind, e.Err = TurnInterrupted, nil
	case u.err != nil:
		e.Kind = TurnFailed
	}
	t.emit(e)
}

// close closes a turn. The caller holds mu.
func (t *Thread) close(u *Turn) {
	close(u.done)
	if t.active == u {
		t.active = nil
		close(t.free)
	}
	if t.keep == 0 {
		delete(t.turns, u.ID)
	}
}

// retry handles Codex's notice that it is retrying a request.
func (t *Thread) retry(turn string, w *wireError) {
	t.mu.Lock()
	t.retrying = turn
	t.mu.Unlock()
	e := Event{Kind: Retrying, Turn: turn, Text: w.text(), Fault: agent.Fault{Reason: w.reason(errorInfo(w.Info)), Text: envelope.Line(w.Details, maxFault)}}
	e.Attempt, e.Of = w.attempt()
	t.emit(e)
}

// result converts a turn that has ended.
func (p pastTurn) result(thread string, q quota) (Result, error) {
	res := Result{Thread: thread, Turn: p.ID}
	for _, i := range p.Items {
		if i.Type == "agentMessage" && i.Text != "" {
			res.Text = i.Text
		}
	}
	switch p.Status {
	case "completed":
		return res, nil
	case "interrupted":
		return res, ErrInterrupted
	}
	ended := time.Now()
	if p.Completed > 0 {
		ended = time.Unix(p.Completed, 0)
	}
	return res, p.Error.turnError(q, ended)
}

// lose ends all turns: nothing more will be reported about them.
func (t *Thread) lose(err error) {
	t.mu.Lock()
	if t.lost != nil {
		t.mu.Unlock()
		return
	}
	t.lost = err
	for _, u := range t.turns {
		if !u.Over() {
			u.err = err
			t.close(u)
		}
	}
	t.mu.Unlock()
	t.emit(Event{Kind: ThreadLost, Err: err})
}

func (t *Thread) emit(e Event) {
	e.Thread = t.id
	t.feed.Emit(e)
}

// limits records what Codex reports of the account's limits.
func (t *Thread) limits(params json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quota.update(params)
}

// wireUsage is a thread's token count as Codex reports it.
type wireUsage struct {
	Total struct {
		Input     int64 `json:"inputTokens"`
		Cached    int64 `json:"cachedInputTokens"`
		Output    int64 `json:"outputTokens"`
		Reasoning int64 `json:"reasoningOutputTokens"`
		Total     int64 `json:"totalTokens"`
	} `json:"total"`
	Last struct {
		Total int64 `json:"totalTokens"`
	} `json:"last"`
	Window *int64 `json:"modelContextWindow"`
}

func (w *wireUsage) usage() *Usage {
	u := &Usage{
		Input: w.Total.Input, CachedInput: w.Total.Cached, Output: w.Total.Output,
		Reasoning: w.Total.Reasoning, Total: w.Total.Total, Last: w.Last.Total,
	}
	if w.Window != nil {
		u.Window = *w.Window
	}
	return u
}
