package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"netsky/bus/envelope"
	"netsky/store"
)

// legacy drives `codex mcp-server`, which Codex has up to 0.153.4. The server
// knows only the threads that it began itself, so a saved one is asked for once
// and then replaced.
type legacy struct {
	o     SessionOptions
	open  func(context.Context) (transport, error)
	state State
	rows  rows

	caller *caller // of the message under way
}

// sessionMissing is how the server begins its word that it has no such thread.
// It counts only in a result that is marked as an error.
const sessionMissing = "Session not found for thread_id"

type toolResult struct {
	IsError    bool `json:"isError"`
	Structured *struct {
		Thread  string  `json:"threadId"`
		Content *string `json:"content"`
	} `json:"structuredContent"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
}

// text is what the tool said: its structured content, else its first text.
func (r toolResult) text() (string, bool) {
	if r.Structured != nil && r.Structured.Content != nil {
		return *r.Structured.Content, true
	}
	if len(r.Content) > 0 {
		return r.Content[0].Text, true
	}
	return "", false
}

// Deliver brings a message through a turn of a server of its own.
func (l *legacy) Deliver(ctx context.Context, in Input) (Answer, error) {
	t, err := l.open(ctx)
	if err != nil {
		return Answer{}, err
	}
	l.caller = &caller{say: l.o.Say}
	p := newPeer(t, l.caller, "2.0")
	defer p.close()
	call := ctx
	if l.o.Limit > 0 {
		var cancel context.CancelFunc
		call, cancel = context.WithTimeout(ctx, l.o.Limit)
		defer cancel()
	}
	answer, err := l.deliver(call, p, in)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		// The server answers a cancelled call never; it ends with our close.
		err = fmt.Errorf("%w: over %v", ErrTimeout, l.o.Limit)
	}
	return answer, err
}

func (l *legacy) deliver(ctx context.Context, p *peer, in Input) (Answer, error) {
	err := p.call(ctx, "initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "netsky", "version": "1"},
	}, nil)
	if err == nil {
		err = p.note(ctx, "notifications/initialized", nil)
	}
	if err != nil {
		return Answer{}, fmt.Errorf("codex mcp-server: %w", err)
	}
	old := l.state
	if old.Thread == "" {
		return l.begin(ctx, p, in)
	}
	l.rows.put(ctx, old.Thread, in.ID, store.InputPending, "")
	res, err := l.tool(ctx, p, "codex-reply", map[string]any{"threadId": old.Thread, "prompt": in.Text})
	if !errors.Is(err, ErrGone) {
		l.rows.put(ctx, old.Thread, in.ID, store.InputConsumed, "")
		return Answer{Result: res}, err
	}
	l.rows.put(ctx, old.Thread, in.ID, store.InputCancelled, "the thread is gone")
	l.o.Say("codex session not found for thread " + old.Thread + "; starting fresh thread")
	answer, err := l.begin(ctx, p, in)
	if err == nil {
		l.o.Say("new codex thread_id=" + answer.Thread + " (was " + old.Thread + ")")
	}
	return answer, err
}

// begin begins a thread with the message.
func (l *legacy) begin(ctx context.Context, p *peer, in Input) (Answer, error) {
	args := map[string]any{"prompt": in.Text}
	if l.o.Startup != "" {
		args["prompt"] = l.o.Startup + "\n\n" + in.Text
	}
	o := l.o.Thread
	for name, value := range map[string]string{
		"cwd": o.Dir, "model": o.Model, "sandbox": o.Sandbox, "approval-policy": o.Approval, "developer-instructions": o.Instructions,
	} {
		if value != "" {
			args[name] = value
		}
	}
	if o.Config != nil {
		args["config"] = o.Config
	}
	res, err := l.tool(ctx, p, "codex", args)
	if err != nil {
		return Answer{}, err
	}
	l.rows.put(ctx, res.Thread, in.ID, store.InputConsumed, "") // before, the thread had no name
	l.state = State{Thread: res.Thread, Model: o.Model, Started: true, Message: in.ID}
	return Answer{Result: res}, l.state.save(l.o.Home, l.o.Agent, true)
}

// tool calls one of the server's two tools.
func (l *legacy) tool(ctx context.Context, p *peer, name string, args map[string]any) (Result, error) {
	var got toolResult
	if err := p.call(ctx, "tools/call", map[string]any{"name": name, "arguments": args}, &got); err != nil {
		return Result{}, err
	}
	text, ok := got.text()
	switch {
	case got.IsError && strings.HasPrefix(text, sessionMissing):
		return Result{}, fmt.Errorf("%w: %s", ErrGone, text)
	case got.IsError:
		return Result{}, l.caller.failure(text)
	case got.Structured == nil || got.Structured.Thread == "":
		return Result{}, fmt.Errorf("codex mcp-server: the result of %s names no thread", name)
	case !ok:
		return Result{}, fmt.Errorf("codex mcp-server: the result of %s has no content", name)
	}
	return Result{Thread: got.Structured.Thread, Text: text}, nil
}

// A caller is our side of mcp-server. It declines what the server asks: nobody
// is here to say yes.
type caller struct {
	say func(string)

	mu   sync.Mutex // guards info
	info string     // what the last turn failed of, in the server's words
}

func (c *caller) notify(method string, params json.RawMessage) {
	var p struct {
		Message struct {
			Type string          `json:"type"`
			Info json.RawMessage `json:"codex_error_info"`
		} `json:"msg"`
	}
	if method != "codex/event" || json.Unmarshal(params, &p) != nil || p.Message.Type != "error" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.info, _ = errorInfo(p.Message.Info)
}

// failure is what a turn failed of, told in text.
func (c *caller) failure(text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (&wireError{Message: text}).of(camel(c.info), 0, time.Time{})
}

// camel makes usageLimitExceeded of usage_limit_exceeded: app-server's word.
func camel(s string) string {
	first, rest, _ := strings.Cut(s, "_")
	for word := range strings.SplitSeq(rest, "_") {
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return first
}

func (c *caller) request(_ context.Context, _, method string, params json.RawMessage) (any, bool, error) {
	switch method {
	case "elicitation/create":
		var p struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(params, &p) == nil {
			c.say("declined: " + envelope.Cut(p.Message, 200))
		}
		return map[string]any{"decision": "denied"}, true, nil
	case "ping":
		return map[string]any{}, true, nil
	}
	_, err := plain(method)
	return nil, true, err
}
