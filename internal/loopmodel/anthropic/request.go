package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// A Request is a request from Claude Code.
type Request struct {
	Session string   // the session's id
	Model   string   // the model it wants
	System  string   // the system prompt
	Said    []string // what the user and peers said, oldest first, without what Claude Code puts around it
	Fresh   int      // how many of Said are new since the model last spoke or failed
	Outputs []string // what tools returned since the user last said something
	Tools   []string // names of the tools on offer
	Title   bool     // a side request: for a title of the session, or a summary of it
	Body    []byte   // the whole of it
}

// Last returns what the user said last, or "".
func (q Request) Last() string {
	if len(q.Said) == 0 {
		return ""
	}
	return q.Said[len(q.Said)-1]
}

// News returns what the user said since the model last spoke or failed; if only tools
// have answered since then, what started the turn.
func (q Request) News() []string {
	return q.Said[len(q.Said)-min(max(q.Fresh, 1), len(q.Said)):]
}

// summarise is the beginning of the order to summarise a session that has grown too
// long.
const summarise = "CRITICAL: Respond with TEXT ONLY."

type wireMessage struct {
	Role    string    `json:"role"`
	Content wireParts `json:"content"`
}

// wireParts is a content: a string or a list of parts.
type wireParts []wirePart

type wirePart struct {
	Type    string    `json:"type"`
	Text    string    `json:"text"`
	Content wireParts `json:"content"` // of a tool_result
}

func (p *wireParts) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*p = wireParts{{Type: "text"}}
		return json.Unmarshal(data, &(*p)[0].Text)
	}
	return json.Unmarshal(data, (*[]wirePart)(p))
}

// text returns all text of the content.
func (p wireParts) text() string {
	var b strings.Builder
	for _, part := range p {
		b.WriteString(part.Text)
	}
	return b.String()
}

func readRequest(header http.Header, body []byte) (Request, error) {
	var wire struct {
		Model    string        `json:"model"`
		System   wireParts     `json:"system"`
		Messages []wireMessage `json:"messages"`
		Tools    []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return Request{}, fmt.Errorf("request: %w", err)
	}
	q := Request{Session: header.Get("X-Claude-Code-Session-Id"), Model: wire.Model, System: wire.System.text(), Body: body}
	for _, t := range wire.Tools {
		q.Tools = append(q.Tools, t.Name)
	}
	for _, m := range wire.Messages {
		q.hear(m)
	}
	q.Title = len(wire.Tools) == 0 || strings.HasPrefix(q.Last(), summarise)
	return q, nil
}

// hear adds one message of the conversation.
func (q *Request) hear(m wireMessage) {
	switch m.Role {
	case "assistant":
		q.Fresh = 0
	case "system": // holds what peers sent while a tool ran
		q.say(surfaced(m.Content.text())...)
	case "user":
		for _, part := range m.Content {
			switch part.Type {
			case "text":
				q.hearText(part.Text)
			case "tool_result":
				q.Outputs = append(q.Outputs, output(part.Content.text()))
			}
		}
	}
}

// hearText adds one text of a user's message. This answer ignores what was said before
// an interruption.
func (q *Request) hearText(text string) {
	if strings.HasPrefix(text, "[Request interrupted by user") {
		q.Fresh, q.Outputs = 0, nil
		return
	}
	q.say(spoken(text)...)
}

func (q *Request) say(texts ...string) {
	for _, text := range texts {
		q.Said, q.Outputs = append(q.Said, text), nil
		q.Fresh++
	}
}
