package anthropic

import (
	"bytes"
	"fmt"
	"maps"
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
	Usage = loopmodel.Usage
)

// Shell is a call of Claude Code's shell tool.
func Shell(command string) Call {
	return Call{Name: "Bash", Arguments: map[string]any{"command": command, "description": "the test wants it"}}
}

// Write is a call of Claude Code's tool that writes a file.
func Write(path, text string) Call {
	return Call{Name: "Write", Arguments: map[string]any{"file_path": path, "content": text}}
}

// Fail is an answer with an HTTP error as Anthropic's server gives it: 400 says
// that the prompt is too long, 429 that a limit is used up until an hour from now.
// None of them asks to be tried again.
func Fail(status int) *Reply {
	switch status {
	case http.StatusBadRequest:
		return failure(status, "invalid_request_error", "prompt is too long: 215732 tokens > 200000 maximum")
	case http.StatusUnauthorized:
		return failure(status, "authentication_error", "invalid x-api-key")
	case http.StatusForbidden:
		return failure(status, "permission_error", "Your account does not have permission")
	case http.StatusTooManyRequests:
		return Limit(time.Now().Add(time.Hour))
	case 529:
		return failure(status, "overloaded_error", "Overloaded")
	}
	return failure(status, "api_error", "Internal server error")
}

func failure(status int, kind, message string) *Reply {
	body := loopmodel.JSON(map[string]any{
		"type": "error", "error": map[string]string{"type": kind, "message": message}, "request_id": "req_loop",
	})
	return &Reply{Status: status, Body: string(body), Header: map[string]string{"request-id": "req_loop", "x-should-retry": "false"}}
}

// Error is an answer with an HTTP error of the kind and message, and more headers, each a
// name and a value.
func Error(status int, kind, message string, headers ...string) *Reply {
	r := failure(status, kind, message)
	delete(r.Header, "x-should-retry")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header[headers[i]] = headers[i+1]
	}
	return r
}

// Limit is the answer to a subscriber whose plan's limit is used up until then.
func Limit(until time.Time) *Reply {
	return limited(failure(http.StatusTooManyRequests, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."), until)
}

// LimitOf is a Limit that names one claim, such as "seven_day_opus", as used up.
func LimitOf(claim string, until time.Time) *Reply {
	r := Limit(until)
	for name := range r.Header {
		if strings.HasPrefix(name, "anthropic-ratelimit-unified-5h-") {
			delete(r.Header, name)
		}
	}
	r.Header["anthropic-ratelimit-unified-representative-claim"] = claim
	return r
}

// limited adds the headers that tell which limit is used up, and until when.
func limited(r *Reply, at time.Time) *Reply {
	maps.Copy(r.Header, map[string]string{
		"anthropic-ratelimit-unified-status":               "rejected",
		"anthropic-ratelimit-unified-reset":                strconv.FormatInt(at.Unix(), 10),
		"anthropic-ratelimit-unified-representative-claim": "five_hour",
		"anthropic-ratelimit-unified-5h-status":            "rejected",
		"anthropic-ratelimit-unified-5h-utilization":       "1.0",
		"anthropic-ratelimit-unified-5h-reset":             strconv.FormatInt(at.Unix(), 10),
		"retry-after":                                      strconv.Itoa(int(time.Until(at).Seconds())),
	})
	return r
}

// stream is the reply as the events of a Messages stream.
func stream(n int, q Request, reply *Reply, u Usage) []byte {
	var b bytes.Buffer
	send := func(kind string, fields map[string]any) { loopmodel.Event(&b, kind, fields) }
	usage := map[string]any{
		"input_tokens": u.Input, "cache_creation_input_tokens": u.CacheWrite, "cache_read_input_tokens": u.CacheRead, "output_tokens": 1,
		"cache_creation": map[string]any{"ephemeral_5m_input_tokens": u.CacheWrite, "ephemeral_1h_input_tokens": 0}, "service_tier": "standard",
	}
	send("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_loop%d", n), "type": "message", "role": "assistant", "model": q.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	index, reason := 0, "end_turn"
	block := func(start, delta map[string]any) {
		send("content_block_start", map[string]any{"index": index, "content_block": start})
		send("content_block_delta", map[string]any{"index": index, "delta": delta})
		send("content_block_stop", map[string]any{"index": index})
		index++
	}
	if reply.Text != "" {
		block(map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": reply.Text})
	}
	for i, c := range reply.Calls {
		reason = "tool_use"
		block(map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_loop%d_%d", n, i), "name": c.Name, "input": map[string]any{}},
			map[string]any{"type": "input_json_delta", "partial_json": string(loopmodel.JSON(c.Arguments))})
	}
	send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": u.Output},
	})
	send("message_stop", map[string]any{})
	return b.Bytes()
}

// short cuts a text to what fits on a screen.
func short(text string) string {
	const most = 400
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
