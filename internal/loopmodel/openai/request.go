package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// A Request is a request from Codex.
type Request struct {
	Thread  string   // the thread's id
	Key     string   // the key or token with which it was sent
	Model   string   // the model it wants
	Rules   []string // the developer messages: base instructions, then others
	Said    []string // what the user said, oldest first, without Codex's own context
	Outputs []string // what tools returned since the user last said something
	Tools   []string // names of the tools on offer, "namespace.name" for those of MCP servers
	Title   bool     // a request of the TUI's for a title of the thread
	Body    []byte   // the whole of it
}

// Last returns what the user said last, or "".
func (q Request) Last() string {
	if len(q.Said) == 0 {
		return ""
	}
	return q.Said[len(q.Said)-1]
}

type wireItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

type wireTool struct {
	Type  string     `json:"type"`
	Name  string     `json:"name"`
	Tools []wireTool `json:"tools"`
}

func readRequest(header http.Header, body []byte) (Request, error) {
	var wire struct {
		Model string     `json:"model"`
		Input []wireItem `json:"input"`
		Tools []wireTool `json:"tools"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return Request{}, fmt.Errorf("request: %w", err)
	}
	q := Request{Thread: header.Get("Thread-Id"), Model: wire.Model, Body: body, Key: strings.TrimPrefix(header.Get("Authorization"), "Bearer ")}
	for _, item := range wire.Input {
		switch {
		case item.Type == "message" && item.Role == "developer":
			q.Rules = append(q.Rules, textOf(item.Content))
		case item.Type == "message" && item.Role == "user":
			if text := textOf(item.Content); !context(text) {
				q.Said, q.Outputs = append(q.Said, text), nil
			}
		case strings.HasSuffix(item.Type, "_output"):
			q.Outputs = append(q.Outputs, textOf(item.Output))
		}
	}
	for _, t := range wire.Tools {
		if t.Type != "namespace" {
			q.Tools = append(q.Tools, t.Name)
			continue
		}
		for _, inner := range t.Tools {
			q.Tools = append(q.Tools, t.Name+"."+inner.Name)
		}
	}
	q.Title = strings.Contains(q.Last(), "task title")
	return q, nil
}

// context reports whether a user's message is one that Codex wrote itself.
func context(text string) bool {
	for _, prefix := range []string{"<environment_context>", "# AGENTS.md instructions", "<user_instructions>", "<turn_aborted>", "<user_shell_command>"} {
		if strings.HasPrefix(strings.TrimSpace(text), prefix) {
			return true
		}
	}
	return false
}

// textOf returns the text of a content that is a string or a list of parts.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
