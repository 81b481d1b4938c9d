package appserver

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"netsky/agent"
)

// An Approval is a request of Codex's to let the model do something.
type Approval struct {
	Thread, Turn string
	Tool         string        // "shell", "edit", "permissions", "server.tool", "question"
	Text         string        // the command, or what it is about
	Fields       []agent.Field // the files of an edit with their changes, arguments, whatever else Codex states
	Only         string        // why only a person at the TUI can answer; "" if an Approver can
	Reason       string        // why it asks, in the model's words
	Dir          string        // where a command would run
	Message      string        // id of the message being processed, if the sidecar knows it
}

// A Decision answers an Approval.
type Decision int

const (
	Decline Decision = iota // the model gets a refusal, and the turn continues
	Accept                  // this once
	Leave                   // left to another client: a person at a terminal on the same server
)

// A Taken is what became of a Decision.
type Taken int

const (
	Unknown   Taken = iota // the connection ended first
	AsSent                 // Codex has confirmed it
	Elsewhere              // another client's answer came first
)

// An Approver decides. It may take its time; ctx ends when the question is answered
// elsewhere or the connection ends. If taken is not nil, it is called once Codex has
// confirmed the decision, or it is known that it does not count.
type Approver func(ctx context.Context, a Approval) (d Decision, taken func(Taken))

// A question is a request from the server that an Approver answers.
type question struct {
	approval Approval
	item     string // the id of the item that it is about
	answer   func(Decision) any
	cancel   context.CancelFunc
	settled  bool // another client has answered; guarded by the server's mu
}

func (q *question) event(kind EventKind) Event {
	a := q.approval
	return Event{Kind: kind, Turn: a.Turn, Tool: a.Tool, Text: a.line(), Approval: &a}
}

// line is what the request is about, in short.
func (a Approval) line() string {
	text := a.Text
	for _, f := range a.Fields {
		text += "\n" + f.Name
		if a.Tool != "edit" { // its files are named, their changes are too long
			text += ": " + f.Text
		}
	}
	text, _ = agent.Flat(text, maxBrief)
	return text
}

const maxBrief = 1 << 10 // bytes

type askParams struct {
	Thread     string  `json:"threadId"`
	Turn       *string `json:"turnId"`
	Item       string  `json:"itemId"`
	Command    *string `json:"command"`
	Dir        *string `json:"cwd"`
	Reason     *string `json:"reason"`
	ServerName string  `json:"serverName"`
	Message    string  `json:"message"`
	Tool       string  `json:"tool"`
	Meta       struct {
		Kind   string          `json:"codex_approval_kind"`
		Tool   string          `json:"tool_name"`
		Params json.RawMessage `json:"tool_params"`
	} `json:"_meta"`
	Schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	} `json:"requestedSchema"`
	Questions []struct {
		Header   string `json:"header"`
		Question string `json:"question"`
		Options  []struct {
			Label       string `json:"label"`
			Description string `json:"description"`
		} `json:"options"`
	} `json:"questions"`
}

// plumbing are parameters that say nothing of what is asked, or are in the Approval's own
// fields.
var plumbing = []string{
	"threadId", "turnId", "itemId", "approvalId", "startedAtMs", "environmentId", "elicitationId", "kind", "mode", "_meta", "questions",
	"command", "cwd", "reason", "serverName", "message", "tool", "requestedSchema", "availableDecisions", "commandActions",
	"proposedExecpolicyAmendment", "proposedNetworkPolicyAmendments", "isOther", "autoResolutionMs",
}

// rest returns the parameters that are not plumbing.
func rest(params json.RawMessage) (list []agent.Field) {
	for _, f := range agent.Fields(params) {
		if !slices.Contains(plumbing, f.Name) && f.Text != "null" && f.Text != "" {
			list = append(list, f)
		}
	}
	return list
}

// asked returns what a request asks for, nil if it is not a question for an Approver.
// item returns what the thread shows of the item with that id.
func asked(method string, params json.RawMessage, find func(thread, id string) item) *question {
	var p askParams
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	a := Approval{Thread: p.Thread, Turn: word(p.Turn), Text: word(p.Command), Reason: word(p.Reason), Dir: word(p.Dir), Fields: rest(params)}
	switch method {
	case "item/commandExecution/requestApproval":
		a.Tool = "shell"
		if a.Text == "" {
			a.Text = find(p.Thread, p.Item).Command
		}
		if a.Text == "" && len(a.Fields) == 0 {
			a.Only = "Codex has not said which command"
		}
		return &question{approval: a, item: p.Item, answer: decided}
	case "item/fileChange/requestApproval":
		a.Tool = "edit"
		changes := find(p.Thread, p.Item).changes()
		if len(changes) == 0 {
			a.Only = "Codex has not said which files change, and how"
		}
		a.Fields = append(changes, a.Fields...)
		return &question{approval: a, item: p.Item, answer: decided}
	case "item/permissions/requestApproval":
		a.Tool, a.Only = "permissions", "netsky never grants more rights for the rest of a turn"
		return &question{approval: a, answer: func(Decision) any { return map[string]any{"permissions": map[string]any{}, "scope": "turn"} }}
	case "mcpServer/elicitation/request":
		return elicitation(a, p)
	case "item/tool/requestUserInput":
		a.Tool, a.Only = "question", "it is a question with a choice of answers"
		for _, q := range p.Questions {
			text := q.Question
			for _, o := range q.Options {
				text += "\n- " + strings.TrimSuffix(o.Label+": "+o.Description, ": ")
			}
			a.Fields = append(a.Fields, agent.Field{Name: cmp.Or(q.Header, "question"), Text: text})
		}
		return &question{approval: a, answer: func(Decision) any { return map[string]any{"answers": map[string]any{}} }}
	}
	return nil
}

// elicitation is the question of an MCP server: whether one of its tools may run, or, with
// a form, for values.
func elicitation(a Approval, p askParams) *question {
	a.Tool, a.Text = p.ServerName, p.Message
	if p.Meta.Tool != "" {
		a.Tool += "." + p.Meta.Tool
	}
	a.Fields = append(a.Fields, agent.Fields(p.Meta.Params)...)
	approval := p.Meta.Kind != "" && len(p.Schema.Properties) == 0
	if !approval {
		a.Only = "it is a form of the MCP server " + p.ServerName + " to fill in"
		for _, name := range slices.Sorted(maps.Keys(p.Schema.Properties)) {
			a.Fields = append(a.Fields, agent.Field{Name: name, Text: string(p.Schema.Properties[name])})
		}
	}
	return &question{approval: a, answer: func(d Decision) any { return elicited(d, approval) }}
}

func word(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func decided(d Decision) any {
	says := "decline"
	if d == Accept {
		says = "accept"
	}
	return map[string]any{"decision": says}
}

func elicited(d Decision, approval bool) any {
	if approval && d == Accept {
		return map[string]any{"action": "accept", "content": map[string]any{}, "_meta": nil}
	}
	return map[string]any{"action": "decline", "content": nil, "_meta": nil}
}

// plain answers the requests that need no decision. Unknown ones are refused, which
// Codex treats as a no.
func plain(method string) (any, error) {
	switch method {
	case "currentTime/read":
		return map[string]any{"currentTimeAt": time.Now().Unix()}, nil
	case "item/tool/call":
		text := []map[string]any{{"type": "inputText", "text": "netsky has no such tool"}}
		return map[string]any{"contentItems": text, "success": false}, nil
	}
	return nil, &remoteError{Code: codeNoMethod, Message: "netsky does not support " + method}
}
