package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"netsky/internal/loopmodel"
)

// What all models have.
type (
	Reply = loopmodel.Reply
	Call  = loopmodel.Call
)

// Shell is a call of Codex's shell tool. With escalate it asks to run outside
// the sandbox, which Codex asks its user about unless its approval policy
// forbids.
func Shell(command string, escalate bool) Call {
	args := map[string]any{"cmd": command, "login": false}
	if escalate {
		args["sandbox_permissions"] = "require_escalated"
		args["justification"] = "the test wants it"
	}
	return Call{Name: "exec_command", Arguments: args}
}

// Fail is an answer with an HTTP error of a kind that OpenAI's server gives:
// 429 is a used up quota that is renewed in an hour.
func Fail(status int) *Reply {
	r := &Reply{Status: status, Body: `{"error":{"type":"server_error","message":"out of order"}}`}
	switch status {
	case http.StatusTooManyRequests:
		resets := time.Now().Add(time.Hour).Unix()
		r.Body = fmt.Sprintf(`{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"pro","resets_at":%d,"resets_in_seconds":3600}}`, resets)
		r.Header = map[string]string{
			"x-codex-primary-used-percent": "100", "x-codex-primary-window-minutes": "300", "x-codex-primary-reset-at": fmt.Sprint(resets),
		}
	case http.StatusUnauthorized:
		r.Body = `{"error":{"type":"invalid_request_error","code":"invalid_api_key","message":"Incorrect API key provided"}}`
	}
	return r
}

// Directives answers by the orders in what was said last, each on a line of its
// own behind "loop:", for tests that speak to the model from outside:
//
//	loop: sleep 2s        answer later
//	loop: fail 429        an HTTP error
//	loop: users           answer "users: N", how often the user has spoken
//	loop: model           answer with the model's name
//	loop: say TEXT        answer TEXT; &lt; and its kin are read as what they stand for
//	loop: long            answer 1,500,000 letters
//	loop: shell COMMAND   call the shell tool, answer "tool: " and its output
//	loop: ask COMMAND     the same outside the sandbox
//	loop: call NAMESPACE NAME JSON   call an MCP server's tool
//
// Without any it echoes: "echo: " and the text.
func Directives(q Request) *Reply {
	r := &Reply{Text: "echo: " + q.Last()}
	for line := range strings.Lines(q.Last()) {
		if word, rest, ok := loopmodel.Order(line); ok {
			obey(r, q, word, rest)
		}
	}
	if len(r.Calls) > 0 && len(q.Outputs) > 0 {
		r.Calls, r.Text = nil, "tool: "+strings.Join(q.Outputs, "\n")
	}
	return r
}

func obey(r *Reply, q Request, word, rest string) {
	switch word {
	case "sleep":
		r.Delay, _ = time.ParseDuration(rest)
	case "fail":
		status, _ := strconv.Atoi(rest)
		delay := r.Delay
		*r = *Fail(status)
		r.Delay = delay
	case "users":
		r.Text = "users: " + strconv.Itoa(len(q.Said))
	case "model":
		r.Text = "model: " + q.Model
	case "say":
		r.Text = rest
	case "long":
		r.Text = strings.Repeat("x", 1_500_000)
	case "shell", "ask":
		r.Calls = append(r.Calls, Shell(rest, word == "ask"))
	case "call":
		namespace, rest, _ := strings.Cut(rest, " ")
		name, args, _ := strings.Cut(rest, " ")
		r.Calls = append(r.Calls, Call{Namespace: namespace, Name: name, Arguments: json.RawMessage(args)})
	}
}

// FailWith is an answer with an HTTP error that has a code.
func FailWith(status int, code string) *Reply {
	body := loopmodel.JSON(map[string]any{"error": map[string]any{"type": code, "code": code, "message": "out of order"}})
	return &Reply{Status: status, Body: string(body)}
}

// stream writes the reply as the events of a Responses stream.
func (s *Server) stream(w http.ResponseWriter, n int64, q Request, reply *Reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	id := fmt.Sprintf("resp_%d", n)
	send := func(kind string, fields map[string]any) { loopmodel.Event(w, kind, fields) }
	send("response.created", map[string]any{"response": map[string]any{"id": id}})
	switch {
	case reply.Cut:
		return
	case reply.Fails != "":
		send("response.failed", map[string]any{"response": map[string]any{"id": id, "error": map[string]any{"code": reply.Fails, "message": reply.Text}}})
		return
	}
	for i, c := range reply.Calls {
		item := map[string]any{
			"type": "function_call", "id": fmt.Sprintf("fc_%d_%d", n, i), "call_id": fmt.Sprintf("call_%d_%d", n, i),
			"name": c.Name, "arguments": string(loopmodel.JSON(c.Arguments)),
		}
		if c.Namespace != "" {
			item["namespace"] = c.Namespace
		}
		send("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	if len(reply.Calls) == 0 && reply.Text != "" {
		say(send, fmt.Sprintf("msg_%d", n), reply.Text)
	}
	u := loopmodel.Usage{Input: len(q.Body) / 4, Output: len(reply.Text)/4 + 1}
	if reply.Usage != nil {
		u = *reply.Usage
	}
	s.Spend(u)
	in := u.Input + u.CacheRead + u.CacheWrite // what is cached is part of the input here
	send("response.completed", map[string]any{"response": map[string]any{"id": id, "usage": map[string]any{
		"input_tokens": in, "input_tokens_details": map[string]any{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"output_tokens": u.Output, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
		"total_tokens": in + u.Output,
	}}})
	if f, ok := w.(io.Writer).(http.Flusher); ok {
		f.Flush()
	}
}

func say(send func(string, map[string]any), id, text string) {
	item := func(text string) map[string]any {
		content := []any{}
		if text != "" {
			content = append(content, map[string]any{"type": "output_text", "text": text, "annotations": []any{}})
		}
		return map[string]any{"type": "message", "id": id, "role": "assistant", "content": content}
	}
	send("response.output_item.added", map[string]any{"output_index": 0, "item": item("")})
	send("response.output_text.delta", map[string]any{"item_id": id, "output_index": 0, "content_index": 0, "delta": text})
	send("response.output_item.done", map[string]any{"output_index": 0, "item": item(text)})
}
