package appserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"netsky/bus/envelope"
)

// A Legacy is a child process that runs `codex mcp-server`, which Codex has up to
// 0.153.4. It knows only the threads that it started itself.
type Legacy struct {
	peer   *peer
	caller *caller
}

// sessionMissing is the beginning of the server's message that it has no such thread.
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

// text returns what the tool returned: its structured content, else its first text.
func (r toolResult) text() (string, bool) {
	if r.Structured != nil && r.Structured.Content != nil {
		return *r.Structured.Content, true
	}
	if len(r.Content) > 0 {
		return r.Content[0].Text, true
	}
	return "", false
}

// StartLegacy starts the server. say prints what was declined.
func StartLegacy(ctx context.Context, o ServerOptions, say func(string)) (*Legacy, error) {
	p, err := start(ctx, o.Program, []string{"mcp-server"}, o.Env, o.Dir)
	if err != nil {
		return nil, err
	}
	l := &Legacy{caller: &caller{say: say}}
	l.peer = newPeer(p, l.caller, "2.0")
	err = l.peer.call(ctx, "initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "netsky", "version": "1"},
	}, nil)
	if err == nil {
		err = l.peer.note(ctx, "notifications/initialized", nil)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("codex mcp-server: %w", err)
	}
	return l, nil
}

// Close ends the server and waits for it. A call in progress is never answered.
func (l *Legacy) Close() error { return l.peer.close() }

// Reply gives a thread a text. The error matches ErrGone if the server has no such
// thread.
func (l *Legacy) Reply(ctx context.Context, thread, text string) (Result, error) {
	return l.tool(ctx, "codex-reply", map[string]any{"threadId": thread, "prompt": text})
}

// Begin starts a thread with a text.
func (l *Legacy) Begin(ctx context.Context, o ThreadOptions, text string) (Result, error) {
	args := map[string]any{"prompt": text}
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
	return l.tool(ctx, "codex", args)
}

// tool calls one of the server's two tools.
func (l *Legacy) tool(ctx context.Context, name string, args map[string]any) (Result, error) {
	var got toolResult
	if err := l.peer.call(ctx, "tools/call", map[string]any{"name": name, "arguments": args}, &got); err != nil {
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

// A caller is the client side of mcp-server. It declines what the server asks: nobody
// is here to approve.
type caller struct {
	say func(string)

	mu   sync.Mutex // guards info
	info code       // of the last turn's error
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
	c.info = errorInfo(p.Message.Info)
	c.info.name = camel(c.info.name)
}

// failure returns why a turn failed, which the server reports as text.
func (c *caller) failure(text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (&wireError{Message: text}).of(c.info, quota{}, time.Now())
}

// camel converts usage_limit_exceeded to usageLimitExceeded, app-server's word.
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
